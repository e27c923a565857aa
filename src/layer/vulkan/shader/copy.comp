// Values from strides to strides over up to six axes, the first one the fastest of the output. INTS:
// of whole numbers in a word each, or to such.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"

READS(0, Input, x);
WRITES(1, Output, y);
#ifdef INTS
layout(constant_id = 0) const bool kFromInt = false;
layout(set = 0, binding = 0) readonly buffer Words { int from_words[]; };
layout(set = 0, binding = 1) writeonly buffer ToWords { int to_words[]; };
#endif
layout(push_constant) uniform Push {
    uint count, valid, x_first, y_first;
    uint sizes[6], x_steps[6], y_steps[6];
};

void main() {
    uint i = linear_index();
    if (i >= count) return;
    uint from = x_first, to = y_first;
    const bool there = i % sizes[0] < valid;
    for (int axis = 0; axis < 6; axis++) {
        const uint rest = i / sizes[axis], at = i - rest * sizes[axis];
        from += at * x_steps[axis];
        to += at * y_steps[axis];
        i = rest;
    }
#ifdef INTS
    if (!kFromInt)
        to_words[to] = there ? int(float(x[from])) : 0;
    else
        y[to] = there ? STORED(float(from_words[from])) : STORED(0.0);
#else
    y[to] = there ? x[from] : STORED(0.0);
#endif
}
