#ifndef QUOLL_LAYER_FLATTEN_H
#define QUOLL_LAYER_FLATTEN_H

#include "layer/common/schema.h"

namespace quoll {

// All values in one axis, order c d h w. Shares the memory where channels have no gaps.
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
