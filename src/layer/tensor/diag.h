#ifndef QUOLL_LAYER_DIAG_H
#define QUOLL_LAYER_DIAG_H

#include "layer/common/schema.h"

namespace quoll {

// A 1-D input becomes the diagonal of a square matrix that is zero elsewhere. From a 2-D input the
// diagonal is taken; it has no values if it lies outside the matrix. A positive `diagonal` lies
// above the main one, a negative one below.
class Diag : public Operator<Diag> {
public:
    Diag();
    static void params(Diag& s, ParamVisitor& v);
    static void weights(Diag& s, WeightVisitor& v);
    static int shape(const Diag& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;

    int diagonal;
};

}  // namespace quoll

#endif
