#ifndef QUOLL_LAYER_RESHAPE_H
#define QUOLL_LAYER_RESHAPE_H

#include "expression.h"
#include "schema.h"

namespace quoll {

// The same values in another shape, order c d h w; shares the memory where the layout allows.
// Input 0 is the data, further ones only give sizes to shape_expr.
class Reshape : public Operator<Reshape> {
public:
    Reshape();
    static void params(Reshape& s, ParamVisitor& v);
    static void weights(Reshape& s, WeightVisitor& v);
    static int shape(const Reshape& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    // 0: the input's size on that axis. -1: what remains. -233: no such axis.
    int w = 0, h = 0, d = 0, c = 0;
    // 1: the values are taken and laid out in the order d h w c instead (at most 3 axes).
    int permute = 0;
    // A list of w, h, c or w, h, d, c that replaces the numbers above.
    std::string shape_expr;

private:
    int wanted_sizes(const std::vector<Shape>& in, std::vector<int>* sizes) const;
    int forward_permuted(const Mat& bottom, Mat& top, const Shape& to, const Option& opt) const;

    Expression expression_;
};

}  // namespace quoll

#endif
