// The windows of a convolution as products of matrices by Winograd's algorithm take them: an
// invocation transforms four of them. Once, when a region is compiled.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "storage.glsl"
#include "index.glsl"
#include "winograd.glsl"

READS4(0, Weight, weight);
WRITES4(1, Points, to);
// In vec4s: steps of the weights, from row to row and tap to tap, and of the points; `there` of a
// row's `vectors` are weights, the others zeros.
layout(push_constant) uniform Push {
    int rows, vectors, there;
    int row_step, tap_step, point_row_step, point_step;
};

void main() {
    const int index = int(linear_index()), row = index / vectors, i = index - row * vectors;
    if (row >= rows) return;
    vec4 w[6][6];
    [[unroll]] for (int tap = 0; tap < 9; tap++) {
        w[tap / 3][tap % 3] = vec4(0.0);
        if (i < there) w[tap / 3][tap % 3] = vec4(weight[row * row_step + tap * tap_step + i]);
    }
    [[unroll]] for (int y = 0; y < 3; y++) points_of_weights(w[y]);
    [[unroll]] for (int x = 0; x < kIn; x++) {
        vec4 column[6];
        [[unroll]] for (int y = 0; y < 3; y++) column[y] = w[y][x];
        points_of_weights(column);
        [[unroll]] for (int y = 0; y < kIn; y++)
            to[(y * kIn + x) * point_step + row * point_row_step + i] = STORED4(column[y]);
    }
}
