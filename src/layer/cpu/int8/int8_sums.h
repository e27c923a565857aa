// The product of rows, whose scales are found in each run, and a constant s8 matrix.
#ifndef QUOLL_LAYER_CPU_INT8_INT8_SUMS_H
#define QUOLL_LAYER_CPU_INT8_INT8_SUMS_H

#include "layer/cpu/int8/int8_matrix.h"

#if !defined(QUOLL_NO_INT8)

namespace quoll {

class Int8Sums {
public:
    // weights: s8, a row of one output after the other. Nothing is created, and kOk returned, where
    // their sums do not fit.
    int create(const Layer& layer, const Mat& weights, int outputs);
    bool created() const { return matrix_.created(); }
    // scales: of each row of f32, or one for all (`one`), as int8_scale() finds them. sums: f32
    // [outputs] a row, of integers, to be divided by the scales.
    int forward(const float* rows, size_t row_step, int count, bool one, Mat* scales, Mat* sums,
                const Option& opt) const;

private:
    Int8Matrix matrix_;
    int inputs_ = 0, outputs_ = 0;
};

}  // namespace quoll

#endif

#endif
