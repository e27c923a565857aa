// A border around blobs of any layout.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"

layout(constant_id = 0) const int kType = 0;  // constant, replicate, reflect
READS(0, Input, x);
WRITES(1, Output, y);
layout(set = 0, binding = 2) readonly buffer Constants { float constants[]; };
// Axes in the order of the output's memory; channel_axis: with a constant for each index, or -1.
layout(push_constant) uniform Push {
    uint count, valid;
    int channel_axis;
    uint x_first, y_first;
    int sizes[5], x_sizes[5], before[5], x_steps[5], y_steps[5];
};

// Where index i of an output axis comes from; outside of the axis for the constant.
int source_of(int i, int size) {
    if (kType == 1) return clamp(i, 0, size - 1);
    if (kType == 2) return i < 0 ? -i : i >= size ? 2 * (size - 1) - i : i;
    return i;
}

void main() {
    int i = int(linear_index());
    if (uint(i) >= count) return;
    const bool there = uint(i % sizes[0]) < valid;
    int from = int(x_first), to = int(y_first), channel = 0;
    bool inside = true;
    for (int axis = 0; axis < 5; axis++) {
        const int rest = i / sizes[axis], at = i - rest * sizes[axis];
        const int source = source_of(at - before[axis], x_sizes[axis]);
        inside = inside && source >= 0 && source < x_sizes[axis];
        from += source * x_steps[axis];
        to += at * y_steps[axis];
        if (axis == channel_axis) channel = at;
        i = rest;
    }
    const float v = inside && there ? float(x[from]) : there ? constants[channel] : 0.0;
    y[to] = STORED(v);
}
