#ifndef QUOLL_LAYER_RESHAPE_H
#define QUOLL_LAYER_RESHAPE_H

#include "layer/common/expression.h"
#include "layer/common/schema.h"

namespace quoll {

// The same values in another shape, in the order c d h w. The output shares the input's memory
// where the layout allows. Input 0 is the data; further inputs only provide sizes for shape_expr.
//
// Each item of a batch is reshaped by itself, unless a batch axis is given: then the values are
// those of one array that has the batch at that place among its axes (0: outermost), and the sizes,
// up to five, are those of such an array. With input_batch_axis alone the output has no batch, its
// items being in the other axes; with output_batch_axis alone it is the input that has none.
class Reshape : public Operator<Reshape> {
public:
    enum { kNoBatchAxis = 233 };

    Reshape();
    static void params(Reshape& s, ParamVisitor& v);
    static void weights(Reshape& s, WeightVisitor& v);
    static int shape(const Reshape& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    unsigned traits() const override { return kMovesValues | kSharesMemory; }

    // 0: the input's size on that axis. -1: what remains. -233: no such axis.
    int w = 0, h = 0, d = 0, c = 0;
    // 1: the values are taken and laid out in the order d h w c instead (at most 3 axes).
    int permute = 0;
    // A list of w, h, c or w, h, d, c that replaces the numbers above.
    std::string shape_expr;
    // Where the batch count stands in the values' order, negative: from the end, 233: it has no
    // place.
    int input_batch_axis = kNoBatchAxis, output_batch_axis = kNoBatchAxis;

protected:
    bool has_batch_axis() const {
        return input_batch_axis != kNoBatchAxis || output_batch_axis != kNoBatchAxis;
    }

private:
    int wanted_sizes(const std::vector<Shape>& in, std::vector<int>* sizes) const;
    int complete_sizes(const Shape& in, long long total, std::vector<int>* sizes) const;
    int shape_with_batch_axes(const std::vector<Shape>& in, Shape* out) const;
    int forward_with_batch_axes(const Mat& bottom, Mat& top, const Shape& to,
                                const Option& opt) const;
    int forward_permuted(const Mat& bottom, Mat& top, const Shape& to, const Option& opt) const;

    Expression expression_;
};

}  // namespace quoll

#endif
