#ifndef QUOLL_LAYER_CPU_CONV_CONV_PLANES_H
#define QUOLL_LAYER_CPU_CONV_CONV_PLANES_H

#include <memory>

#include "layer/nn/convolution.h"

namespace quoll {

class ConvolutionCpu;

// 3-D convolutions of bf16 as 2-D ones, which multiply bf16 on tiles or vectors. The slices of a
// window become further channels of a plane, or, of few channels, their rows alternate there; with
// kernels of one pixel the depth becomes rows.
#if defined(__x86_64__) || defined(__i386__)
class PlaneConv {
public:
    // Leaves created() false if another algorithm has to do it.
    int create(const Layer& layer, const ConvolutionFields& s, const Option& opt);
    bool created() const { return conv_ != nullptr; }
    void plan_layout(const Layer& layer, const ConvolutionFields& s,
                     const std::vector<BlobLayout>& in, const Option& opt, BlobLayout* top) const;
    // For inputs of one item; null where forward() plans.
    int plan(const Layer& layer, const ConvolutionFields& s, const std::vector<Shape>& bottoms,
             const Option& opt, std::shared_ptr<const LayerPlan>* plan) const;
    // plan: from plan(), or null.
    int forward(const Layer& layer, const ConvolutionFields& s, const LayerPlan* plan,
                const std::vector<Mat>& bottoms, Mat* top, const Option& opt) const;

private:
    struct Plan;
    void plan_slices(const ConvolutionFields& s, const ConvGeometry& g,
                     const std::vector<Shape>& bottoms, const std::vector<Shape>& planes,
                     const Option& opt, Plan* plan) const;
    int forward_all(const Plan& plan, const ConvolutionFields& s, const ConvGeometry& g,
                    const Mat& windows, const Mat& added, Mat* top, const Option& opt) const;

    std::unique_ptr<ConvolutionCpu> conv_;
};
#else
// Libraries for other architectures leave it out, to save space.
class PlaneConv {
public:
    int create(const Layer&, const ConvolutionFields&, const Option&) { return kOk; }
    bool created() const { return false; }
    void plan_layout(const Layer&, const ConvolutionFields&, const std::vector<BlobLayout>&,
                     const Option&, BlobLayout*) const {}
    int plan(const Layer&, const ConvolutionFields&, const std::vector<Shape>&, const Option&,
             std::shared_ptr<const LayerPlan>*) const {
        return kOk;
    }
    int forward(const Layer&, const ConvolutionFields&, const LayerPlan*, const std::vector<Mat>&,
                Mat*, const Option&) const {
        return kError;
    }
};
#endif

}  // namespace quoll

#endif
