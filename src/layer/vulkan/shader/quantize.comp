// Floats to s8 (TO_INT), s32 to floats (FROM_INT), s32 to s8 (both): x * scale + bias, an
// activation, then times another scale, rounded half away from zero and limited to 127. With zero
// points (kAffine) a float is divided by the scale, and that is rounded half to even.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"
#include "math.glsl"
#include "activation.glsl"
#ifdef TO_INT
#include "int8.glsl"
#endif
#ifndef FROM_INT
#include "affine8.glsl"
#include "quotient.glsl"
#endif

layout(constant_id = 0) const int kActivation = 0;
layout(constant_id = 1) const bool kAffine = false;
#ifdef FROM_INT
layout(set = 0, binding = 0) readonly buffer Input { int x[]; };
#else
READS(0, Input, x);
#endif
#ifdef TO_INT
layout(set = 0, binding = 1) writeonly buffer Output { int y[]; };
#else
WRITES(1, Output, y);
#endif
// Of each index of the outermost axis, or one: scale, bias, scale of the output.
layout(set = 0, binding = 2) readonly buffer Factors { float factors[]; };
layout(push_constant) uniform Push {
    uint count, x_first, y_first, inner, outer, factor_count;
    float a, b;
    int zero;
};

void main() {
    const uint i = linear_index();
    if (i >= count) return;
    const uint at = factor_count == 1u ? 0u : 3u * (i / inner % outer);
#ifdef FROM_INT
    precise float v = float(x[x_first + i] - zero);
#else
    precise float v = float(x[x_first + i]);
    if (kAffine) {
        y[y_first + i] = affine_int8(quotient(v, factors[0]), zero);
        return;
    }
#endif
    v = v * factors[at];
    v = v + factors[at + 1u];
    if (kActivation != 0) v = activated(v, kActivation, a, b);
#ifdef TO_INT
    v = v * factors[at + 2u];
    y[y_first + i] = rounded_to_int8(v);
#else
    y[y_first + i] = STORED(v);
#endif
}
