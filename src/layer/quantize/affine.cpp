#include "layer/quantize/affine.h"

#include <algorithm>

#include "layer/common/activation.h"
#include "layer/common/affine8.h"
#include "layer/common/elementwise.h"
#include "layer/common/sublayer.h"

namespace quoll {

namespace {

// A scale must be a number above 0.
Range scales() { return between(1e-38, 1e38); }

int from_type(const Layer& layer, const std::vector<Shape>& in, DType from, DType to,
              std::vector<Shape>& out) {
    if (in.size() != 1 || in[0].dims < 1) return layer.fail("expected 1 input, got %zu", in.size());
    if (in[0].dtype != from)
        return layer.fail("expected an input of %s, got %s", dtype_name(from),
                          dtype_name(in[0].dtype));
    out = in;
    out[0].dtype = to;
    return kOk;
}

// to[i] = f(from[i]) for the values of two blobs of one shape and elempack.
template <class From, class To, class F>
void map_values(const Mat& from, Mat& to, F f) {
    const size_t count = (size_t)from.w * from.h * from.d * from.elempack;
    for (int q = 0; q < from.c; q++) {
        const From* x = from.channel(q);
        To* y = to.channel(q);
        for (size_t i = 0; i < count; i++) y[i] = f(x[i]);
    }
}

template <class From, class To, class F>
int mapped(const Mat& from, DType dtype, Mat* to, Allocator* allocator, F f) {
    Shape shape = from.logical_shape();
    shape.dtype = dtype;
    to->create(shape, from.elempack, allocator);
    if (to->empty()) return kOutOfMemory;
    map_values<From, To>(from, *to, f);
    return kOk;
}

}  // namespace

AffineQuantize::AffineQuantize() { one_blob_only = support_packing = true; }

void AffineQuantize::params(AffineQuantize& s, ParamVisitor& v) {
    v(0, "scale", s.scale, 1.f, "step of the values", scales());
    v(1, "zero_point", s.zero_point, 0, "int8 of the value 0", between(-128, 127));
}

int AffineQuantize::shape(const AffineQuantize& s, const std::vector<Shape>& in,
                          std::vector<Shape>& out) {
    return from_type(s, in, DType::f32, DType::s8, out);
}

int AffineQuantize::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    std::vector<Shape> out;
    QUOLL_RETURN_IF_ERROR(infer_shapes({bottom.logical_shape()}, out));
    return mapped<float, signed char>(bottom, DType::s8, &top, opt.blob_allocator, [this](float x) {
        return affine_int8(x / scale, zero_point);
    });
}

AffineDequantize::AffineDequantize() { one_blob_only = support_packing = true; }

void AffineDequantize::params(AffineDequantize& s, ParamVisitor& v) {
    v(0, "scale", s.scale, 1.f, "step of the values", scales());
    v(1, "zero_point", s.zero_point, 0, "int8 of the value 0", between(-128, 127));
}

int AffineDequantize::shape(const AffineDequantize& s, const std::vector<Shape>& in,
                            std::vector<Shape>& out) {
    return from_type(s, in, DType::s8, DType::f32, out);
}

int AffineDequantize::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    std::vector<Shape> out;
    QUOLL_RETURN_IF_ERROR(infer_shapes({bottom.logical_shape()}, out));
    return mapped<signed char, float>(
        bottom, DType::f32, &top, opt.blob_allocator,
        [this](signed char q) { return (float)(q - zero_point) * scale; });
}

AffineTable::AffineTable() { one_blob_only = support_packing = true; }

void AffineTable::params(AffineTable& s, ParamVisitor& v) {
    v.ints(0, "table", s.table, "what each int8 from -128 on becomes, 256 values; none: itself");
}

int AffineTable::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    if (table.empty()) return kOk;
    if (table.w != kValues) return fail("table: expected %d values, got %d", kValues, table.w);
    for (int i = 0; i < kValues; i++) {
        const int to = ((const int*)table.data)[i];
        if (to < -128 || to > 127) return fail("table: expected values of int8, got %d", to);
    }
    return kOk;
}

