#ifndef QUOLL_LAYER_CONVOLUTIONDEPTHWISE_H
#define QUOLL_LAYER_CONVOLUTIONDEPTHWISE_H

#include "conv_reference.h"
#include "schema.h"

namespace quoll {

// A Convolution in `group` independent groups of channels.
class ConvolutionDepthWise : public Operator<ConvolutionDepthWise>, public ConvolutionFields {
public:
    ConvolutionDepthWise();
    static void params(ConvolutionDepthWise& s, ParamVisitor& v);
    static void weights(ConvolutionDepthWise& s, WeightVisitor& v);
    static int shape(const ConvolutionDepthWise& s, const std::vector<Shape>& in,
                     std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int load_model(const ModelBin& mb) override;
    int create_pipeline(const Option& opt) override;
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;
    int forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                const Option& opt) const override;
};

}  // namespace quoll

#endif
