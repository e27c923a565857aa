#ifndef QUOLL_LAYER_RESIZE_H
#define QUOLL_LAYER_RESIZE_H

#include "layer/common/tensor.h"

namespace quoll {

// Resamples any axes of a blob, one after the other: nearest (any type), linear or cubic (f32). The
// axes are those in `axes`, or all. Either scales or sizes are given, with one number per axis, and
// for some transforms roi, with all starts, then all ends. They are parameters or inputs after the
// data: roi (f32), scales (f32), sizes (s32), in this order, those whose bit is set in `inputs`.
// ONNX Resize.
class Resize : public TensorOperator<Resize> {
public:
    enum Mode { kNearest, kLinear, kCubic };
    enum Transform {  // from output to input coordinates
        kHalfPixel,
        kPytorchHalfPixel,
        kAlignCorners,
        kAsymmetric,
        kTfCropAndResize,
        kHalfPixelSymmetric,
        kTfHalfPixelForNn,  // of opset 11
        kTransformCount
    };
    enum NearestMode { kRoundPreferFloor, kRoundPreferCeil, kFloor, kCeil };
    enum Policy { kStretch, kNotLarger, kNotSmaller };
    enum InputBits { kRoiInput = 1, kScalesInput = 2, kSizesInput = 4 };

    static void params(Resize& s, ParamVisitor& v);
    static int shape(const Resize& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int mode = 0, transform = 0, nearest_mode = 0;
    float cubic_coeff_a = -0.75f;
    int exclude_outside = 0, antialias = 0;
    float extrapolation_value = 0;
    int policy = 0;
    int inputs = 0;
    Mat axes, scales, sizes, roi;

    // How one axis is resampled.
    struct AxisPlan {
        int in, out;
        double scale, start, end;  // start and end of the roi
        bool identity() const { return in == out && scale == 1 && start == 0 && end == 1; }
    };
    struct Lists {
        std::vector<float> scales, roi;
        std::vector<int> sizes;
    };
    // For each output index the input indexes (clamped to the axis) and their weights.
    struct Taps {
        int count = 0;  // a tap list per output index
        std::vector<int> at;
        std::vector<float> weight;
        std::vector<char> outside;  // output index has the extrapolation value
    };
    Lists lists(const std::vector<Mat>& bottoms) const;
    // 0, or a negative code after a message.
    int plan(const Shape& in, const Lists& lists, std::vector<AxisPlan>* axes, Shape* out) const;
    int kernel_taps(const AxisPlan& axis) const;
    int make_taps(const AxisPlan& axis, Taps* taps) const;

private:
    double position(const AxisPlan& axis, int i) const;
    double weight(double distance) const;
    int nearest_index(double x) const;
    int resample(const Mat& in, int axis, const AxisPlan& plan, Mat* out, const Option& opt) const;
};

}  // namespace quoll

#endif
