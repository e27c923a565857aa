#ifndef QUOLL_LAYER_CPU_DECONV_DECONV_PATCHES_H
#define QUOLL_LAYER_CPU_DECONV_DECONV_PATCHES_H

#include <memory>

#include "layer/nn/deconvolution.h"

namespace quoll {

// Deconvolutions of bf16 whose windows lie side by side: a 1x1 convolution, which multiplies bf16
// on tiles or vectors, gives the outputs of all taps, and these are put into their places.
#if defined(__x86_64__) || defined(__i386__)
class PatchDeconv {
public:
    // Leaves created() false for what another algorithm has to do.
    int create(const Layer& layer, const Deconvolution& s, const Option& opt);
    bool created() const { return conv_ != nullptr; }
    void plan_layout(const BlobLayout& in, const Option& opt, BlobLayout* top) const;
    int forward(const Mat& bottom, Mat* top, const Option& opt) const;

private:
    std::unique_ptr<Layer> conv_;
    int kernel_w_ = 1, kernel_h_ = 1, outputs_ = 0, pack_ = 1;
};
#else
// Other architectures' libraries have no room for it.
class PatchDeconv {
public:
    int create(const Layer&, const Deconvolution&, const Option&) { return kOk; }
    bool created() const { return false; }
    void plan_layout(const BlobLayout&, const Option&, BlobLayout*) const {}
    int forward(const Mat&, Mat*, const Option&) const { return kError; }
};
#endif

}  // namespace quoll

#endif
