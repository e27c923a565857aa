#ifndef QUOLL_LAYER_GLU_H
#define QUOLL_LAYER_GLU_H

#include "layer/common/schema.h"

namespace quoll {

// Gated linear unit: the first half of an axis times the sigmoid of the second. If the size is odd,
// the last index is left out. The parameter axis is ignored for a 1-D input.
class GLU : public Operator<GLU> {
public:
    GLU();
    static void params(GLU& s, ParamVisitor& v);
    static void weights(GLU& s, WeightVisitor& v);
    static int shape(const GLU& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;

    int axis;
};

}  // namespace quoll

#endif
