// Sums of up to four values along w times up to four along h: interpolation. An invocation makes a
// value; axes are in the order of the output's memory.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"

layout(constant_id = 0) const int kTaps = 4;
READS(0, Input, x);
WRITES(1, Output, y);
// For each index along w, then for each along h: where its values are and their factors. A factor
// of 0 is of no value.
struct Taps {
    uint at[4];
    float factor[4];
};
layout(set = 0, binding = 2) readonly buffer Table { Taps taps[]; };
// The steps of the input along w and h are 0 in x_steps, and x_step.
layout(push_constant) uniform Push {
    uint count, valid, x_first, y_first;
    uint sizes[5], x_steps[5], y_steps[5];
    int w_axis, h_axis;
    uint w_size, w_step, h_step;
};

void main() {
    uint i = linear_index();
    if (i >= count) return;
    const bool there = i % sizes[0] < valid;
    uint from = x_first, to = y_first, column = 0u, row = 0u;
    for (int axis = 0; axis < 5; axis++) {
        const uint rest = i / sizes[axis], at = i - rest * sizes[axis];
        from += at * x_steps[axis];
        to += at * y_steps[axis];
        if (axis == w_axis) column = at;
        if (axis == h_axis) row = w_size + at;
        i = rest;
    }
    float sum = 0.0;
    for (int dy = 0; dy < kTaps && there; dy++) {
        const float below = taps[row].factor[dy];
        if (below == 0.0) continue;
        const uint line = from + taps[row].at[dy] * h_step;
        float part = 0.0;
        for (int dx = 0; dx < kTaps; dx++) {
            const float beside = taps[column].factor[dx];
            if (beside != 0.0) part += float(x[line + taps[column].at[dx] * w_step]) * beside;
        }
        sum += part * below;
    }
    y[to] = STORED(sum);
}
