#ifndef QUOLL_LAYER_SCATTER_H
#define QUOLL_LAYER_SCATTER_H

#include "layer/common/tensor.h"

namespace quoll {

// How an update meets the value that is there; ints wrap.
enum class ScatterReduction { kReplace, kAdd, kMultiply, kMax, kMin };

// Inputs: data, indices (s32), updates. data with out[indices[i][j]][j] = updates[i][j] for axis
// 0, and so on. ONNX ScatterElements.
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

// Inputs: data, indices (s32), whose innermost axis holds indexes of data's first axes, updates:
// the parts of data that they name. ONNX ScatterND.
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
