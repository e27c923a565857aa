// Axes of values for shaders that go through strides.
#ifndef QUOLL_LAYER_VULKAN_AXES_H
#define QUOLL_LAYER_VULKAN_AXES_H

#include "layer/vulkan/vulkan_layer.h"

namespace quoll {

// The index in [w, h, d, c, n] of an axis counted from the outermost, as operators' parameters do.
inline int axis_index(int dims, int axis) {
    const int index = dims - 1 - axis;          // from the innermost
    return dims == 3 && axis == 0 ? 3 : index;  // c of three axes
}

// Of the five axes w, h, d, c, n.
struct MemoryAxes {
    uint32_t sizes[5], steps[5];
    int order[5];    // the fastest first
    uint32_t valid;  // of the fastest one; stored[0] are to be written
    // sizes in the order of the memory, those of channels-last pixels with the channels behind the
    // last one.
    uint32_t stored[5];

    uint32_t step(int dims, int axis) const { return steps[axis_index(dims, axis)]; }
    uint32_t count() const { return stored[0] * stored[1] * stored[2] * stored[3] * stored[4]; }
};

inline MemoryAxes memory_axes(const Value& value) {
    const Shape& s = value.shape;
    const Strides t = value.strides();
    const bool last = value.layout == Layout::kChannelsLast;
    MemoryAxes a = {{(uint32_t)s.w, (uint32_t)s.h, (uint32_t)s.d, (uint32_t)s.c, (uint32_t)s.n},
                    {t.w, t.h, t.d, t.c, t.n},
                    {0, 1, 2, 3, 4},
                    0,
                    {}};
    const int last_order[] = {3, 0, 1, 2, 4};
    for (int i = 0; i < 5 && last; i++) a.order[i] = last_order[i];
    for (int i = 0; i < 5; i++) a.stored[i] = a.sizes[a.order[i]];
    a.valid = a.stored[0];
    if (last) a.stored[0] = round4(a.stored[0]);
    return a;
}

// Pushes the steps of `value` in the order of another one's memory.
inline void push_steps(const uint32_t steps[5], const MemoryAxes& like, Words* push) {
    for (int i = 0; i < 5; i++) push->push_back(steps[like.order[i]]);
}

// Steps of an input along the axes of the output, `first` being that of its outermost one; 0 where
// its values are repeated.
inline void spread_steps(const Value& in, int first, const Value& out, uint32_t steps[5]) {
    const MemoryAxes own = memory_axes(in);
    for (int i = 0; i < 5; i++) steps[i] = 0;
    for (int axis = 0; axis < in.shape.dims; axis++)
        if (in.shape.size(axis) > 1)
            steps[axis_index(out.shape.dims, first + axis)] = own.step(in.shape.dims, axis);
    if (in.shape.n > 1) steps[4] = own.steps[4];
}

}  // namespace quoll

#endif
