#ifndef QUOLL_LAYER_FOLD_H
#define QUOLL_LAYER_FOLD_H

#include "layer/common/window_fields.h"

namespace quoll {

// The adjoint of Unfold (col2im): adds up the columns in an image of output_w x output_h; what lies
// in the padding is dropped.
class Fold : public Operator<Fold>, public WindowFields {
public:
    Fold();
    static void params(Fold& s, ParamVisitor& v);
    static void weights(Fold& s, WeightVisitor& v);
    static int shape(const Fold& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;

    int output_w, output_h;

private:
    int geometry(const Shape& in, WindowAxis* x, WindowAxis* y) const;
};

}  // namespace quoll

#endif
