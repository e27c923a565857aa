// From a value of any layout to a staging buffer, planar and without gaps, a word at a time.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"

layout(constant_id = 0) const int kHost = 0;    // f32, f16, bf16
layout(constant_id = 1) const int kLayout = 0;  // planar, channels last
READS(0, Input, x);
layout(set = 0, binding = 1) writeonly buffer Host { uint words[]; };
layout(push_constant) uniform Push { uint total, plane, channels, pitch, first; };

float value(uint i) {
    if (i >= total) return 0.0;
    if (kLayout == 0) return float(x[first + i]);
    const uint row = i / plane, pixel = i - row * plane;
    const uint item = row / channels, c = row - item * channels;
    return float(x[first + (item * plane + pixel) * pitch + c]);
}

// To nearest even; NaN stays NaN.
uint bfloat16(float v) {
    const uint bits = floatBitsToUint(v);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (bits >> 16) | 0x40u;
    return (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
}

void main() {
    const uint i = linear_index();
    if (kHost == 0) {
        if (i < total) words[i] = floatBitsToUint(value(i));
        return;
    }
    if (2u * i >= total) return;
    const float low = value(2u * i), high = value(2u * i + 1u);
    words[i] = kHost == 1 ? packHalf2x16(vec2(low, high)) : bfloat16(low) | bfloat16(high) << 16;
}
