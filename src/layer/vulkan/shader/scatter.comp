// Scatters updates to computed indexes of y, which holds the data, one after the other in the order
// of the CPU. An invocation does all updates that may have the same target: a line along the axis
// (ScatterElements), or one value of each part (ScatterND). Wrong indexes are noted in `faults`.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"
#include "integers.glsl"

#ifdef INTS
#define VALUE int
#define NUMBER int
#define IS_NAN(x) false
#else
#include "math.glsl"
#define VALUE SCALAR
#define NUMBER float
#define IS_NAN(x) is_nan(x)
#endif
layout(constant_id = 0) const int kReduction = 0;  // ScatterReduction
layout(constant_id = 1) const int kType = kS32;    // of INTS
layout(set = 0, binding = 0) readonly buffer Indexes { int indexes[]; };
layout(set = 0, binding = 1) readonly buffer Updates { VALUE updates[]; };
layout(set = 0, binding = 2) buffer Output { VALUE y[]; };
layout(set = 0, binding = 3) buffer Faults { int faults[]; };
// `length` updates of a line; `depth` neighbouring indexes choose along as many axes of y.
layout(push_constant) uniform Push {
    uint lines, length, depth, index_first, update_first, y_first, index_step, update_step;
    uint sizes[4], index_steps[4], update_steps[4], y_steps[4];
    uint chosen_sizes[4], chosen_steps[4];
};

// An update replaces NaN and may be NaN. Comparisons with a choice do not give that: NVIDIA's compiler
// makes max() of them.
NUMBER met(NUMBER a, NUMBER b) {
    if (kReduction >= 3 && (IS_NAN(a) || IS_NAN(b))) return b;
    switch (kReduction) {
        case 1:
            return a + b;
        case 2:
            return a * b;
        case 3:
            return max(a, b);
        case 4:
            return min(a, b);
    }
    return b;
}

void main() {
    const uint line = linear_index();
    if (line >= lines) return;
    uint at_index = index_first, from = update_first, to = y_first, rest = line;
    for (int axis = 0; axis < 4; axis++) {
        const uint at = rest % sizes[axis];
        rest /= sizes[axis];
        at_index += at * index_steps[axis];
        from += at * update_steps[axis];
        to += at * y_steps[axis];
    }
    for (uint i = 0u; i < length; i++) {
        uint there = to;
        bool wrong = false;
        for (uint k = 0u; k < depth; k++) {
            const int index = indexes[at_index + i * index_step + k], size = int(chosen_sizes[k]);
            const int place = index < 0 ? index + size : index;
            if (place < 0 || place >= size) {
                wrong = true;
                if (atomicCompSwap(faults[0], 0, 1) == 0) {
                    faults[1] = index;
                    faults[2] = size;
                }
            } else {
                there += uint(place) * chosen_steps[k];
            }
        }
        if (wrong) continue;
        const NUMBER v = met(NUMBER(y[there]), NUMBER(updates[from + i * update_step]));
#ifdef INTS
        y[there] = wrapped(v, kType);
#else
        y[there] = STORED(v);
#endif
    }
}
