#ifndef QUOLL_LAYER_FLIP_H
#define QUOLL_LAYER_FLIP_H

#include "layer/common/schema.h"

namespace quoll {

// Reverses the order along the given axes (0 is the outermost, -1 the innermost).
class Flip : public Operator<Flip> {
public:
    Flip();
    static void params(Flip& s, ParamVisitor& v);
    static void weights(Flip& s, WeightVisitor& v);
    static int shape(const Flip& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;

    Mat axes;  // s32
};

}  // namespace quoll

#endif
