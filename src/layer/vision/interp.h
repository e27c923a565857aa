#ifndef QUOLL_LAYER_INTERP_H
#define QUOLL_LAYER_INTERP_H

#include "layer/common/expression.h"
#include "layer/common/schema.h"

namespace quoll {

// Resizes w and h of each plane of input 0, or w alone if it has 2 axes. A blob of 1 axis counts as
// channels of 1 x 1: each becomes a constant plane. Nearest takes s8, too, of 2 axes or more.
//
// The output's size is, in this order of precedence: size_expr, a list w, h of expressions in the
// inputs' sizes; the size of input 1, if dynamic_target_size is set; output_width and
// output_height; or, if one of these is 0, the input's size times width_scale and height_scale,
// rounded down.
class Interp : public Operator<Interp> {
public:
    enum ResizeType { kNearest = 1, kBilinear, kBicubic };

    Interp();
    static void params(Interp& s, ParamVisitor& v);
    static void weights(Interp& s, WeightVisitor& v);
    static int shape(const Interp& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    // The source indexes (in bounds) and factors for one index of the output; there are taps_of()
    // of them.
    struct Taps {
        int index[4];
        float factor[4];
    };
    int taps_of() const { return resize_type == kNearest ? 1 : resize_type == kBicubic ? 4 : 2; }
    // For each index of an output axis. `step`: input values for one of the output.
    std::vector<Taps> taps(int size, int out_size, double step) const;

    int resize_type = 0;
    float height_scale = 1.f, width_scale = 1.f;
    int output_height = 0, output_width = 0;
    int dynamic_target_size = 0;
    // Bilinear and bicubic: the centres of the corner values of input and output coincide, instead
    // of their outer edges.
    int align_corner = 0;
    std::string size_expr;

    // Whether the output is the input: the sizes are the same, and no scale shifts it.
    bool unchanged(const Shape& in, const Shape& out) const;
    std::vector<Taps> column_taps(int size, int out_size) const;
    std::vector<Taps> row_taps(int size, int out_size) const;

private:
    // True if scales, not sizes, decide.
    bool by_scale() const;
    int target_size(const std::vector<Shape>& in, int* w, int* h) const;

    Expression expression_;
};

}  // namespace quoll

#endif
