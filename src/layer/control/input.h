#ifndef QUOLL_LAYER_INPUT_H
#define QUOLL_LAYER_INPUT_H

#include "layer/common/tensorspec.h"

namespace quoll {

// A blob that the user gives through Extractor::input. The size is a hint; any size may be given.
class Input : public Operator<Input> {
public:
    Input();
    static void params(Input& s, ParamVisitor& v);
    static void weights(Input& s, WeightVisitor& v);
    static int shape(const Input& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward_inplace(Mat& blob, const Option& opt) const override;

    int w, h, d, c;
    TensorSpec array;
};

}  // namespace quoll

#endif
