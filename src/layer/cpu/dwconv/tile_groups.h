// Convolutions in groups of 16 channels on tile units that multiply bf16 (SplitGemmKernels::taps).
#ifndef QUOLL_LAYER_CPU_DWCONV_TILE_GROUPS_H
#define QUOLL_LAYER_CPU_DWCONV_TILE_GROUPS_H

#include "layer/cpu/gemm/split_gemm.h"
#include "layer/cpu/unary/fused_activation.h"
#include "layer/nn/convolution.h"

namespace quoll {

#if defined(__x86_64__) || defined(__i386__)

// A group is a block of the blobs' channels, and its windows are rows of a copy of the block; as a
// product of matrices it would leave half of a unit's steps and columns idle. By measurement other
// widths, whose channels would have to be joined from blocks, are slower so. Inputs and outputs are
// bf16 of elempack 16. For other inputs there is ConvRunner.
class TileGroups {
public:
    // Packs the weights of `s` if these are such groups and the processor has a unit. Logs and
    // returns kOutOfMemory.
    int create(const Layer& layer, const ConvolutionFields& s, const Option& opt);
    bool created() const { return kHasTileUnits && kernels_; }
    bool takes(DType dtype) const { return created() && dtype == DType::bf16; }
    // bottom: as convolution_geometry accepted it for `g`, bf16, any elempack, with axes of its own
    // for height and width. top is created.
    int forward(const ConvolutionFields& s, const ConvGeometry& g, const Mat& bottom, Mat& top,
                const Option& opt) const;

private:
    struct Band;
    class Call;

    int tap_row_bytes() const { return kernel_w_ * 16 * (int)sizeof(uint16_t); }
    int make_steps() const;
    void pack_taps(const float* from, uint16_t* to) const;

    const SplitGemmKernels* kernels_ = nullptr;
    int kernel_w_ = 0, kernel_h_ = 0, step_bytes_ = 0;
    Mat weights_;  // [group][values], as SplitTaps::b
    Mat bias_;     // [group][16]
    FusedActivation activation_;
};

#else

// No other processor has kernels for them.
struct TileGroups {
    int create(const Layer&, const ConvolutionFields&, const Option&) { return kOk; }
    bool takes(DType) const { return false; }
    int forward(const ConvolutionFields&, const ConvGeometry&, const Mat&, Mat&,
                const Option&) const {
        return kError;
    }
};

#endif

}  // namespace quoll

#endif
