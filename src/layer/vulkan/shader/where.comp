// Where: values of one of two blobs, of floats or (INTS) integers, as a third one says.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"

#ifdef INTS
#define VALUE int
#else
#define VALUE SCALAR
#endif
layout(set = 0, binding = 0) readonly buffer Condition { int condition[]; };
layout(set = 0, binding = 1) readonly buffer Left { VALUE left[]; };
layout(set = 0, binding = 2) readonly buffer Right { VALUE right[]; };
layout(set = 0, binding = 3) writeonly buffer Output { VALUE y[]; };
layout(push_constant) uniform Push {
    uint count, c_first, left_first, right_first, y_first;
    uint sizes[5], c_steps[5], left_steps[5], right_steps[5];
};

void main() {
    const uint number = linear_index();
    if (number >= count) return;
    uint i = number, c = c_first, l = left_first, r = right_first;
    for (int axis = 0; axis < 5; axis++) {
        const uint rest = i / sizes[axis], at = i - rest * sizes[axis];
        c += at * c_steps[axis];
        l += at * left_steps[axis];
        r += at * right_steps[axis];
        i = rest;
    }
    y[y_first + number] = condition[c] != 0 ? left[l] : right[r];
}
