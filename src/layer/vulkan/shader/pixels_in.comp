// Pixels of 8-bit channels to a planar value: resized as image/pixel_resize.cpp does, converted,
// less the mean, times the norm. An invocation computes all channels of a pixel.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"
#include "pixels.glsl"

layout(constant_id = 0) const bool kResized = true;
layout(constant_id = 1) const bool kYuv = false;  // planes of YUV 4:2:0, taken for RGB
WRITES(1, Output, y);
layout(push_constant) uniform Push {
    uint count, y_first;
    uint w, row_bytes, pixel_bytes, last_x, last_y, taps;
    uint channels;
    int from[4];
    uint red, green, blue;
    float mean[4], norm[4];
    // Of YUV, in bytes: a row of luma, where chroma begins, its rows, from one sample of U to the
    // next, where U and V begin in it; the first pixel.
    uint luma_row, chroma, chroma_row, chroma_step, u_first, v_first, left, top;
};

// JFIF, as image/pixel_yuv.cpp has it.
int rgb_of_yuv(uint px, uint py, uint k) {
    const uint at = chroma + py / 2u * chroma_row + px / 2u * chroma_step;
    const int luma = byte_at(py * luma_row + px) << 6;
    const int u = byte_at(at + u_first) - 128, v = byte_at(at + v_first) - 128;
    const int sum = k == 0u ? luma + 90 * v : k == 1u ? luma - 46 * v - 22 * u : luma + 113 * u;
    return clamp(sum >> 6, 0, 255);
}

int byte_of(uint px, uint py, uint k) {
    if (kYuv) return rgb_of_yuv(left + px, top + py, k);
    return byte_at(py * row_bytes + px * pixel_bytes + k);
}

int source_at(uint i, uint k) {
    const uint row = i / w, column = i - row * w;
    if (!kResized) return byte_of(column, row, k);
    const Tap across = tap_at(taps, column, last_x), down = tap_at(taps, w + row, last_y);
    int values[4];
    for (uint corner = 0u; corner < 4u; corner++)
        values[corner] = byte_of(corner % 2u == 0u ? across.first : across.second,
                                 corner < 2u ? down.first : down.second, k);
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
