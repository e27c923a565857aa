// TensorBinary with integers as output: comparisons of floats, and of integers (INTS) also
// arithmetic, logic and bits. Operations by their number in layer/elementwise/tensorbinary.h.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"
#include "integers.glsl"
#include "math.glsl"

layout(constant_id = 0) const int kOperation = 0;
layout(constant_id = 1) const int kType = kS32;  // of the output
#ifdef INTS
#define OPERAND int
layout(set = 0, binding = 0) readonly buffer Left { int left[]; };
layout(set = 0, binding = 1) readonly buffer Right { int right[]; };
#else
#define OPERAND float
READS(0, Left, left);
READS(1, Right, right);
#endif
layout(set = 0, binding = 2) writeonly buffer Output { int y[]; };
layout(push_constant) uniform Push {
    uint count, left_first, right_first, y_first;
    uint sizes[5], left_steps[5], right_steps[5];
};

bool compared(OPERAND a, OPERAND b) {
#ifndef INTS
    if (is_nan(a) || is_nan(b)) return false;
#endif
    switch (kOperation) {
        case 9:
            return a == b;
        case 10:
            return a < b;
        case 11:
            return a > b;
        case 12:
            return a <= b;
    }
    return a >= b;
}

int result(OPERAND a, OPERAND b) {
    if (kOperation >= 9 && kOperation <= 13) return int(compared(a, b));
#ifdef INTS
    switch (kOperation) {
        case 0:
            return a + b;
        case 1:
            return a - b;
        case 2:
            return a * b;
        case 7:
            return max(a, b);
        case 8:
            return min(a, b);
        case 14:
            return int(a != 0 && b != 0);
        case 15:
            return int(a != 0 || b != 0);
        case 16:
            return int((a != 0) != (b != 0));
        case 17:
            return a & b;
        case 18:
            return a | b;
        case 19:
            return a ^ b;
    }
#endif
    return 0;
}

void main() {
    const uint number = linear_index();
    if (number >= count) return;
    uint i = number, l = left_first, r = right_first;
    for (int axis = 0; axis < 5; axis++) {
        const uint rest = i / sizes[axis], at = i - rest * sizes[axis];
        l += at * left_steps[axis];
        r += at * right_steps[axis];
        i = rest;
    }
    y[y_first + number] = wrapped(result(OPERAND(left[l]), OPERAND(right[r])), kType);
}
