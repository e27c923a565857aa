#ifndef QUOLL_LAYER_EMBED_H
#define QUOLL_LAYER_EMBED_H

#include "layer/common/schema.h"

namespace quoll {

// Row i of the output is row x[i] of the weight, plus the bias. Indexes are clamped to the table.
// They are s32. An f32 blob is taken to hold the bits of ints, since a Mat over an application's
// ints is tagged f32.
class Embed : public Operator<Embed> {
public:
    Embed();
    static void params(Embed& s, ParamVisitor& v);
    static void weights(Embed& s, WeightVisitor& v);
    static int shape(const Embed& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int load_model(const ModelBin& mb) override;
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;

    int num_output;
    int input_dim;
    int bias_term;
    int weight_data_size;
    int int8_scale_term;

    Mat weight_data;  // [input_dim][num_output], f32 or s8
    Mat bias_data;
    Mat weight_data_int8_scale;  // [1]
};

}  // namespace quoll

#endif
