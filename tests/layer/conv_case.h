// Cases of the convolution-like operators.
#ifndef QUOLL_TESTS_LAYER_CONV_CASE_H
#define QUOLL_TESTS_LAYER_CONV_CASE_H

#include "layer_test.h"

namespace quoll {

// `outputs` channels from those of `in`, its outermost axis, with kernel x ... x kernel windows
// over the other axes; group 0: the operator has no groups. `more` are further params.
inline LayerCase conv_case(Shape in, int outputs, int kernel, const std::string& more = "",
                           int group = 0) {
    int terms = in.size(0) / std::max(1, group);
    for (int axis = 1; axis < in.dims; axis++) terms *= kernel;
    std::string params = "0=" + std::to_string(outputs) + " 1=" + std::to_string(kernel) +
                         " 6=" + std::to_string(outputs * terms) + " " + more;
    if (group) params += " 7=" + std::to_string(group);
    return LayerCase({in}, params).terms(terms);
}

// s8 with zero points, which spread the sums wider.
inline LayerCase affine(LayerCase layer) {
    return layer.range(-128, 127).int8_weights().weights("top_blob_int8_scales", 0.2f, 0.4f);
}

// Inputs of 16 bits, in steps that some of them leave.
inline LayerCase int16(LayerCase layer) {
    return layer.int8_weights().weights("bottom_blob_int8_scales", 33000, 34000);
}

}  // namespace quoll

#endif
