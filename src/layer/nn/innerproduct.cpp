#include "layer/nn/innerproduct.h"

#include <algorithm>

#include "layer/common/activation.h"
#include "layer/common/affine8.h"
#include "layer/common/conv_window.h"
#include "runtime/turned_weight.h"

namespace quoll {

InnerProduct::InnerProduct()
    : num_output(0),
      bias_term(0),
      weight_data_size(0),
      int8_scale_term(0),
      int8_affine(0),
      bottom_zero_point(0),
      top_factor(0.f),
      top_zero_point(0),
      activation_type(0) {
    one_blob_only = true;
}

void InnerProduct::params(InnerProduct& s, ParamVisitor& v) {
    v(0, "num_output", s.num_output, 0, "output values", at_least(1));
    v(1, "bias_term", s.bias_term, 0, "1: bias_data is there", between(0, 1));
    v(2, "weight_data_size", s.weight_data_size, 0, "scalars of weight_data", at_least(1));
    v(8, "int8_scale_term", s.int8_scale_term, 0, "not 0: int8 arithmetic", at_least(0));
    v(26, "int8_affine", s.int8_affine, 0,
      "1: an s8 input with a zero point, 2: an f32 one, rounded by its range, 3: to 16 bits; "
      "not in ncnn",
      between(0, (int)kInt16Input));
    v(27, "bottom_zero_point", s.bottom_zero_point, 0, "int8_affine: of the input",
      between(-128, 127));
    v(24, "top_factor", s.top_factor, 0.f,
      "int8_affine 1, not 0: the output is s8, of values times this; not in ncnn",
      between(0, 1e38));
    v(25, "top_zero_point", s.top_zero_point, 0, "of an s8 output", between(-128, 127));
    activation_lines(s.activation_type, s.activation_params, v);
}

void InnerProduct::weights(InnerProduct& s, WeightVisitor& v) {
    const bool int8 = s.is_int8();
    v(true, "weight_data", s.weight_data, s.weight_data_size, WeightKind::kTagged,
      "[num_output][num_input]");
    v(s.bias_term != 0, "bias_data", s.bias_data, s.num_output, WeightKind::kRaw, "[num_output]");
    v(int8, "weight_data_int8_scales", s.weight_data_int8_scales, s.num_output, WeightKind::kRaw,
      "[num_output]");
    v(int8 && s.int8_affine != 2, "bottom_blob_int8_scales", s.bottom_blob_int8_scales, 1,
      WeightKind::kRaw, "[1]");
}

int InnerProduct::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    if (weight_data_size % num_output != 0)
        return fail("weight_data_size (2): expected a multiple of num_output %d, got %d",
                    num_output, weight_data_size);
    QUOLL_RETURN_IF_ERROR(check_int8_term(*this, int8_scale_term));
    if (int8_affine && int8_scale_term == 0)
        return fail("int8_affine (26) without int8_scale_term (8)");
    if (int8_affine != 1 && top_factor != 0.f)
        return fail("top_factor (24): expected int8_affine (26) 1, got %d", int8_affine);
    if (int8_affine != 1 && bottom_zero_point)
        return fail("bottom_zero_point (27): expected int8_affine (26) 1, got %d", int8_affine);
    return check_activation(*this, activation_type, activation_params);
}

int InnerProduct::load_model(const ModelBin& mb) {
    QUOLL_RETURN_IF_ERROR(load_weights_by_schema(*this, mb));
    return check_weight_dtype(*this, weight_data, int8_scale_term != 0);
}

Mat InnerProduct::weight_by_outputs() const {
    return WeightByInputs::is(weight_data) ? WeightByInputs(weight_data).turned() : weight_data;
}

int InnerProduct::settle_weight() {
    weight_data = weight_by_outputs();
    return weight_data.empty() ? kOutOfMemory : kOk;
}

int InnerProduct::create_pipeline(const Option&) {
    QUOLL_RETURN_IF_ERROR(settle_weight());
    if (!is_int8()) return kOk;
    weight_data_int8 = weight_data.dtype == DType::s8
                           ? weight_data
                           : quantize_weight(weight_data, weight_data_int8_scales);
    if (!weight_data_int8.empty()) return kOk;
    fail("out of memory for %d int8 weights", weight_data_size);
    return kOutOfMemory;
}

