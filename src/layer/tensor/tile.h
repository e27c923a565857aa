#ifndef QUOLL_LAYER_TILE_H
#define QUOLL_LAYER_TILE_H

#include "layer/common/schema.h"

namespace quoll {

// Repeats a blob along its axes: `tiles` times along `axis`, or as `repeats` says. Its last value
// is for w, the one before for h, then come d and c (c alone if there are three values and the blob
// does not have 4 axes). A blob with fewer axes than there are repeats gets as many; a third axis
// stays c when a fourth, d, is added, as in ncnn.
class Tile : public Operator<Tile> {
public:
    Tile();
    static void params(Tile& s, ParamVisitor& v);
    static void weights(Tile& s, WeightVisitor& v);
    static int shape(const Tile& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;

    int axis = 0;
    int tiles = 1;
    Mat repeats;
};

}  // namespace quoll

#endif
