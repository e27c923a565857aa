// Pixels of 8-bit channels to a planar value: resized as image/pixel_resize.cpp does, converted, less
// the mean, times the norm. An invocation makes all channels of a pixel.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"
#include "pixels.glsl"

layout(constant_id = 0) const bool kResized = true;
WRITES(1, Output, y);
layout(push_constant) uniform Push {
    uint count, y_first;
    uint w, row_bytes, pixel_bytes, last_x, last_y, taps;
    uint channels;
    int from[4];
    uint red, green, blue;
    float mean[4], norm[4];
};

int source_at(uint i, uint k) {
    if (!kResized) return byte_at(i * pixel_bytes + k);
    const uint row = i / w;
    const Tap across = tap_at(taps, i - row * w, last_x), down = tap_at(taps, w + row, last_y);
    int values[4];
    for (uint corner = 0u; corner < 4u; corner++) {
        const uint line = (corner < 2u ? down.first : down.second) * row_bytes;
        const uint column = (corner % 2u == 0u ? across.first : across.second) * pixel_bytes;
        values[corner] = byte_at(line + column + k);
    }
    return blend(values, across, down);
}

void main() {
    const uint i = linear_index();
    if (i >= count) return;
    int source[4];
    for (uint k = 0u; k < pixel_bytes; k++) source[k] = source_at(i, k);
    for (uint k = 0u; k < channels; k++) {
        int v = 255;
        if (from[k] == kGray) v = luma(source[red], source[green], source[blue]);
        if (from[k] >= 0) v = source[from[k]];
        y[y_first + k * count + i] = STORED((float(v) - mean[k]) * norm[k]);
    }
}
