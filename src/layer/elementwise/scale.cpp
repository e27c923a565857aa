#include "layer/elementwise/scale.h"

#include "layer/common/channels.h"

namespace quoll {

Scale::Scale() : scale_data_size(0), bias_term(0) { one_blob_only = support_inplace = true; }

void Scale::params(Scale& s, ParamVisitor& v) {
    v(0, "scale_data_size", s.scale_data_size, 0, "channels of the input; -233: scale is input 1",
      at_least(-233));
    v(1, "bias_term", s.bias_term, 0, "1: bias_data is there", between(0, 1));
}

void Scale::weights(Scale& s, WeightVisitor& v) {
    v(!s.scale_is_input(), "scale_data", s.scale_data, s.scale_data_size, WeightKind::kRaw,
      "[scale_data_size]");
    v(s.bias_term != 0, "bias_data", s.bias_data, s.scale_data_size, WeightKind::kRaw,
      "[scale_data_size]");
}

int Scale::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    one_blob_only = support_inplace = !scale_is_input();
    if (!scale_is_input() && scale_data_size < 1)
        return fail("scale_data_size (0): expected at least 1, or -233, got %d", scale_data_size);
    if (scale_is_input() && bias_term)
        return fail("bias_term (1): a scale that is an input has no bias");
    return kOk;
}

int Scale::shape(const Scale& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (!s.scale_is_input()) return channelwise_shape(s, in, out, s.scale_data_size);
    if (in.size() != 2) return s.fail("expected 2 inputs, got %zu", in.size());
    const size_t outputs = output_count(s, out);
    QUOLL_RETURN_IF_ERROR(channelwise_shape(s, std::vector<Shape>(1, in[0]), out, 0));
    if ((int64_t)in[1].total() != in[0].size(0) || !accepts_float(s, in[1].dtype))
        return s.fail("input 1, the scale: expected %d values of f32, got %s of %s", in[0].size(0),
                      shape_text(in[1]).c_str(), dtype_name(in[1].dtype));
    if (outputs > 1) out.push_back(in[1]);
    return kOk;
}

int Scale::forward_inplace(Mat& blob, const Option&) const {
    QUOLL_RETURN_IF_ERROR(check_input(*this, blob));
    for_each_channel_value(blob, [this](float x, int q) {
        return bias_term ? x * scale_data[q] + bias_data[q] : x * scale_data[q];
    });
    return kOk;
}

int Scale::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                   const Option& opt) const {
    if (!scale_is_input()) return Operator<Scale>::forward(bottoms, tops, opt);
    QUOLL_RETURN_IF_ERROR(create_tops(*this, bottoms, tops, opt));
    const Mat scales =
        bottoms[1].reshape((int)bottoms[1].logical_shape().total(), opt.workspace_allocator);
    tops[0] = bottoms[0].clone(opt.blob_allocator);
    if (tops[0].empty() || scales.empty()) return kOutOfMemory;
    for_each_channel_value(tops[0], [&](float x, int q) { return x * scales[q]; });
    if (tops.size() > 1) tops[1] = bottoms[1];
    return kOk;
}

QUOLL_DEFINE_LAYER(Scale)

}  // namespace quoll
