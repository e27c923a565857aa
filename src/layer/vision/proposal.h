#ifndef QUOLL_LAYER_PROPOSAL_H
#define QUOLL_LAYER_PROPOSAL_H

#include "layer/common/detection.h"
#include "layer/common/schema.h"

namespace quoll {

// The region proposals of Faster R-CNN. Nine anchors (ratios of height to width of 1/2, 1 and 2,
// scales of 8, 16 and 32) stand on every position of a map, feat_stride apart in the image. Inputs:
// 18 channels of scores, of which the last 9 count; 36 channels of box deltas dx, dy, log dw, log
// dh in units of the anchor's size; height, width and scale of the image. Boxes are clipped to the
// image; those smaller than min_size times the scale are left out; the best remain, after
// non-maximum suppression. Outputs: one channel per box, x1 y1 x2 y2 (4 x 1), and, if there is a
// second output, its score (1 x 1). Without any box they have 3 axes, a c of 0, and no data.
class Proposal : public Operator<Proposal> {
public:
    Proposal();
    static void params(Proposal& s, ParamVisitor& v);
    static void weights(Proposal& s, WeightVisitor& v);
    static int shape(const Proposal& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int feat_stride = 0;
    int base_size = 0;
    int pre_nms_topN = 0;
    int after_nms_topN = 0;
    float nms_thresh = 0.f;
    int min_size = 0;

private:
    struct Anchor {
        float x, y, w, h;  // left upper corner at position 0, size
    };
    std::vector<Anchor> anchors() const;
    void boxes_of(const Anchor& anchor, const Mat& moves, const float* scores, const float* image,
                  std::vector<Detection>* boxes) const;
};

}  // namespace quoll

#endif
