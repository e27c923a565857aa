// Depthwise convolution: an invocation makes four channels of a pixel. weight: [tap][vec4s].
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"
#include "math.glsl"
#include "activation.glsl"
#include "conv.glsl"

void main() {
    const int i = int(linear_index()), vectors = (channels + 3) / 4;
    if (i >= y_pixels * vectors) return;
    const int pixel = i / vectors, c = i - pixel * vectors;
    const ivec4 window = window_of(pixel);
    vec4 sum = kBias ? bias[c] : vec4(0.0);
    for (int tap = 0; tap < steps; tap++)
        sum += input_at(window, tap, c) * vec4(weight[tap * vectors + c]);
    store_output(pixel, c, c, sum);
}
