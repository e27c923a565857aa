#ifndef QUOLL_LAYER_SCATTER_H
#define QUOLL_LAYER_SCATTER_H

#include "layer/common/tensor.h"

namespace quoll {

// How an update is combined with the value that is there; ints wrap.
enum class ScatterReduction { kReplace, kAdd, kMultiply, kMax, kMin };

// A copy of data with out[indices[i][j]][j] = updates[i][j] for axis 0, and correspondingly for
// other axes. Inputs: data, indices (s32), updates. ONNX ScatterElements.
class ScatterElements : public TensorOperator<ScatterElements> {
public:
    static void params(ScatterElements& s, ParamVisitor& v);
    static int shape(const ScatterElements& s, const std::vector<Shape>& in,
                     std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int axis = 0;
    int reduction = 0;
};

// A copy of data with slices replaced by updates. Inputs: data, indices (s32), whose innermost axis
// holds indexes of data's first axes, and updates, one slice for each. ONNX ScatterND.
class ScatterND : public TensorOperator<ScatterND> {
public:
    static void params(ScatterND& s, ParamVisitor& v);
    static int shape(const ScatterND& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int reduction = 0;
};

}  // namespace quoll

#endif
