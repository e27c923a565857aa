#ifndef QUOLL_LAYER_DECONVOLUTIONDEPTHWISE_H
#define QUOLL_LAYER_DECONVOLUTIONDEPTHWISE_H

#include "conv_reference.h"
#include "schema.h"

namespace quoll {

// A Deconvolution in `group` independent groups of channels.
class DeconvolutionDepthWise : public Operator<DeconvolutionDepthWise>, public DeconvolutionFields {
public:
    DeconvolutionDepthWise();
    static void params(DeconvolutionDepthWise& s, ParamVisitor& v);
    static void weights(DeconvolutionDepthWise& s, WeightVisitor& v);
    static int shape(const DeconvolutionDepthWise& s, const std::vector<Shape>& in,
                     std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int load_model(const ModelBin& mb) override;
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;
    int forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                const Option& opt) const override;
};

}  // namespace quoll

#endif
