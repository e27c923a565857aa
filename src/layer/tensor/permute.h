#ifndef QUOLL_LAYER_PERMUTE_H
#define QUOLL_LAYER_PERMUTE_H

#include "layer/common/schema.h"

namespace quoll {

// Reorders the axes. order_type is the number of an order, which names the output's axes, w first:
//   2 axes: 0 wh, 1 hw
//   3 axes: 0 whc, 1 hwc, 2 wch, 3 cwh, 4 hcw, 5 chw
//   4 axes: 6 * last + n: the last axis is c, d, h, w for last = 0, 1, 2, 3; n orders the three
//           others a b d as 0 abd, 1 bad, 2 adb, 3 dab, 4 bda, 5 dba (a, b, d in order w h d c).
class Permute : public Operator<Permute> {
public:
    Permute();
    static void params(Permute& s, ParamVisitor& v);
    static void weights(Permute& s, WeightVisitor& v);
    static int shape(const Permute& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;
    unsigned traits() const override { return kMovesValues; }

    // source[i] is the input axis that output axis i takes; axes counted from the outermost.
    int axis_order(int dims, int source[4]) const;

    int order_type = 0;
    // Set by a graph pass: the readers take channels in blocks.
    bool feeds_channels = false;
};

}  // namespace quoll

#endif
