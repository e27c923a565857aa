#ifndef QUOLL_LAYER_WINDOWPOOL_H
#define QUOLL_LAYER_WINDOWPOOL_H

#include "layer/common/tensor.h"

namespace quoll {

// Windows over the 1 to 3 innermost axes (spatial; as many as `kernel` has sizes) of a blob with
// one axis more, of channels. Lists name spatial axes from the outermost on.
struct WindowSizes {
    int count = 0;  // spatial axes
    // For the last three axes; missing ones come first.
    int kernel[3] = {1, 1, 1}, stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1};
    int before[3] = {0, 0, 0}, after[3] = {0, 0, 0};  // padding

    // The lists have one number per axis, pads two (first all before, then all behind); empty ones
    // stand for 1, 1 and 0.
    int set(const Layer& layer, const Mat& kernels, const Mat& strides, const Mat& dilations,
            const Mat& pads);
    int extent(int axis) const { return (kernel[axis] - 1) * dilation[axis] + 1; }
};

// out = f(window): the largest or least value (any numeric type), or the mean or the Lp norm (sum
// |x|^p)^(1/p) (f32). With a second output, max also gives the position of the largest value (s32):
// its index in the whole input n c ... as if that had no gaps, and the first one among equal
// values. ONNX MaxPool, AveragePool and LpPool.
class WindowPool : public TensorOperator<WindowPool> {
public:
    enum OperationType { MAX, MIN, AVERAGE, LP };
    enum PadMode { kExplicit, kSameUpper, kSameLower, kValid };

    WindowPool() { support_batch = true; }
    static void params(WindowPool& s, ParamVisitor& v);
    static int shape(const WindowPool& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int op_type = 0;
    Mat kernel, strides, dilations, pads;
    int ceil_mode = 0;
    int auto_pad = 0;
    int count_include_pad = 0;  // 1: the mean counts padding
    int p = 2;
    int storage_order = 0;  // 1: numbers count the first spatial axis fastest

protected:
    // The windows for an input, with the padding of auto_pad, and the output's spatial sizes.
    int plan(const Shape& in, WindowSizes* windows, int out[3]) const;

    WindowSizes windows_;

private:
    template <class T>
    void pool_plane(const T* in, const int size[3], const WindowSizes& windows, T* out,
                    const int out_size[3], int* index, size_t first) const;
};

// Puts the values of x at the given positions, with zeros elsewhere. Inputs: x, indices (s32, as
// WindowPool gives them) and optionally the output's shape n c ... (s32). ONNX MaxUnpool.
class MaxUnpool : public TensorOperator<MaxUnpool> {
public:
    MaxUnpool() { support_batch = true; }
    static void params(MaxUnpool& s, ParamVisitor& v);
    static int shape(const MaxUnpool& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    Mat kernel, strides, pads;

private:
    WindowSizes windows_;
};

// The sum of windows laid over an image: row (q * kernel + tap) of the input holds that tap of all
// windows for channel q. Inputs: columns and, unless they are parameters, the sizes of image and
// kernel (s32). ONNX Col2Im.
class Col2Im : public TensorOperator<Col2Im> {
public:
    static void params(Col2Im& s, ParamVisitor& v);
    static int shape(const Col2Im& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    Mat image, kernel, strides, dilations, pads;

private:
    struct Plan {
        WindowSizes windows;
        int image[3] = {1, 1, 1}, blocks[3] = {1, 1, 1};  // sizes; windows along each axis
        Shape out;
    };
    int plan(const Shape& columns, const Mat& image, const Mat& kernel, Plan* plan) const;
};

}  // namespace quoll

#endif
