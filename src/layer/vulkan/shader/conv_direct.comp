// Convolution of any groups on blobs of any layout: an invocation computes one value. weight: as
// the model has it, [output][input of the group][tap].
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"
#include "math.glsl"
#include "activation.glsl"
#include "int8.glsl"
#include "affine8.glsl"

layout(constant_id = 0) const int kActivation = 0;
layout(constant_id = 1) const bool kBias = false;
layout(constant_id = 2) const bool kResidual = false;
layout(constant_id = 20) const int kInt8 = 0;  // this, and `bias` then: as common/conv.glsl says
READS(0, Input, x);
READS(1, Weight, weight);
layout(set = 0, binding = 2) readonly buffer Bias { float bias[]; };
READS(3, Residual, residual);
WRITES(4, Output, y);
// Axes w, h, d, c, n.
struct Blob {
    int first;
    int steps[5];
};
layout(set = 0, binding = 5) readonly buffer Table {
    Blob in_, out_, add;
    int x_size[3], y_size[3];
    int kernel[3], stride[3], dilation[3], before[3];
    int channels, stored_channels, group_inputs, group_outputs;
};
layout(push_constant) uniform Push {
    uint count;
    int channels_last;
    float pad_value, a, b;
};

int offset_of(Blob blob, int at[5]) {
    int sum = blob.first;
    for (int axis = 0; axis < 5; axis++) sum += at[axis] * blob.steps[axis];
    return sum;
}

// The position of value i in the order of the output's memory.
void position_of(int i, out int at[5]) {
    if (channels_last != 0) {
        at[3] = i % stored_channels;
        i /= stored_channels;
    }
    for (int axis = 0; axis < 3; axis++) {
        at[axis] = i % y_size[axis];
        i /= y_size[axis];
    }
    if (channels_last == 0) {
        at[3] = i % stored_channels;
        i /= stored_channels;
    }
    at[4] = i;
}

float value_at(int position[3], int origin) {
    int from = origin;
    for (int axis = 0; axis < 3; axis++) {
        if (position[axis] < 0 || position[axis] >= x_size[axis]) return pad_value;
        from += position[axis] * in_.steps[axis];
    }
    const float v = float(x[from]);
    return (kInt8 & 2) != 0 ? whole_int8(v * bias[0]) : v;
}

void main() {
    const uint index = linear_index();
    if (index >= count) return;
    int at[5];
    position_of(int(index), at);
    const int to = offset_of(out_, at);
    if (at[3] >= channels) {
        y[to] = STORED(0.0);
        return;
    }
    const int group = at[3] / group_outputs, taps = kernel[0] * kernel[1] * kernel[2];
    const int weights = at[3] * group_inputs * taps;
    float sum = kBias && kInt8 == 0 ? bias[at[3]] : 0.0;
    for (int tap = 0; tap < taps; tap++) {
        const int row = tap / kernel[0];
        const int k[3] = int[3](tap % kernel[0], row % kernel[1], row / kernel[1]);
        int position[3];
        for (int axis = 0; axis < 3; axis++)
            position[axis] = at[axis] * stride[axis] + k[axis] * dilation[axis] - before[axis];
        for (int c = 0; c < group_inputs; c++) {
            const int origin = in_.first + at[4] * in_.steps[4] +
                               (group * group_inputs + c) * in_.steps[3];
            sum += value_at(position, origin) * float(weight[weights + c * taps + tap]);
        }
    }
    const int factors = 4 + at[3] / 4 * 16 + at[3] % 4;
    if (kInt8 != 0) {
        precise float v = (sum - bias[factors]) * bias[factors + 4];
        v = v + bias[factors + 8];
        sum = v;
    }
    if (kResidual) sum += float(residual[offset_of(add, at)]);
    sum = activated(sum, kActivation, a, b);
    if ((kInt8 & 4) != 0) {
        sum *= bias[factors + 12];
        sum = (kInt8 & 8) == 0 ? whole_int8(sum) : float(affine_int8(sum, int(bias[1])));
    }
    y[to] = STORED(sum);
}