int AffineTable::shape(const AffineTable& s, const std::vector<Shape>& in,
                       std::vector<Shape>& out) {
    return from_type(s, in, DType::s8, DType::s8, out);
}

int AffineTable::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    std::vector<Shape> out;
    QUOLL_RETURN_IF_ERROR(infer_shapes({bottom.logical_shape()}, out));
    return mapped<signed char, signed char>(bottom, DType::s8, &top, opt.blob_allocator,
                                            [this](signed char q) { return value(q); });
}

void AffineBinary::params(AffineBinary& s, ParamVisitor& v) {
    v(0, "op_type", s.op_type, 0, "0 sum, 1 product", between(0, 1));
    v(1, "a_scale", s.a_scale, 1.f, "step of the first input's values", scales());
    v(2, "a_zero_point", s.a_zero_point, 0, "its int8 of 0", between(-128, 127));
    v(3, "b_scale", s.b_scale, 1.f, "step of the second input's values", scales());
    v(4, "b_zero_point", s.b_zero_point, 0, "its int8 of 0", between(-128, 127));
    v(5, "top_scale", s.top_scale, 1.f, "step of the output's values", scales());
    v(6, "top_zero_point", s.top_zero_point, 0, "its int8 of 0", between(-128, 127));
    activation_lines(s.activation_type, s.activation_params, v);
}

int AffineBinary::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    operation_ = make_binaryop(*this, "it", op_type == 1 ? 2 : 0, fast_);
    if (!operation_) return kError;
    return check_activation(*this, activation_type, activation_params);
}

int AffineBinary::create_pipeline(const Option& opt) { return operation_->create_pipeline(opt); }

int AffineBinary::shape(const AffineBinary& s, const std::vector<Shape>& in,
                        std::vector<Shape>& out) {
    if (in.empty() || in.size() > 2) return s.fail("expected 1 or 2 inputs, got %zu", in.size());
    std::vector<Shape> floats = in;
    for (Shape& shape : floats) {
        if (shape.dims < 1 || shape.dtype != DType::s8)
            return s.fail("expected s8, got %s", dtype_name(shape.dtype));
        shape.dtype = DType::f32;
    }
    out.assign(1, floats[0]);
    if (in.size() == 2 && !(in[0] == in[1])) {
        if (!s.operation_) return s.fail("its parameters are not loaded");
        QUOLL_RETURN_IF_ERROR(s.operation_->infer_empty_shapes(floats, out));
    }
    out[0].dtype = DType::s8;
    return kOk;
}

int AffineBinary::forward_f32(const std::vector<Mat>& bottoms, Mat* top, const Option& opt) const {
    std::vector<Mat> floats(bottoms.size()), sums;
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    for (size_t i = 0; i < bottoms.size(); i++) {
        const float scale = i ? b_scale : a_scale;
        const int zero = i ? b_zero_point : a_zero_point;
        const auto value = [=](signed char q) { return (float)(q - zero) * scale; };
        QUOLL_RETURN_IF_ERROR((mapped<signed char, float>(bottoms[i], DType::f32, &floats[i],
                                                          opt.workspace_allocator, value)));
    }
    sums = floats;
    if (floats.size() == 2) QUOLL_RETURN_IF_ERROR(operation_->forward(floats, sums, temporary));
    const Activation activation(activation_type, activation_params);
    const float factor = 1.f / top_scale;
    return mapped<float, signed char>(sums[0], DType::s8, top, opt.blob_allocator, [&](float x) {
        return affine_int8(activate(x, activation) * factor, top_zero_point);
    });
}

int AffineBinary::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                          const Option& opt) const {
    std::vector<Shape> in = shapes_of(bottoms), out;
    QUOLL_RETURN_IF_ERROR(infer_shapes(in, out));
    tops.resize(1);
    return forward_f32(bottoms, &tops[0], opt);
}

QUOLL_DEFINE_LAYER(AffineQuantize)
QUOLL_DEFINE_LAYER(AffineDequantize)
QUOLL_DEFINE_LAYER(AffineTable)
QUOLL_DEFINE_LAYER(AffineBinary)

}  // namespace quoll
