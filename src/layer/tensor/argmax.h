#ifndef QUOLL_LAYER_ARGMAX_H
#define QUOLL_LAYER_ARGMAX_H

#include "layer/common/schema.h"

namespace quoll {

// Finds the topk largest values of a blob, largest first; values are numbered in the order c d h w.
// Among equal values the last comes first, and NaN comes before everything. The output is topk x 1,
// the indexes, or, if out_max_val is set, topk x 2, the values and then the indexes. It is f32, so
// that indexes are exact up to 2^24.
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
