// Values, or whole numbers (FROM_INT, TO_INT) of or to a word each, from strides to strides over up to six axes, the first one the fastest of the output.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"

#ifdef FROM_INT
layout(set = 0, binding = 0) readonly buffer Input { int x[]; };
#define VALUE(i) STORED(float(x[i]))
#else
READS(0, Input, x);
#define VALUE(i) x[i]
#endif
#ifdef TO_INT
layout(set = 0, binding = 1) writeonly buffer Output { int y[]; };
#define MADE(v) int(float(v))
#else
WRITES(1, Output, y);
#define MADE(v) v
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
    y[to] = MADE((there ? VALUE(from) : STORED(0.0)));
}
