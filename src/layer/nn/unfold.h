#ifndef QUOLL_LAYER_UNFOLD_H
#define QUOLL_LAYER_UNFOLD_H

#include "layer/common/window_fields.h"

namespace quoll {

// The windows of an image as columns (im2col): [c, h, w] becomes a matrix with a row for each
// (channel, kernel row, kernel column) and a column for each place of the window, row by row.
class Unfold : public Operator<Unfold>, public WindowFields {
public:
    Unfold();
    static void params(Unfold& s, ParamVisitor& v);
    static void weights(Unfold& s, WeightVisitor& v);
    static int shape(const Unfold& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;

    float pad_value;
};

}  // namespace quoll

#endif
