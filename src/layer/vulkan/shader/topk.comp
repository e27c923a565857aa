// The largest or least values of lines, best first, and where they were: an invocation for each
// value finds out how many come before it. ARGMAX: indexes are floats, behind the values if there
// are such; of equal values the last comes first.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"
#include "math.glsl"

layout(constant_id = 0) const bool kLargest = true;
READS(0, Input, x);
WRITES(1, Output, values);
#ifdef ARGMAX
layout(constant_id = 1) const bool kValues = false;
#define INDEX(i) STORED(float(i))
#define indexes values
const bool kLastFirst = true;
#else
layout(set = 0, binding = 2) writeonly buffer Indexes { int indexes[]; };
#define INDEX(i) i
const bool kValues = true, kLastFirst = false;
#endif
layout(push_constant) uniform Push {
    uint count, length, most, x_step, y_step, x_first, values_first, indexes_first;
    uint sizes[4], x_steps[4], y_steps[4];
};

// NaN is larger than all numbers.
bool less(float a, float b) { return a < b || (is_nan(b) && !is_nan(a)); }
bool comes_before(float a, float b) { return kLargest ? less(b, a) : less(a, b); }

void main() {
    const uint number = linear_index();
    if (number >= count) return;
    const uint own = number % length;
    uint rest = number / length, from = x_first, to = 0u;
    for (int axis = 0; axis < 4; axis++) {
        const uint at = rest % sizes[axis];
        rest /= sizes[axis];
        from += at * x_steps[axis];
        to += at * y_steps[axis];
    }
    const float v = float(x[from + own * x_step]);
    uint before = 0u;
    for (uint i = 0u; i < length && before < most; i++) {
        const float other = float(x[from + i * x_step]);
        const bool equal_first = kLastFirst ? i > own : i < own;
        if (comes_before(other, v) || (equal_first && !comes_before(v, other))) before++;
    }
    if (before >= most) return;
    if (kValues) values[values_first + to + before * y_step] = STORED(v);
    indexes[indexes_first + to + before * y_step] = INDEX(int(own));
}
