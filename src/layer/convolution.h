#ifndef QUOLL_LAYER_CONVOLUTION_H
#define QUOLL_LAYER_CONVOLUTION_H

#include "conv_reference.h"
#include "schema.h"

namespace quoll {

// y = activation(correlation of the padded input with weight_data + bias). Input [w, h, num_input],
// output [outw, outh, num_output]. A 1x1 kernel also takes a 1-D input of num_input values and
// gives num_output values.
class Convolution : public Operator<Convolution>, public ConvolutionFields {
public:
    Convolution();
    static void params(Convolution& s, ParamVisitor& v);
    static void weights(Convolution& s, WeightVisitor& v);
    static int shape(const Convolution& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int load_model(const ModelBin& mb) override;
    int create_pipeline(const Option& opt) override;
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;
    int forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                const Option& opt) const override;
};

}  // namespace quoll

#endif
