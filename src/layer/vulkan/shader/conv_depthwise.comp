// Depthwise convolution: an invocation makes four channels of a pixel. weight: [tap][vec4s].
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "storage.glsl"
#include "index.glsl"
#include "math.glsl"
#include "activation.glsl"
#include "conv.glsl"

// Taps along both axes of a square window; 0: any window.
layout(constant_id = 4) const int kSquare = 0;

vec4 any_window(ivec4 window, int c, int vectors) {
    vec4 sum = vec4(0.0);
    for (int tap = 0; tap < steps; tap++)
        sum += input_at(window, tap, c) * vec4(weight[tap * vectors + c]);
    return sum;
}

// Unrolled, so that all loads are under way at once.
vec4 square_window(ivec4 window, int c, int vectors) {
    vec4 sum = vec4(0.0);
    const int first = x_first + (window.w + window.y * x_w + window.x) * x_pitch + c;
    [[unroll]] for (int ky = 0; ky < kSquare; ky++) {
        const int y = ky * dilation_h;
        const bool row = uint(window.y + y) < uint(x_h);
        [[unroll]] for (int kx = 0; kx < kSquare; kx++) {
            const int at = kx * dilation_w;
            const bool inside = row && uint(window.x + at) < uint(x_w);
            const int from = inside ? first + (y * x_w + at) * x_pitch : x_first + c;
            const vec4 v = vec4(x[from]);
            sum += (inside ? v : vec4(pad_value)) *
                   vec4(weight[(ky * kSquare + kx) * vectors + c]);
        }
    }
    return sum;
}

void main() {
    const int i = int(linear_index()), vectors = (channels + 3) / 4;
    if (i >= y_pixels * vectors) return;
    const int pixel = i / vectors, c = i - pixel * vectors;
    const ivec4 window = window_of(pixel);
    vec4 sum = kSquare > 0 ? square_window(window, c, vectors) : any_window(window, c, vectors);
    if (kBias) sum += bias[c];
    store_output(pixel, c, c, sum);
}
