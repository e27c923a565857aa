#ifndef QUOLL_LAYER_SPLIT_H
#define QUOLL_LAYER_SPLIT_H

#include "layer/common/schema.h"

namespace quoll {

// Gives its one input to several consumers: every output shares the input's memory.
class Split : public Operator<Split> {
public:
    Split();
    static void params(Split& s, ParamVisitor& v);
    static void weights(Split& s, WeightVisitor& v);
    static int shape(const Split& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    unsigned traits() const override { return kSharesMemory; }
};

}  // namespace quoll

#endif
