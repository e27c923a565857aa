#ifndef QUOLL_LAYER_DEFORMABLECONV2D_H
#define QUOLL_LAYER_DEFORMABLECONV2D_H

#include "layer/common/conv_window.h"

namespace quoll {

// A convolution whose taps are moved, and in v2 weighted, by further inputs (Zhu et al.,
// "Deformable ConvNets v2", 2018). Inputs: [w, h, num_input]; the offsets [outw, outh, kernel_h *
// kernel_w * 2], for each tap y, then x; optionally the weights of the taps [outw, outh, kernel_h *
// kernel_w]. Taps between pixels are interpolated bilinearly; pixels outside are 0.
class DeformableConv2D : public Operator<DeformableConv2D>, public ConvFields {
public:
    DeformableConv2D();
    static void params(DeformableConv2D& s, ParamVisitor& v);
    static void weights(DeformableConv2D& s, WeightVisitor& v);
    static int shape(const DeformableConv2D& s, const std::vector<Shape>& in,
                     std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int load_model(const ModelBin& mb) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    int64_t macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const override;

protected:
    int geometry(const std::vector<Shape>& in, ConvGeometry* g) const;

private:
    // The values under the window of output (x, y): [num_input][kernel_h][kernel_w].
    void sample(const std::vector<Mat>& bottoms, const ConvGeometry& g, int x, int y,
                float* values) const;
};

}  // namespace quoll

#endif
