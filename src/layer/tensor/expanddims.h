#ifndef QUOLL_LAYER_EXPANDDIMS_H
#define QUOLL_LAYER_EXPANDDIMS_H

#include "layer/common/schema.h"

namespace quoll {

// Adds axes of size 1 where they stand in the output, 0 being the outermost, -1 the innermost. As
// in ncnn, a blob that would have more than 4 axes stays as it is, and so does one whose given axes
// all lie beyond the output; an axis given twice adds one in front. The output shares the input's
// memory where the layout allows.
class ExpandDims : public Operator<ExpandDims> {
public:
    ExpandDims();
    static void params(ExpandDims& s, ParamVisitor& v);
    static void weights(ExpandDims& s, WeightVisitor& v);
    static int shape(const ExpandDims& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;
    unsigned traits() const override { return kMovesValues | kSharesMemory; }

    Mat axes;
};

}  // namespace quoll

#endif
