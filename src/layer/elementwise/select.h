#ifndef QUOLL_LAYER_SELECT_H
#define QUOLL_LAYER_SELECT_H

#include "layer/common/tensor.h"

namespace quoll {

// Inputs: a condition (one value), yes, no. The output is `yes` if the condition is not 0,
// otherwise `no`, unchanged; what only the other one depends on is not computed. If `only` is 1 or
// 2, there is only that input, and a condition that chooses the other is an error. ONNX If. Without
// `no` it is a check: the output is `yes`, and a condition that is 0 is an error.
class Select : public TensorOperator<Select> {
public:
    Select();
    static void params(Select& s, ParamVisitor& v);
    static int shape(const Select& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    // Which input the condition chooses, 1 or 2, or a negative code.
    int choose_input(const Mat& condition) const;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;

    int only = 0;

private:
    int chosen_input(const Mat& condition) const;
    int pass_checked(const std::vector<Mat>& bottoms, Mat* top) const;
};

}  // namespace quoll

#endif
