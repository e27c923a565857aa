// Scales and biases of Quantize, Dequantize and Requantize: one for all, or one for each channel
// (row of a 2-D blob). A 1-D blob uses the first, as in ncnn.
#ifndef QUOLL_LAYER_CHANNEL_FACTORS_H
#define QUOLL_LAYER_CHANNEL_FACTORS_H

#include "layer/common/schema.h"

namespace quoll {

// Are there as many factors as the input needs? Logs and returns a negative code.
inline int check_factors(const Layer& layer, const char* name, const Mat& factors,
                         const Shape& in) {
    if (factors.w <= 1 || in.dims == 1 || factors.w == in.size(0)) return kOk;
    return layer.fail("%s: expected 1 or %d values, got %d", name, in.size(0), factors.w);
}

// The factors that apply to a blob of `dims` axes.
inline Mat factors_for(const Mat& factors, int dims) {
    return dims == 1 && factors.w > 1 ? factors.range(0, 1) : factors;
}

}  // namespace quoll

#endif
