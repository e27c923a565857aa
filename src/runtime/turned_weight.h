// Weights that are stored the other way round: kTagByInputs.
#ifndef QUOLL_RUNTIME_TURNED_WEIGHT_H
#define QUOLL_RUNTIME_TURNED_WEIGHT_H

#include <stddef.h>

#include "quoll/mat.h"

namespace quoll {

// f32 [inputs][outputs] at any alignment, as a Mat of two axes, or of three of which the middle one
// is 1: then rows are cstep values apart. (Weights of one axis are [outputs][inputs].)
struct WeightByInputs {
    explicit WeightByInputs(const Mat& m)
        : data((const unsigned char*)m.data),
          inputs((size_t)(m.dims == 3 ? m.c : m.h)),
          outputs((size_t)m.w),
          step(m.dims == 3 ? m.cstep : (size_t)m.w) {}
    static bool is(const Mat& m) { return m.dims > 1; }
    const unsigned char* row(size_t input) const { return data + input * step * sizeof(float); }
    bool aligned() const { return (size_t)data % sizeof(float) == 0; }
    // Empty when memory runs out.
    Mat copy() const;
    Mat turned() const;  // 1-D

    const unsigned char* data;
    size_t inputs, outputs, step;
};

}  // namespace quoll

#endif
