#ifndef QUOLL_LAYER_INTERP_H
#define QUOLL_LAYER_INTERP_H

#include "layer/common/expression.h"
#include "layer/common/schema.h"

namespace quoll {

// Resizes w and h of input 0; w alone if it has 2 axes; each plane by itself if it has 3 or 4. A
// blob of 1 axis counts as channels of 1 x 1: each becomes a constant plane.
//
// The output's size: size_expr, a list w, h over the inputs' sizes; without one that of input 1 if
// dynamic_target_size is set; else output_width and output_height; else, if one of them is 0, the
// input's times width_scale and height_scale, rounded down.
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

    // The source indexes (in bounds) and factors for one index of the output, as many as taps_of().
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
    // Bilinear and bicubic: the corners of input and output fall on each other, in place of the
    // outer edges of the corner values.
    int align_corner = 0;
    std::string size_expr;

    // The output is the input: same size, and no shift by a scale.
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
