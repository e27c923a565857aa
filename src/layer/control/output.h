#ifndef QUOLL_LAYER_OUTPUT_H
#define QUOLL_LAYER_OUTPUT_H

#include "layer/common/tensorspec.h"

namespace quoll {

// Passes its input through, sharing its memory; the parameters say which array of the original
// model it represents.
class Output : public Operator<Output> {
public:
    Output();
    static void params(Output& s, ParamVisitor& v);
    static void weights(Output& s, WeightVisitor& v);
    static int shape(const Output& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;
    unsigned traits() const override { return kSharesMemory; }

    TensorSpec array;
};

}  // namespace quoll

#endif
