#ifndef QUOLL_LAYER_ONNXDETECTION_H
#define QUOLL_LAYER_ONNXDETECTION_H

#include "layer/common/tensor.h"

namespace quoll {

// Inputs: boxes (batch, boxes, 4) and scores (batch, classes, boxes), the batch being an axis or n;
// then optionally, each of one value and replacing a parameter, the number of boxes to keep per
// class (s32) and the thresholds of overlap and of score (f32). Output: s32, a row of batch, class
// and box index for each box that is kept, best first in each class; 0 rows if there are none.
// Boxes are y1 x1 y2 x2 with corners in any order, or centre x, y, width, height. ONNX
// NonMaxSuppression.
class NonMaxSuppression : public TensorOperator<NonMaxSuppression> {
public:
    NonMaxSuppression() { support_batch = true; }
    static void params(NonMaxSuppression& s, ParamVisitor& v);
    static int shape(const NonMaxSuppression& s, const std::vector<Shape>& in,
                     std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int center_point_box = 0;
    int max_output_boxes = 0;  // a class
    float iou_threshold = 0;
    float score_threshold = 0;
};

// Crops each box out of an image and resizes it. Inputs: image (c h w, batch n), boxes (one per
// row: y1 x1 y2 x2, where 0 and 1 are the centres of the outermost pixels), batch indices (s32).
// The output has one batch item per box. TensorFlow's CropAndResize.
class CropAndResize : public TensorOperator<CropAndResize> {
public:
    CropAndResize() { support_batch = true; }
    static void params(CropAndResize& s, ParamVisitor& v);
    static int shape(const CropAndResize& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int crop_h = 1, crop_w = 1;
    int nearest = 0;
    float extrapolation_value = 0;
};

// Divides each region into output_h x output_w bins. A bin gives the mean of sampling_ratio^2
// bilinear samples (0: as many as the bin has pixels), or, as ONNX defines max, the largest of the
// four weighted pixels of all samples. Inputs: image (c h w, batch n), regions (one per row: x1 y1
// x2 y2), batch indices (s32). The output has one batch item per region. ONNX RoiAlign.
class OnnxROIAlign : public TensorOperator<OnnxROIAlign> {
public:
    OnnxROIAlign() { support_batch = true; }
    static void params(OnnxROIAlign& s, ParamVisitor& v);
    static int shape(const OnnxROIAlign& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int mode = 0;  // 0: mean, 1: max
    int output_h = 1, output_w = 1;
    int sampling_ratio = 0;
    float spatial_scale = 1;
    int half_pixel = 1;  // 1: half_pixel, 0: output_half_pixel

private:
    struct Region {
        double x, y, bin_w, bin_h;  // of the input
        int grid_w, grid_h;         // samples per bin
    };
    int region_of(const float* corners, const Mat& image, Region* region) const;
    // One bin of all channels, whose results are out_step apart.
    void pool_bin(const float* item, const Mat& image, const Region& r, int y, int x, float* out,
                  size_t out_step) const;
};

// The sampling positions of a spatial transformer: theta times (x, y, 1), or (x, y, z, 1), for x,
// y, z from -1 to 1 over the output. Inputs: theta, 2 rows of 3 or 3 rows of 4, and, unless it is a
// parameter, the output's size n c h w or n c d h w (s32). Output: h w 2, or d h w 3. ONNX
// AffineGrid.
class AffineGrid : public TensorOperator<AffineGrid> {
public:
    static void params(AffineGrid& s, ParamVisitor& v);
    static int shape(const AffineGrid& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    Mat size;
    int align_corners = 0;

private:
    int grid(const Shape& theta, const std::vector<int>& sizes, Shape* out) const;
};

}  // namespace quoll

#endif
