// Products of the rows of a matrix with a vector: a group of 64 makes four outputs of one input row,
// each invocation a part of the sums. weight: [output][inputs in vec4s].
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "math.glsl"
#include "activation.glsl"

layout(constant_id = 0) const int kActivation = 0;
layout(constant_id = 1) const bool kBias = false;
layout(local_size_x = 64) in;
READS(0, Input, x);
READS4(1, Weight, weight);
layout(set = 0, binding = 2) readonly buffer Bias { float bias[]; };
WRITES(3, Output, y);
layout(push_constant) uniform Push {
    int inputs, outputs, x_first, y_first;
    float a, b;
};
shared vec4 parts[64];

// Four inputs; what follows the last one is anything.
vec4 input_at(int row, int k) {
    vec4 v = vec4(0.0);
    for (int lane = 0; lane < 4; lane++)
        if (4 * k + lane < inputs) v[lane] = float(x[x_first + row * inputs + 4 * k + lane]);
    return v;
}

void main() {
    const int thread = int(gl_LocalInvocationID.x);
    const int first = int(gl_WorkGroupID.x) * 4, row = int(gl_WorkGroupID.y);
    const int vectors = (inputs + 3) / 4;
    vec4 sums = vec4(0.0);
    for (int k = thread; k < vectors; k += 64) {
        const vec4 v = input_at(row, k);
        for (int o = 0; o < 4; o++)
            if (first + o < outputs) sums[o] += dot(v, vec4(weight[(first + o) * vectors + k]));
    }
    parts[thread] = sums;
    barrier();
    for (int half_count = 32; half_count > 0; half_count /= 2) {
        if (thread < half_count) parts[thread] += parts[thread + half_count];
        barrier();
    }
    const int output_index = first + thread;
    if (thread >= 4 || output_index >= outputs) return;
    const float sum = parts[0][thread] + (kBias ? bias[output_index] : 0.0);
    y[y_first + row * outputs + output_index] = STORED(activated(sum, kActivation, a, b));
}
