#ifndef QUOLL_LAYER_FLATTEN_H
#define QUOLL_LAYER_FLATTEN_H

#include "layer/common/schema.h"

namespace quoll {

// All values on one axis, in the order c d h w. The output shares the input's memory if there are
// no gaps between channels.
class Flatten : public Operator<Flatten> {
public:
    Flatten();
    static void params(Flatten& s, ParamVisitor& v);
    static void weights(Flatten& s, WeightVisitor& v);
    static int shape(const Flatten& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;
    unsigned traits() const override { return kMovesValues | kSharesMemory; }
};

}  // namespace quoll

#endif
