// Local response normalisation: an invocation computes a value, or (kFour) four channels of a
// pixel; axes are in the order of the output's memory.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "storage.glsl"
#include "index.glsl"
#include "math.glsl"
#include "functions.glsl"

// How far neighbourhoods of the first axis alone reach to both sides: unrolled, so that all loads
// are under way at once. 0: any.
layout(constant_id = 0) const int kHalf = 0;
// Neighbourhoods of channels, up to 4 to both sides, of channels-last pixels of whole vec4s.
layout(constant_id = 1) const bool kFour = false;

READS(0, Input, x);
READS4(0, Input4, x4);  // the same
WRITES(1, Output, y);
WRITES4(1, Output4, y4);
// before, after: how far the neighbourhood reaches along each axis.
layout(push_constant) uniform Push {
    uint count, x_first, y_first;
    int sizes[4], x_steps[4], y_steps[4], before[4], after[4];
    float bias, factor, beta;
};

// A result stored as f16 needs no exact power.
float power(float v, float by) {
#ifdef STORAGE_F16
    return exp2(by * log2(v));
#else
    return exact_pow(v, by);
#endif
}

void make_four(int i) {
    const int vectors = sizes[0] / 4, pixel = i / vectors, c = i - pixel * vectors;
    const int from = (int(x_first) + pixel * x_steps[1]) / 4 + c;
    vec4 near[3];
    [[unroll]] for (int k = 0; k < 3; k++) {
        const bool inside = uint(c + k - 1) < uint(vectors);
        near[k] = inside ? vec4(x4[from + k - 1]) : vec4(0.0);
    }
    vec4 made;
    [[unroll]] for (int lane = 0; lane < 4; lane++) {
        float sum = 0.0;
        [[unroll]] for (int a = lane - kHalf; a <= lane + kHalf; a++) {
            const float v = near[(a + 4) / 4][a & 3];
            sum += v * v;
        }
        made[lane] = near[1][lane] * power(bias + factor * sum, -beta);
    }
    y4[(int(y_first) + pixel * y_steps[1]) / 4 + c] = STORED4(made);
}

void main() {
    int i = int(linear_index());
    if (uint(i) >= count) return;
    if (kFour) {
        make_four(i);
        return;
    }
    int from = int(x_first), to = int(y_first);
    int first[4], last[4];
    for (int axis = 0; axis < 4; axis++) {
        const int rest = i / sizes[axis], at = i - rest * sizes[axis];
        from += at * x_steps[axis];
        to += at * y_steps[axis];
        first[axis] = max(-at, -before[axis]);
        last[axis] = min(sizes[axis] - 1 - at, after[axis]);
        i = rest;
    }
    float sum = 0.0;
    if (kHalf > 0) {
        [[unroll]] for (int a = -kHalf; a <= kHalf; a++) {
            const bool inside = a >= first[0] && a <= last[0];
            const float v = float(x[inside ? from + a * x_steps[0] : from]);
            sum += inside ? v * v : 0.0;
        }
        y[to] = STORED(float(x[from]) * power(bias + factor * sum, -beta));
        return;
    }
    for (int c = first[2]; c <= last[2]; c++)
        for (int b = first[1]; b <= last[1]; b++)
            for (int a = first[0]; a <= last[0]; a++) {
                const float v = float(x[from + a * x_steps[0] + b * x_steps[1] + c * x_steps[2]]);
                sum += v * v;
            }
    y[to] = STORED(float(x[from]) * power(bias + factor * sum, -beta));
}
