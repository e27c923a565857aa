// The input's part of the gates of recurrent layers: for each direction, item, step and row of
// gates, the sum of weights times values, plus a bias. f32, whatever blobs are stored as.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"

READS(0, Input, x);
READS(1, Weights, weights);  // [direction][input][row]
layout(set = 0, binding = 2) readonly buffer Bias { float bias[]; };  // [direction][row]
layout(set = 0, binding = 3) writeonly buffer Output { float sums[]; };
layout(push_constant) uniform Push {
    uint count, rows, steps, items, size, x_first, x_step, x_item;
};

void main() {
    const uint i = linear_index();
    if (i >= count) return;
    const uint row = i % rows, step = i / rows % steps;
    const uint item = i / rows / steps % items, direction = i / rows / steps / items;
    const uint from = x_first + item * x_item + step * x_step;
    uint at = direction * size * rows + row;
    float sum = bias[direction * rows + row];
    for (uint k = 0u; k < size; k++, at += rows) sum += float(weights[at]) * float(x[from + k]);
    sums[i] = sum;
}
