#ifndef QUOLL_LAYER_LRN_H
#define QUOLL_LAYER_LRN_H

#include "layer/common/schema.h"

namespace quoll {

// Local response normalisation, y = x * (bias + alpha / n * sum of x^2 over a neighbourhood)^-beta.
// Across channels (region_type 0): local_size channels around, n = local_size. Within a channel
// (1): local_size x local_size pixels around, n = local_size^2. An even size reaches one further
// down than up. What lies outside counts as 0. Blobs have at most 3 axes. A negative alpha or bias
// may lead to powers of negative numbers: they are NaN unless beta is a whole number (in ncnn too,
// within a channel; across channels its vector code gives meaningless numbers).
class LRN : public Operator<LRN> {
public:
    LRN();
    static void params(LRN& s, ParamVisitor& v);
    static void weights(LRN& s, WeightVisitor& v);
    static int shape(const LRN& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;
    // Whether the base of the power may be negative, for which logarithms do not work.
    bool has_negative_powers() const { return !(alpha >= 0.f && bias >= 0.f); }

    int region_type;
    int local_size;
    float alpha;
    float beta;
    float bias;
};

}  // namespace quoll

#endif
