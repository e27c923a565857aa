#ifndef QUOLL_LAYER_CPU_CONV_CONV_LAYER_H
#define QUOLL_LAYER_CPU_CONV_CONV_LAYER_H

#include "layer/cpu/conv/conv_runner.h"
#include "layer/cpu/int8/int8_conv.h"

namespace quoll {

// f32 convolutions as matrix products; create_pipeline repacks the weights and lets weight_data go.
// int8 ones run on int8 kernels, dynamic weights on the reference.
class ConvolutionCpu : public Convolution {
public:
    typedef ConvolutionCpu Class;
    bool is_a(const void* id) const override {
        return id == class_id<ConvolutionCpu>() || Convolution::is_a(id);
    }
    explicit ConvolutionCpu(int axes);
    int create_pipeline(const Option& opt) override;
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;
    int forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                const Option& opt) const override;
    unsigned traits() const override { return Convolution::traits() | kCreatesOutput; }
    // With add_input: over what is added, if it can be.
    int forward_inplace(std::vector<Mat>& blobs, const Option& opt) const override;
    // Of f32 weights; "" for others, and before the first run of one that is yet undecided.
    const char* algorithm() const { return runner_.created() ? runner_.algorithm() : ""; }
    // Of int8 weights, as Int8Conv::kernels(); "" for others.
    const char* int8_kernels() const { return int8_.created() ? int8_.kernels() : ""; }

private:
    int forward_with_add(const Mat& bottom, const Mat& added, Mat* top, const Option& opt) const;
    int forward_int8(const Mat& bottom, const Mat& added, Mat* top, const Option& opt) const;

    ConvRunner runner_;
    Int8Conv int8_;
};

}  // namespace quoll

#endif
