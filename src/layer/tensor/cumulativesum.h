#ifndef QUOLL_LAYER_CUMULATIVESUM_H
#define QUOLL_LAYER_CUMULATIVESUM_H

#include "layer/common/schema.h"

namespace quoll {

// Each value becomes the sum of the values up to and including it along an axis. The parameter axis
// is ignored for a 1-D input.
class CumulativeSum : public Operator<CumulativeSum> {
public:
    CumulativeSum();
    static void params(CumulativeSum& s, ParamVisitor& v);
    static void weights(CumulativeSum& s, WeightVisitor& v);
    static int shape(const CumulativeSum& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward_inplace(Mat& blob, const Option& opt) const override;

    int axis;
};

}  // namespace quoll

#endif
