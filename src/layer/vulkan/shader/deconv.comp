// Transposed convolution of any groups on blobs of any layout: an invocation gathers one value.
// weight: [tap][input of the group][output], so that neighbours among the outputs are neighbours.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"
#include "math.glsl"
#include "activation.glsl"

layout(constant_id = 0) const int kActivation = 0;
layout(constant_id = 1) const bool kBias = false;
READS(0, Input, x);
READS(1, Weight, weight);
layout(set = 0, binding = 2) readonly buffer Bias { float bias[]; };
WRITES(3, Output, y);
// Of w, h, d.
struct Axis {
    int size, kernel, stride, dilation, before, x_step;
};
// order: the axes w, h, d, c, n in the order of the output's memory.
layout(set = 0, binding = 4) readonly buffer Table {
    Axis axes[3];
    int sizes[5], y_steps[5], order[5];
};
layout(push_constant) uniform Push {
    uint count;
    int x_first, x_channel, x_item, y_first;
    int channels, group_inputs, group_outputs;
    float a, b;
};

// The input whose tap k goes to index i of the output, -1 if there is none.
int source(Axis axis, int i, int k) {
    const int reached = i + axis.before - k * axis.dilation;
    if (reached < 0 || reached % axis.stride != 0) return -1;
    const int at = reached / axis.stride;
    return at < axis.size ? at : -1;
}

void main() {
    uint i = linear_index();
    if (i >= count) return;
    int at[5], to = y_first, rest = int(i);
    for (int k = 0; k < 5; k++) {
        const int axis = order[k], size = sizes[axis];
        at[axis] = rest % size;
        rest /= size;
        to += at[axis] * y_steps[axis];
    }
    const int c = at[3];
    if (c >= channels) {
        y[to] = STORED(0.0);
        return;
    }
    const int origin = x_first + at[4] * x_item + c / group_outputs * group_inputs * x_channel;
    float sum = kBias ? bias[c] : 0.0;
    for (int kz = 0; kz < axes[2].kernel; kz++) {
        const int sz = source(axes[2], at[2], kz);
        for (int ky = 0; ky < axes[1].kernel && sz >= 0; ky++) {
            const int sy = source(axes[1], at[1], ky);
            for (int kx = 0; kx < axes[0].kernel && sy >= 0; kx++) {
                const int sx = source(axes[0], at[0], kx);
                if (sx < 0) continue;
                int from = origin + sz * axes[2].x_step + sy * axes[1].x_step + sx * axes[0].x_step;
                const int tap = (kz * axes[1].kernel + ky) * axes[0].kernel + kx;
                int w = tap * group_inputs * channels + c;
                for (int q = 0; q < group_inputs; q++, from += x_channel, w += channels)
                    sum += float(x[from]) * float(weight[w]);
            }
        }
    }
    y[to] = STORED(activated(sum, kActivation, a, b));
}
