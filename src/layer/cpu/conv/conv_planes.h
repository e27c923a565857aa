#ifndef QUOLL_LAYER_CPU_CONV_CONV_PLANES_H
#define QUOLL_LAYER_CPU_CONV_CONV_PLANES_H

#include <memory>

#include "layer/nn/convolution.h"

namespace quoll {

// 3-D convolutions of bf16 as 2-D ones, which multiply bf16 on tiles or vectors. A window's slices
// lie behind one another as channels of a plane; kernels of one pixel take the depth for rows.
#if defined(__x86_64__) || defined(__i386__)
class PlaneConv {
public:
    // Leaves created() false for what another algorithm has to do.
    int create(const Layer& layer, const ConvolutionFields& s, const Option& opt);
    bool created() const { return conv_ != nullptr; }
    void plan_layout(const Layer& layer, const ConvolutionFields& s,
                     const std::vector<BlobLayout>& in, const Option& opt, BlobLayout* top) const;
    int forward(const Layer& layer, const ConvolutionFields& s, const std::vector<Mat>& bottoms,
                Mat* top, const Option& opt) const;

private:
    std::unique_ptr<Layer> conv_;
};
#else
// Other architectures' libraries have no room for it.
class PlaneConv {
public:
    int create(const Layer&, const ConvolutionFields&, const Option&) { return kOk; }
    bool created() const { return false; }
    void plan_layout(const Layer&, const ConvolutionFields&, const std::vector<BlobLayout>&,
                     const Option&, BlobLayout*) const {}
    int forward(const Layer&, const ConvolutionFields&, const std::vector<Mat>&, Mat*,
                const Option&) const {
        return kError;
    }
};
#endif

}  // namespace quoll

#endif
