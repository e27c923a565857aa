// int8 arithmetic in float registers: products and sums of whole numbers are exact in f32 while
// they stay within 2^24. So the f32 kernels serve for int8 layers too, on whole numbers, followed
// by a pass that scales the sums.
#ifndef QUOLL_LAYER_CPU_INT8_WHOLE_NUMBERS_H
#define QUOLL_LAYER_CPU_INT8_WHOLE_NUMBERS_H

#include "layer/conv_reference.h"
#include "layer/cpu/packing.h"

namespace quoll {

// Whether no sum over an equal share of the s8 weights for each of `outputs` can leave 2^24,
// whatever the s8 inputs are.
bool sums_stay_exact(const Mat& weights, int outputs);
// The s8 weights as f32; empty when memory runs out.
Mat whole_weights(const Mat& weights);
// `in`, s8 or f32 that is rounded with its scale, as whole numbers in f32: temporary memory, the
// elempack of `in`.
int whole_input(const Mat& in, const Mat& scale, const Option& opt, Mat* whole);

// What becomes of the sums: activation(sum * scale + bias), a scale and bias for each output, and
// int8 again if asked for.
class SumScaling {
public:
    SumScaling() : kernels_(nullptr) {}
    // weight_scales: each goes with an equal share of the outputs. Empty bias and top_scale: none.
    int create(const Layer& layer, int outputs, float input_scale, const Mat& weight_scales,
               const Mat& bias, const Activation& activation, const Mat& top_scale);
    // sums: with the outputs on the outermost axis, or, if `rows`, in each row. Changes them.
    int finish(Mat& sums, bool rows, Mat& top, const Option& opt) const;
    bool int8_output() const { return !top_scale_.empty(); }

private:
    void scale(float* sums, size_t count, size_t period, size_t first) const;

    const KernelSet* kernels_;
    Mat scale_, bias_, top_scale_;
    FusedActivation activation_;
};

// An int8 Convolution or ConvolutionDepthWise on the f32 form of that operator.
class WholeConvolution {
public:
    WholeConvolution();
    ~WholeConvolution();
    // `form`: a new f32 layer of the kind, which this takes over. Leaves created() false when the
    // sums of `s` might not be exact.
    int create(const ConvolutionOperator& s, ConvolutionOperator* form, const Option& opt);
    bool created() const { return form_ != nullptr; }
    int forward(const ConvolutionOperator& s, const Mat& bottom, Mat& top, const Option& opt) const;

private:
    ConvolutionOperator* form_;
    Mat input_scale_;
    SumScaling scaling_;
};

}  // namespace quoll

#endif
