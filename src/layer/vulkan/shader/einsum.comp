// Sums of products of two operands of any steps: an invocation for each value of the output.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"

layout(constant_id = 0) const bool kTwo = true;  // else the first operand alone is summed up
READS(0, Left, left);
READS(1, Right, right);
WRITES(2, Output, y);
layout(push_constant) uniform Push {
    uint count, left_first, right_first, y_first;
    uint sizes[4], left_steps[4], right_steps[4], y_steps[4];
    // Of the axes that are summed over.
    uint lengths[4], left_along[4], right_along[4];
};

void main() {
    const uint number = linear_index();
    if (number >= count) return;
    uint l = left_first, r = right_first, to = y_first, rest = number;
    for (int axis = 0; axis < 4; axis++) {
        const uint at = rest % sizes[axis];
        rest /= sizes[axis];
        l += at * left_steps[axis];
        r += at * right_steps[axis];
        to += at * y_steps[axis];
    }
    float sum = 0.0;
    for (uint i = 0u; i < lengths[0]; i++) {
        for (uint j = 0u; j < lengths[1]; j++) {
            for (uint k = 0u; k < lengths[2]; k++) {
                const uint a = l + i * left_along[0] + j * left_along[1] + k * left_along[2];
                const uint b = r + i * right_along[0] + j * right_along[1] + k * right_along[2];
                for (uint m = 0u; m < lengths[3]; m++) {
                    const float v = float(left[a + m * left_along[3]]);
                    sum += kTwo ? v * float(right[b + m * right_along[3]]) : v;
                }
            }
        }
    }
    y[to] = STORED(sum);
}
