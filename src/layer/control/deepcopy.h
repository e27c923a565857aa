#ifndef QUOLL_LAYER_DEEPCOPY_H
#define QUOLL_LAYER_DEEPCOPY_H

#include "layer/common/schema.h"

namespace quoll {

// A copy that shares no memory with the input.
class DeepCopy : public Operator<DeepCopy> {
public:
    DeepCopy();
    static void params(DeepCopy& s, ParamVisitor& v);
    static void weights(DeepCopy& s, WeightVisitor& v);
    static int shape(const DeepCopy& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;
};

}  // namespace quoll

#endif
