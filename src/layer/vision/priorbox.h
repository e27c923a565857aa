#ifndef QUOLL_LAYER_PRIORBOX_H
#define QUOLL_LAYER_PRIORBOX_H

#include "layer/common/schema.h"

namespace quoll {

// The prior boxes of an SSD detector for each position of input 0, whose values do not matter.
// Boxes are given by their corners in units of the image.
//
// Caffe's form: input 1 is the image (if its size is not a parameter). For each position and each
// min size there is a square of that size; if there are max sizes, a square of the geometric mean
// of min and max size; and for each aspect ratio a box of the min size's area, with flip also one
// of the inverse ratio. Output: 2 rows of 4 values per prior, the boxes and the variances.
//
// MXNet's form (one input, an image size of -233, no max sizes): squares of each min size, then
// boxes of the first size for each ratio but the first. Output: 1 axis, 4 values per prior.
class PriorBox : public Operator<PriorBox> {
public:
    PriorBox();
    static void params(PriorBox& s, ParamVisitor& v);
    static void weights(PriorBox& s, WeightVisitor& v);
    static int shape(const PriorBox& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;

    Mat min_sizes, max_sizes, aspect_ratios;
    float variances[4] = {};
    int flip = 1, clip = 0;
    int image_width = 0, image_height = 0;
    float step_width = 0.f, step_height = 0.f;
    float offset = 0.f;
    int step_mmdetection = 0;    // steps are rounded up
    int center_mmdetection = 0;  // centres lie at offset * (step - 1)

private:
    // Width and height of a prior, in pixels (Caffe) or units of the image (MXNet).
    struct Size {
        float w, h;
    };
    bool mxnet(size_t inputs) const;
    std::vector<Size> sizes_caffe() const;
    std::vector<Size> sizes_mxnet(const Shape& map) const;
    int forward_caffe(const std::vector<Shape>& in, Mat* top) const;
    int forward_mxnet(const Shape& map, Mat* top) const;
};

}  // namespace quoll

#endif
