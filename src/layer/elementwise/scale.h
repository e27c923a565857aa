#ifndef QUOLL_LAYER_SCALE_H
#define QUOLL_LAYER_SCALE_H

#include "layer/common/schema.h"

namespace quoll {

// y = x * scale + bias, with one value of each per channel (the outermost axis). With a
// scale_data_size of -233 the scale is the second input, which may also be the second output.
class Scale : public Operator<Scale> {
public:
    Scale();
    static void params(Scale& s, ParamVisitor& v);
    static void weights(Scale& s, WeightVisitor& v);
    static int shape(const Scale& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int forward_inplace(Mat& blob, const Option& opt) const override;
    int forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                const Option& opt) const override;

    bool scale_is_input() const { return scale_data_size == -233; }

    int scale_data_size;
    int bias_term;
    Mat scale_data;
    Mat bias_data;
};

}  // namespace quoll

#endif
