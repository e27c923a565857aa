#ifndef QUOLL_LAYER_SPACEBLOCKS_H
#define QUOLL_LAYER_SPACEBLOCKS_H

#include "layer/common/tensor.h"

namespace quoll {

// Groups of blocksize^2 channels of a c h w blob become blocks of pixels, or, with `inverse`,
// blocks of pixels become channels. Channel (by * blocksize + bx) * C + q (mode 0, DCR) or (q *
// blocksize + by) * blocksize + bx (mode 1, CRD) holds pixel (by, bx) of the blocks of channel q of
// C. ONNX DepthToSpace, and SpaceToDepth (inverse, mode 0).
class DepthToSpace : public TensorOperator<DepthToSpace> {
public:
    DepthToSpace();
    static void params(DepthToSpace& s, ParamVisitor& v);
    static int shape(const DepthToSpace& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;

    int blocksize = 1;
    int mode = 0;
    int inverse = 0;
};

// Of item b of a batch of n c h w blobs, the pixels of the padded input with (y mod block_h, x mod
// block_w) = (by, bx) become item (by * block_w + bx) * n + b. With `inverse` items become pixels,
// and the padding is cut off. TensorFlow's SpaceToBatch and BatchToSpace.
class SpaceToBatch : public TensorOperator<SpaceToBatch> {
public:
    SpaceToBatch();
    static void params(SpaceToBatch& s, ParamVisitor& v);
    static int shape(const SpaceToBatch& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;

    int block_h = 1, block_w = 1;
    int pad_top = 0, pad_bottom = 0, pad_left = 0, pad_right = 0;
    int inverse = 0;
};

}  // namespace quoll

#endif
