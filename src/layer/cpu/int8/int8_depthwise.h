// int8 convolution with one window a channel: the rows under the windows of a row of outputs become
// rows of k-groups, a value of each kernel row in a k-group, and a dot product of such k-groups is
// a column of the window. f32 rows are rounded as the windows reach them, sums are scaled while
// they are in cache. Kernels by hand for small windows (Int8WindowRows) read rows with their
// padding beside them instead.
#ifndef QUOLL_LAYER_CPU_INT8_INT8_DEPTHWISE_H
#define QUOLL_LAYER_CPU_INT8_INT8_DEPTHWISE_H

#if defined(QUOLL_NO_INT8)
#include "layer/cpu/common/no_int8.h"
#else

#include "layer/cpu/common/packing.h"
#include "layer/cpu/int8/int8.h"
#include "layer/cpu/unary/fused_activation.h"
#include "layer/nn/convolution.h"

namespace quoll {

class Int8Depthwise {
public:
    // Takes the int8 weights and scales of `s`, which is depthwise() and has two axes. Leaves
    // created() false when a sum might exceed an int32, and for a single channel. Logs and returns
    // a negative code.
    int create(const Layer& layer, const ConvolutionFields& s, const Option& opt);
    bool created() const { return pack_ != 0; }
    int out_pack(int channels) const { return channels % pack_ == 0 ? pack_ : 1; }
    // bottom: as convolution_geometry accepted it for `g`, 3-D, any elempack, f32 or s8. top is
    // created. kUnsuitable, and top is of no use: the padded rows would dwarf what is in them.
    enum { kUnsuitable = 1 };
    int forward(const ConvolutionFields& s, const ConvGeometry& g, const Mat& bottom, Mat& top,
                const Option& opt) const;

private:
    class Work;
    class RowsWork;
    // Runs on blobs whose channels are whole blocks.
    int run(const ConvolutionFields& s, const ConvGeometry& g, const Mat& in, Mat& channels,
            const Option& opt) const;
    // Runs channels that do not divide into blocks: they are padded in copies of the blobs.
    int forward_completed(const ConvolutionFields& s, const ConvGeometry& g, const Mat& bottom,
                          Mat& top, const Option& opt) const;
    template <class W>
    int run_with(const ConvolutionFields& s, const ConvGeometry& g, const Mat& in, Mat& channels,
                 const Option& opt) const;
    int create_rows(const Layer& layer, const ConvolutionFields& s);
    void finish(int q, int32_t* sums, size_t count, void* out) const;

    const KernelSet* kernels_ = nullptr;
    const Int8Kernels* int8_ = nullptr;
    int pack_ = 0;
    int joined_ = 0;    // kernel rows in a k-group, the last k-group has what is left
    Mat weight_;        // k-groups [channels / pack][kernel_h / joined][kernel_w][pack]
    Mat scale_, bias_;  // [channels / pack][16]: those of a block, repeated
    Mat start_;         // s32 [channels]: of the sums, what offset and zero point leave
    Int8WindowRowsKernel rows_kernel_ = nullptr;
    Mat rows_weight_;  // s8 [channels / pack][maxk][16], for that
    bool to_s8_ = false, affine_ = false;
    int top_zero_ = 0;
    float input_scale_ = 1.f, top_scale_ = 0.f;
    FusedActivation activation_;
};

}  // namespace quoll

#endif

#endif
