// A planar value to pixels of 8-bit channels: less the mean, times the norm, cut to bytes,
// converted, then resized as image/pixel_resize.cpp does. An invocation computes four bytes, of
// rows without gaps.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"
#include "pixels.glsl"

layout(constant_id = 0) const bool kResized = true;
READS(1, Input, x);
layout(set = 0, binding = 2) writeonly buffer Made { uint made[]; };
layout(push_constant) uniform Push {
    uint count, x_first;
    uint w, bytes, pixel_bytes, last_x, last_y;
    uint source_w, plane;
    int from[4];
    uint red, green, blue;
    float mean[4], norm[4];
};

// Not a number is 0.
int value_at(uint pixel, uint channel) {
    const float v = (float(x[x_first + channel * plane + pixel]) - mean[channel]) * norm[channel];
    return v > 0.0 ? int(v < 255.0 ? v : 255.0) : 0;
}

int channel_at(uint pixel, uint k) {
    if (from[k] >= 0) return value_at(pixel, uint(from[k]));
    if (from[k] != kGray) return 255;
    return luma(value_at(pixel, red), value_at(pixel, green), value_at(pixel, blue));
}

uint made_at(uint i) {
    const uint pixel = i / pixel_bytes, k = i - pixel * pixel_bytes, row = pixel / w;
    if (!kResized) return uint(channel_at(pixel, k));
    const Tap across = tap_at(0u, pixel - row * w, last_x), down = tap_at(0u, w + row, last_y);
    int values[4];
    for (uint corner = 0u; corner < 4u; corner++) {
        const uint line = (corner < 2u ? down.first : down.second) * source_w;
        values[corner] = channel_at(line + (corner % 2u == 0u ? across.first : across.second), k);
    }
    return uint(blend(values, across, down));
}

void main() {
    const uint i = linear_index();
    if (i >= count) return;
    uint word = 0u;
    for (uint k = 0u; k < 4u && i * 4u + k < bytes; k++) word |= made_at(i * 4u + k) << (8u * k);
    made[i] = word;
}
