#include "layer/elementwise/cast.h"

namespace quoll {

Cast::Cast() {
    one_blob_only = true;
    support_packing = true;
    support_fp16_storage = support_bf16_storage = true;
}

void Cast::params(Cast& s, ParamVisitor& v) {
    const char* const doc = "0: any, 1: f32, 2: f16, 3: s8, 4: bf16";
    v(0, "type_from", s.type_from, 0, doc, between(0, 4));
    v(1, "type_to", s.type_to, 0, doc, between(0, 4));
}

void Cast::weights(Cast&, WeightVisitor&) {}

DType Cast::dtype_of(int element_type) {
    return element_type == kFloat16    ? DType::f16
           : element_type == kInt8     ? DType::s8
           : element_type == kBfloat16 ? DType::bf16
                                       : DType::f32;
}

int Cast::shape(const Cast& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.size() != 1) return s.fail("expected 1 input, got %zu", in.size());
    if (in[0].dtype == DType::s32 || in[0].dtype == DType::u8)
        return s.fail("cannot cast from %s", dtype_name(in[0].dtype));
    out = in;
    if (s.type_to != kAuto) out[0].dtype = dtype_of(s.type_to);
    return kOk;
}

int Cast::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    std::vector<Shape> out;
    QUOLL_RETURN_IF_ERROR(shape(*this, {bottom.logical_shape()}, out));
    return cast_blob(*this, bottom, out[0].dtype, &top, opt);
}

void Cast::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in, const Option&,
                        std::vector<BlobLayout>* out) const {
    BlobLayout& top = (*out)[0];
    top.elempack = in[0].elempack;
    if (type_to != kAuto) top.shape.dtype = dtype_of(type_to);
    if (top.shape.dtype == in[0].shape.dtype) top.shares = 0;
}

int cast_blob(const Layer& layer, const Mat& in, DType to, Mat* out, const Option& opt) {
    *out = in;
    if (in.dtype == to) return kOk;
    Mat wide = in;
    if (in.dtype == DType::f16) cast_float16_to_float32(in, wide, opt);
    if (in.dtype == DType::bf16) cast_bfloat16_to_float32(in, wide, opt);
    if (in.dtype == DType::s8) cast_int8_to_float32(in, wide, opt);
    if (wide.dtype != DType::f32) return layer.fail("cannot cast from %s", dtype_name(in.dtype));
    *out = wide;
    if (to == DType::f16) cast_float32_to_float16(wide, *out, opt);
    if (to == DType::bf16) cast_float32_to_bfloat16(wide, *out, opt);
    if (to == DType::s8) {
        Mat one(1);
        if (one.empty()) return kOutOfMemory;
        one[0] = 1.f;
        quantize_to_int8(wide, *out, one, opt);
    }
    return out->empty() ? (int)kOutOfMemory : (int)kOk;
}

QUOLL_DEFINE_LAYER(Cast)

}  // namespace quoll
