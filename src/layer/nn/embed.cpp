#include "layer/nn/embed.h"

#include <algorithm>

#include "layer/common/conv_window.h"

namespace quoll {

Embed::Embed()
    : num_output(0), input_dim(0), bias_term(0), weight_data_size(0), int8_scale_term(0) {
    one_blob_only = true;
}

void Embed::params(Embed& s, ParamVisitor& v) {
    v(0, "num_output", s.num_output, 0, "values of a word", at_least(1));
    v(1, "input_dim", s.input_dim, 0, "words", at_least(1));
    v(2, "bias_term", s.bias_term, 0, "1: bias_data is there", between(0, 1));
    v(3, "weight_data_size", s.weight_data_size, 0, "num_output * input_dim", at_least(1));
    v(18, "int8_scale_term", s.int8_scale_term, 0, "not 0: the weight is int8", at_least(0));
}

void Embed::weights(Embed& s, WeightVisitor& v) {
    v(true, "weight_data", s.weight_data, s.weight_data_size, WeightKind::kTagged,
      "[input_dim][num_output]");
    v(s.bias_term != 0, "bias_data", s.bias_data, s.num_output, WeightKind::kRaw, "[num_output]");
    v(s.int8_scale_term != 0, "weight_data_int8_scale", s.weight_data_int8_scale, 1,
      WeightKind::kRaw, "[1], by which int8 weights are divided");
}

int Embed::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    if ((int64_t)num_output * input_dim == weight_data_size) return kOk;
    return fail("weight_data_size (3): expected num_output %d * input_dim %d, got %d", num_output,
                input_dim, weight_data_size);
}

int Embed::load_model(const ModelBin& mb) {
    QUOLL_RETURN_IF_ERROR(load_weights_by_schema(*this, mb));
    return check_weight_dtype(*this, weight_data, int8_scale_term != 0);
}

int Embed::shape(const Embed& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.size() != 1) return s.fail("expected 1 input, got %zu", in.size());
    if (in[0].dims == 0 || in[0].total() != (size_t)in[0].w * in[0].n)
        return s.fail("expected a row of indexes, got %s", shape_text(in[0]).c_str());
    if (in[0].dtype != DType::s32 && in[0].dtype != DType::f32)
        return s.fail("expected indexes of s32, got %s", dtype_name(in[0].dtype));
    out.assign(1, Shape(s.num_output, in[0].w));
    out[0].n = in[0].n;
    return kOk;
}

int Embed::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    std::vector<Mat> tops;
    QUOLL_RETURN_IF_ERROR(create_tops(*this, std::vector<Mat>(1, bottom_blob), tops, opt));
    top_blob = tops[0];
    const int* words = bottom_blob;
    for (int y = 0; y < top_blob.h; y++) {
        const int word = std::min(std::max(words[y], 0), input_dim - 1);
        const size_t at = (size_t)word * num_output;
        float* out = top_blob.row(y);
        if (weight_data.dtype == DType::s8) {
            const signed char* row = (const signed char*)weight_data + at;
            const float scale = 1.f / weight_data_int8_scale[0];
            for (int i = 0; i < num_output; i++) out[i] = row[i] * scale;
        } else {
            std::copy_n((const float*)weight_data + at, num_output, out);
        }
        for (int i = 0; i < num_output && bias_term; i++) out[i] += bias_data[i];
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(Embed)

}  // namespace quoll
