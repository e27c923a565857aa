// f(a, b) for blobs of any layouts, whose axes may be repeated (step 0); axes are in the order of
// the output's memory.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"
#include "math.glsl"
#include "extremes.glsl"
#include "binary.glsl"

layout(constant_id = 0) const int kOperation = 0;
READS(0, Left, left);
READS(1, Right, right);
WRITES(2, Output, y);
layout(push_constant) uniform Push {
    uint count, valid, left_first, right_first, y_first;
    uint sizes[5], left_steps[5], right_steps[5], y_steps[5];
};

void main() {
    uint i = linear_index();
    if (i >= count) return;
    const bool there = i % sizes[0] < valid;
    uint l = left_first, r = right_first, to = y_first;
    for (int axis = 0; axis < 5; axis++) {
        const uint rest = i / sizes[axis], at = i - rest * sizes[axis];
        l += at * left_steps[axis];
        r += at * right_steps[axis];
        to += at * y_steps[axis];
        i = rest;
    }
    y[to] = there ? STORED(binary(float(left[l]), float(right[r]), kOperation)) : STORED(0.0);
}
