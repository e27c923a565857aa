#ifndef QUOLL_LAYER_CROP_H
#define QUOLL_LAYER_CROP_H

#include "layer/common/blocks.h"
#include "layer/common/expression.h"
#include "layer/common/schema.h"

namespace quoll {

// A rectangular part of input 0, given in one of these forms:
// - starts, ends and axes, as numbers or as lists of expressions (which may refer to the sizes of
//   further inputs). Negative numbers count from the end; an end of 0 or -233 is the end of the
//   axis; ends beyond it are clamped. Without axes, starts and ends are those of axis 0 and the
//   following ones.
// - two inputs: the size is that of input 1, the offsets are parameters; if woffset is -233, input
//   1 holds s32 values w h c offsets, then w h c sizes (w h d c each if input 0 has 4 axes).
// - offsets and sizes: a size of -233 is everything up to the tail offset (woffset2, ...).
class Crop : public Operator<Crop> {
public:
    Crop();
    static void params(Crop& s, ParamVisitor& v);
    static void weights(Crop& s, WeightVisitor& v);
    static int shape(const Crop& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    unsigned traits() const override { return kMovesValues; }

    int woffset = 0, hoffset = 0, doffset = 0, coffset = 0;
    int outw = 0, outh = 0, outd = 0, outc = 0;
    int woffset2 = 0, hoffset2 = 0, doffset2 = 0, coffset2 = 0;
    Mat starts, ends, axes;
    std::string starts_expr, ends_expr, axes_expr;

    // First index and size on each axis of input 0.
    struct Part {
        Shape start, size;
    };
    // values: null unless those of input 1 decide.
    int find_part(const std::vector<Shape>& in, const int* values, Part* part) const;
    // True if the part is known only from the values of input 1.
    bool by_values(size_t inputs) const;

protected:
    // The values of input 1 if they decide (null otherwise); fails if they are missing.
    int values_of(const std::vector<Mat>& bottoms, const int** values) const;

private:
    int part_of_slices(const std::vector<Shape>& in, Part* part) const;
    void part_of_reference(const Shape& in, const Shape& reference, Part* part) const;
    void part_of_values(const Shape& in, const int* values, Part* part) const;
    void part_of_offsets(const Shape& in, Part* part) const;

    Expression starts_expression_, ends_expression_, axes_expression_;
};

}  // namespace quoll

#endif
