// Convolution as a product of matrices: a group of 64 makes 32 pixels of 32 channels, a step of 16
// input channels of a tap at a time, both operands in shared memory. weight: [group][steps][4][output
// vec4s].
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "math.glsl"
#include "activation.glsl"
#include "conv.glsl"

layout(local_size_x = 8, local_size_y = 8) in;

const int kPixels = 32, kVectors = 8, kDepth = 4;  // of a tile; inputs in vec4s
shared vec4 inputs[kDepth][kPixels + 1];
shared vec4 weights[kDepth * 4][kVectors];

void main() {
    const int group = int(gl_WorkGroupID.z), vectors = (channels + 3) / 4;
    const int thread = int(gl_LocalInvocationIndex);
    const int first_pixel = int(gl_WorkGroupID.x) * kPixels;
    const int first_vector = int(gl_WorkGroupID.y) * kVectors;
    const int c = first_vector + int(gl_LocalInvocationID.x);
    // Two pixels and two rows of weights for each invocation to load.
    const int load_step = thread & 3, load_pixel = thread >> 2;
    const ivec4 window0 = window_of(min(first_pixel + load_pixel, y_pixels - 1));
    const ivec4 window1 = window_of(min(first_pixel + load_pixel + 16, y_pixels - 1));
    const int load_row = thread >> 3, load_vector = min(first_vector + (thread & 7), vectors - 1);

    vec4 sums[4];
    for (int i = 0; i < 4; i++)
        sums[i] = kBias && c < vectors ? bias[group * vectors + c] : vec4(0.0);
    for (int step = 0; step < steps; step += kDepth) {
        const int at = step + load_step;
        const int tap = kPointwise ? 0 : at / x_c;
        const int channel = group * x_c + at - tap * x_c;
        const bool inside = at < steps;
        inputs[load_step][load_pixel] = inside ? input_at(window0, tap, channel) : vec4(0.0);
        inputs[load_step][load_pixel + 16] = inside ? input_at(window1, tap, channel) : vec4(0.0);
        for (int i = 0; i < 2; i++) {
            const int row = step * 4 + load_row + 8 * i;
            weights[load_row + 8 * i][thread & 7] =
                row < steps * 4
                    ? vec4(weight[(group * steps * 4 + row) * vectors + load_vector])
                    : vec4(0.0);
        }
        barrier();
        for (int k = 0; k < kDepth; k++) {
            const vec4 w0 = weights[4 * k][gl_LocalInvocationID.x];
            const vec4 w1 = weights[4 * k + 1][gl_LocalInvocationID.x];
            const vec4 w2 = weights[4 * k + 2][gl_LocalInvocationID.x];
            const vec4 w3 = weights[4 * k + 3][gl_LocalInvocationID.x];
            for (int i = 0; i < 4; i++) {
                const vec4 v = inputs[k][gl_LocalInvocationID.y + 8 * i];
                sums[i] += v.x * w0 + v.y * w1 + v.z * w2 + v.w * w3;
            }
        }
        barrier();
    }
    for (int i = 0; i < 4; i++) {
        const int pixel = first_pixel + int(gl_LocalInvocationID.y) + 8 * i;
        if (pixel < y_pixels && c < vectors)
            store_output(pixel, c, group * vectors + c, sums[i]);
    }
}
