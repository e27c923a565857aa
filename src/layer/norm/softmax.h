#ifndef QUOLL_LAYER_SOFTMAX_H
#define QUOLL_LAYER_SOFTMAX_H

#include "layer/common/schema.h"

namespace quoll {

// y = e^x / sum of e^x along one axis (0: the outermost, -1: the innermost).
class Softmax : public Operator<Softmax> {
public:
    Softmax();
    static void params(Softmax& s, ParamVisitor& v);
    static void weights(Softmax& s, WeightVisitor& v);
    static int shape(const Softmax& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int forward_inplace(Mat& blob, const Option& opt) const override;

    int axis;
    int fixbug0;
};

}  // namespace quoll

#endif