int InnerProduct::shape(const InnerProduct& s, const std::vector<Shape>& in,
                        std::vector<Shape>& out) {
    if (in.size() != 1) return s.fail("expected 1 input, got %zu", in.size());
    const DType dtype = s.int8_output()            ? DType::s8
                        : in[0].dtype == DType::s8 ? DType::f32
                                                   : in[0].dtype;
    if (!accepts_float(s, in[0].dtype) && !(s.is_int8() && in[0].dtype == DType::s8))
        return s.fail("expected an input of %s, got %s", s.is_int8() ? "f32 or s8" : "f32",
                      dtype_name(in[0].dtype));
    if (s.is_int8() && s.int8_affine && (in[0].dtype == DType::s8) != (s.int8_affine == 1))
        return s.fail("int8_affine (26) %d: expected an input of %s, got %s", s.int8_affine,
                      s.int8_affine == 1 ? "s8" : "f32", dtype_name(in[0].dtype));
    out.assign(1, Shape(s.num_output, dtype));
    if (in[0].dims == 2 && in[0].w == s.num_input())
        out[0] = Shape(s.num_output, in[0].h, dtype);
    else if (item_total(in[0]) != (size_t)s.num_input())
        return s.fail("expected %d values, got %s", s.num_input(), shape_text(in[0]).c_str());
    out[0].n = in[0].n;
    return kOk;
}

int InnerProduct::forward_s8(const Mat& rows, Mat& top, const Option& opt) const {
    const int count = num_input();
    const bool ranged = int8_affine == 2;
    float low = 0.f, high = 0.f;
    for (int y = 0; ranged && y < rows.h; y++)
        for (int i = 0; i < count; i++)
            low = std::min(low, rows.row(y)[i]), high = std::max(high, rows.row(y)[i]);
    const AffineRange range(low, high);
    const float input_scale = ranged ? 1.f : (float)bottom_blob_int8_scales[0];
    const int zero = ranged ? range.zero_point : bottom_zero_point;
    const Activation activation(activation_type, activation_params);
    Mat row(Shape(count, DType::s32), 1, opt.workspace_allocator);
    if (row.empty()) return kOutOfMemory;
    int* x = row;
    for (int y = 0; y < rows.h; y++) {
        for (int i = 0; i < count; i++)
            x[i] = rows.dtype == DType::s8 ? rows.row<signed char>(y)[i]
                   : int16_input()         ? int16_value(rows.row(y)[i], input_scale)
                   : ranged                ? affine_int8(rows.row(y)[i] / range.scale, zero)
                                           : float2int8(rows.row(y)[i] * input_scale);
        for (int p = 0; p < num_output; p++) {
            const signed char* k = (const signed char*)weight_data_int8 + (size_t)p * count;
            int64_t sum = 0;
            for (int i = 0; i < count; i++) sum += k[i] * (x[i] - zero);
            float scale = dequantize_scale(input_scale, weight_data_int8_scales[p]);
            if (ranged) scale *= range.scale;
            float value = (float)sum * scale;
            if (bias_term) value += bias_data[p];
            value = activate(value, activation);
            if (int8_output())
                top.row<signed char>(y)[p] = affine_int8(value * top_factor, top_zero_point);
            else
                top.row(y)[p] = value;
        }
    }
    return kOk;
}

int InnerProduct::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    std::vector<Mat> tops;
    QUOLL_RETURN_IF_ERROR(create_tops(*this, std::vector<Mat>(1, bottom_blob), tops, opt));
    top_blob = tops[0];
    Mat rows = bottom_blob;
    if (top_blob.dims == 1) rows = bottom_blob.reshape(num_input(), 1, opt.workspace_allocator);
    if (rows.empty()) return kOutOfMemory;
    if (is_int8()) return forward_s8(rows, top_blob, opt);

    const int count = num_input();
    const Activation activation(activation_type, activation_params);
    for (int y = 0; y < rows.h; y++) {
        const float* x = rows.row(y);
        for (int p = 0; p < num_output; p++) {
            const float* k = (const float*)weight_data + (size_t)p * count;
            double sum = bias_term ? bias_data[p] : 0.f;
            for (int i = 0; i < count; i++) sum += (double)k[i] * x[i];
            top_blob.row(y)[p] = activate((float)sum, activation);
        }
    }
    return kOk;
}

bool InnerProduct::fusion_target(FusionTarget* t) {
    *t = FusionTarget();
    t->weight = &weight_data, t->bias = &bias_data, t->bias_term = &bias_term;
    t->activation_type = &activation_type, t->activation_params = &activation_params;
    t->num_output = num_output;
    const bool activates = activation_type == kActivationNone;
    t->folds = activates && int8_scale_term == 0 && weight_data.dtype == DType::f32;
    t->activates = activates && int8_scale_term <= 100 && top_factor == 0.f;
    return true;
}

int64_t InnerProduct::macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const {
    if (!first_sizes_known(in, out)) return -1;
    return (int64_t)out[0].total() * num_input();
}

QUOLL_DEFINE_LAYER(InnerProduct)

}  // namespace quoll
