// What the convolution layers run on: the choice of an algorithm, weights packed for it, and the
// plan for the last shape seen.
#ifndef QUOLL_LAYER_CPU_CONV_CONV_RUNNER_H
#define QUOLL_LAYER_CPU_CONV_CONV_RUNNER_H

#include <memory>
#include <mutex>

#include "layer/convolution.h"
#include "layer/cpu/conv/fixed_plan.h"
#include "layer/cpu/conv/split_plan.h"
#include "layer/cpu/winograd/winograd_plan.h"

namespace quoll {

enum class ConvForm { kUndecided, kDirect, kWinograd, kSplit, kFixed };
// What a convolution may run on besides the gemm kernels; kernels for tile units may be null.
struct ConvMeans {
    bool winograd;
    const SplitGemmKernels* split;
    const FixedGemmKernels* fixed;
};
// The form that is expected to be the fastest on one core, whatever the number of threads: forms
// round differently, and answers must not depend on that number. narrow: blobs are bf16.
ConvForm choose_conv_form(const KernelSet& kernels, const ConvMeans& means, const ConvShape& shape,
                          bool narrow);

// An f32 convolution in any number of groups. create() once, then forward() from any thread.
class ConvRunner {
public:
    ConvRunner();
    // Takes the weights of `s`, which must be f32 and loaded. Logs and returns a negative code.
    // Where the best algorithm depends on the size of the input and the model does not tell that,
    // the first forward() chooses and packs.
    int create(const Layer& layer, const ConvolutionFields& s, const Option& opt);
    bool created() const { return kernels_ != nullptr; }
    // "direct", "winograd", "split" or "fixed" (bf16 parts, digits on tile units); "" before the
    // choice.
    const char* algorithm() const;
    // bottom: as convolution_geometry accepted it for `g`, any elempack, f32 or bf16. added: empty,
    // or of the output's shape and any elempack, f32 or bf16; with add_input and an empty one the
    // activation is left out. top is created, of bottom's dtype (or bf16, which f32 may become
    // where opt has bf16 storage), or is `added`, over which the output is written if its dtype and
    // elempack are right.
    int forward(const ConvolutionFields& s, const ConvGeometry& g, const Mat& bottom,
                const Mat& added, Mat& top, const Option& opt) const;
    // The same for bf16 through f32.
    int forward_widened(const ConvolutionFields& s, const ConvGeometry& g, const Mat& bottom,
                        const Mat& added, Mat& top, const Option& opt) const;
    // A 1x1 convolution on the 1-D input of is_flat_input, which is f32; nothing is added to it.
    int forward_flat(const ConvolutionFields& s, const Mat& bottom, Mat& top,
                     const Option& opt) const;

private:
    typedef ConvForm Form;
    // The one that the form needs.
    struct Plans {
        std::shared_ptr<const ConvPlan> direct;
        std::shared_ptr<const SplitPlan> split;
        std::shared_ptr<const FixedPlan> fixed;
    };

    bool winograd_candidate(const ConvolutionFields& s, const Option& opt) const;
    ConvShape shape_of(const ConvGeometry& g) const;
    int decide(const ConvShape& shape) const;
    int pack_direct() const;
    int pack_winograd() const;
    int pack_split(const TileShape& shape) const;
    int pack_fixed(const TileShape& shape) const;
    bool weights_suit_fixed(const TileShape& shape) const;
    bool takes_bf16(const ConvolutionFields& s, const ConvGeometry& g, int* status) const;
    int prepare(const ConvShape& shape, bool narrow_in, bool narrow_out, int threads, Form* form,
                Plans* plans) const;
    // One call of forward: blobs with in_pack_ and out_pack_. added: null, or like out but for its
    // step. Groups are so many bytes apart.
    struct Blobs {
        const void *in, *added;
        void* out;
        size_t in_group, added_group, out_group;
        size_t added_step;  // values from one channel block to the next
        FusedActivation activation;
    };
    int run_direct(const ConvPlan& plan, const Blobs& blobs, int threads) const;
    int run_winograd(const ConvShape& shape, const Blobs& blobs, int threads,
                     const Option& opt) const;
    int run_split(const SplitPlan& plan, const Blobs& blobs, const Option& opt) const;
    int run_fixed(const FixedPlan& plan, const Blobs& blobs, const Option& opt) const;

    const KernelSet* kernels_;
    ConvMeans means_;  // that may be used
    bool narrow_;      // blobs will be bf16
    int kernel_w_, kernel_h_, kernel_d_;
    int group_, in_channels_, out_channels_;  // channels of one group
    int in_pack_, out_pack_;
    Mat bias_;   // [group][gemm_bias_size]
    Mat zeros_;  // [gemm_bias_size]
    FusedActivation activation_;

    mutable std::mutex lock_;  // of what follows
    mutable Form form_;
    mutable Mat raw_weights_;  // until the form is decided
    mutable Mat weights_;      // [group][floats of the form]
    mutable Plans plans_;
};

}  // namespace quoll

#endif
