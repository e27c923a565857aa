#ifndef QUOLL_LAYER_GRIDSAMPLE_H
#define QUOLL_LAYER_GRIDSAMPLE_H

#include "layer/common/schema.h"

namespace quoll {

// The first input ([c, h, w] or [c, d, h, w]) sampled at the points of the second: x, y (and z)
// from -1 to 1 over the image, [h, w, 2] or [d, h, w, 3] of the output's size; with permute_fusion
// the coordinates are the channels instead, [2, h, w] or [3, d, h, w].
class GridSample : public Operator<GridSample> {
public:
    GridSample();
    static void params(GridSample& s, ParamVisitor& v);
    static void weights(GridSample& s, WeightVisitor& v);
    static int shape(const GridSample& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                const Option& opt) const override;

    enum { kBilinear = 1, kNearest = 2, kBicubic = 3 };
    enum { kZeros = 1, kBorder = 2, kReflection = 3 };

    int sample_type;
    int padding_mode;
    int align_corner;  // 1: -1 and 1 are the centres of the outer pixels, 0: their edges
    int permute_fusion;
    int exact;
    // What the pass fuse_grid found around the layer: the outermost axis of a grid without a batch
    // holds its items; the output is one blob, with its items along a new outermost axis; the
    // points are at x * scale + offset, likewise y. Files have none of it, and the reference only
    // has the shape rule.
    struct Around {
        bool grid_items = false, joins_items = false;
        float scale[2] = {1.f, 1.f}, offset[2] = {0.f, 0.f};
        bool scales() const {
            return scale[0] != 1.f || scale[1] != 1.f || offset[0] != 0.f || offset[1] != 0.f;
        }
    };
    Around around;
    // Those of another layer: parameters, and what is around it.
    void take_fields(const GridSample& other);
};

}  // namespace quoll

#endif
