#ifndef QUOLL_LAYER_ARGMAX_H
#define QUOLL_LAYER_ARGMAX_H

#include "layer/common/schema.h"

namespace quoll {

// The topk largest values of a blob and their indexes in the order c d h w, largest first; of equal
// ones the last first, NaN before all. Output topk x 1 of indexes, or topk x 2 of values, then
// indexes, if out_max_val is set; f32, so that indexes are exact up to 2^24.
class ArgMax : public Operator<ArgMax> {
public:
    ArgMax();
    static void params(ArgMax& s, ParamVisitor& v);
    static void weights(ArgMax& s, WeightVisitor& v);
    static int shape(const ArgMax& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;

    int out_max_val = 0;
    int topk = 1;
};

}  // namespace quoll

#endif
