// From a staging buffer, planar and without gaps, to a value of any layout.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"

layout(constant_id = 0) const int kHost = 0;    // f32, f16, bf16
layout(constant_id = 1) const int kLayout = 0;  // planar, channels last
layout(constant_id = 2) const int kStored = 0;  // as kHost
layout(set = 0, binding = 0) readonly buffer Host { uint words[]; };
WRITES4(1, Output, y);
// plane: values of a channel.
layout(push_constant) uniform Push {
    uint count, row_vectors, row_length, plane, pitch, first;
    uint narrowed;  // the host has made 16 bits of f32, as they are stored
};

float host_value(uint i) {
    if (kHost == 0 && narrowed == 0u) return uintBitsToFloat(words[i]);
    const uint half_word = words[i >> 1] >> ((i & 1u) * 16u);
    if ((kHost == 0 ? kStored : kHost) != 2) return unpackHalf2x16(half_word).x;
    return uintBitsToFloat(half_word << 16);
}

void main() {
    const uint i = linear_index();
    if (i >= count) return;
    const uint row = i / row_vectors, lane = (i - row * row_vectors) * 4u;
    // Channels last: rows are pixels, of all items.
    const uint item = row / plane, pixel = row - item * plane;
    const uint start = kLayout == 0 ? lane : (item * row_length + lane) * plane + pixel;
    const uint step = kLayout == 0 ? 1u : plane;
    vec4 v = vec4(0.0);
    for (uint k = 0; k < 4u; k++)
        if (lane + k < row_length) v[k] = host_value(start + k * step);
    y[first + row * pitch + lane / 4u] = STORED4(v);
}
