// Values by indexes: of one axis (Gather, GatherElements), or of several at once (GatherND). A wrong
// one is noted in `faults`, and counts as 0.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"

#ifdef INTS
#define VALUE int
#else
#define VALUE SCALAR
#endif
layout(set = 0, binding = 0) readonly buffer Input { VALUE x[]; };
layout(set = 0, binding = 1) readonly buffer Indexes { int indexes[]; };
layout(set = 0, binding = 2) writeonly buffer Output { VALUE y[]; };
layout(set = 0, binding = 3) buffer Faults { int faults[]; };
// Axes of the output; then those of the input that `depth` neighbouring indexes choose.
layout(push_constant) uniform Push {
    uint count, x_first, index_first, y_first, depth;
    uint sizes[5], x_steps[5], index_steps[5];
    uint chosen_sizes[4], chosen_steps[4];
};

void main() {
    const uint number = linear_index();
    if (number >= count) return;
    uint i = number, from = x_first, at_index = index_first;
    for (int axis = 0; axis < 5; axis++) {
        const uint rest = i / sizes[axis], at = i - rest * sizes[axis];
        from += at * x_steps[axis];
        at_index += at * index_steps[axis];
        i = rest;
    }
    for (uint k = 0u; k < depth; k++) {
        const int index = indexes[at_index + k], size = int(chosen_sizes[k]);
        const int there = index < 0 ? index + size : index;
        const bool wrong = there < 0 || there >= size;
        if (wrong && atomicCompSwap(faults[0], 0, 1) == 0) {
            faults[1] = index;
            faults[2] = size;
        }
        if (!wrong) from += uint(there) * chosen_steps[k];
    }
    y[y_first + number] = x[from];
}
