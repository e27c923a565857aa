// Running sums along an axis, or (ARG) the index of the largest or least value: an invocation for
// each line.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"
#include "math.glsl"

layout(constant_id = 0) const bool kReverse = false;    // ARG: the last of equal values
layout(constant_id = 1) const bool kExclusive = false;  // ARG: the least
READS(0, Input, x);
#ifdef ARG
layout(set = 0, binding = 1) writeonly buffer Output { int y[]; };
#else
WRITES(1, Output, y);
#endif
// Lines by their first values: over the axes besides the line's.
layout(push_constant) uniform Push {
    uint lines, length, x_step, y_step, x_first, y_first;
    uint sizes[4], x_steps[4], y_steps[4];
};

bool better(float a, float b) {
    if (is_nan(a) || is_nan(b)) return false;
    if (kReverse && a == b) return true;
    return kExclusive ? a < b : a > b;
}

void main() {
    const uint line = linear_index();
    if (line >= lines) return;
    uint from = x_first, to = y_first, rest = line;
    for (int axis = 0; axis < 4; axis++) {
        const uint at = rest % sizes[axis];
        rest /= sizes[axis];
        from += at * x_steps[axis];
        to += at * y_steps[axis];
    }
#ifdef ARG
    uint best = 0u;
    float value = float(x[from]);
    for (uint i = 1u; i < length; i++) {
        const float v = float(x[from + i * x_step]);
        if (better(v, value)) best = i, value = v;
    }
    y[to] = int(best);
#else
    // With compensation for what each addition loses.
    precise float sum = 0.0, lost = 0.0;
    for (uint k = 0u; k < length; k++) {
        const uint i = kReverse ? length - 1u - k : k;
        const float v = float(x[from + i * x_step]), before = sum;
        const bool finite = !is_nan(sum + v) && abs(sum + v) != kInfinity;
        precise float part = v - (finite ? lost : 0.0);
        precise float next = sum + part;
        lost = finite ? (next - sum) - part : 0.0;
        sum = next;
        y[to + i * y_step] = STORED(kExclusive ? before : sum);
    }
#endif
}
