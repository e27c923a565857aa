// Sums and products of s8 values with zero points, or one of them alone, then an activation,
// quantised to s8 again. Along axes w, h, d, c, n, of which inputs may repeat some (steps of 0).
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"
#include "affine8.glsl"

layout(constant_id = 0) const int kActivation = 0;  // none, ReLU with a slope, clip
layout(constant_id = 1) const int kOperation = 0;  // 0: a + b, 1: a b, 2: a
layout(set = 0, binding = 0) readonly buffer A { int xa[]; };
layout(set = 0, binding = 1) readonly buffer B { int xb[]; };
layout(set = 0, binding = 2) writeonly buffer Output { int y[]; };
layout(push_constant) uniform Push {
    uint count, a_first, b_first, y_first;
    uint sizes[5], a_steps[5], b_steps[5];
    int a_zero, b_zero, y_zero;
    float a_scale, b_scale, y_factor, f_a, f_b;
};

void main() {
    const uint i = linear_index();
    if (i >= count) return;
    uint rest = i, at_a = a_first, at_b = b_first;
    for (int k = 0; k < 5; k++) {
        at_a += rest % sizes[k] * a_steps[k];
        at_b += rest % sizes[k] * b_steps[k];
        rest /= sizes[k];
    }
    precise float v = float(xa[at_a] - a_zero) * a_scale;
    if (kOperation != 2) {
        precise float other = float(xb[at_b] - b_zero) * b_scale;
        if (kOperation == 0)
            v = v + other;
        else
            v = v * other;
    }
    if (kActivation == 3)
        v = clamp(v, f_a, f_b);
    else if (kActivation != 0 && v < 0.0)
        v = v * f_a;
    v = v * y_factor;
    y[y_first + i] = affine_int8(v, y_zero);
}
