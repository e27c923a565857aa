#include "layer/elementwise/tensorunary.h"

#include <math.h>

#include <limits>
#include <type_traits>

#include "layer/common/integer.h"
#include "layer/common/valuewise.h"

namespace quoll {

TensorUnary::TensorUnary() { set_valuewise(*this); }

void TensorUnary::params(TensorUnary& s, ParamVisitor& v) {
    v(0, "op_type", s.op_type, 0,
      "0 abs, 1 neg, 2 sign, 3 round (half to even), 4 is NaN, 5 is inf, 6 not, 7 bitwise not",
      between(0, kOperationCount - 1));
    v(1, "detect_negative", s.detect_negative, 1, "0: -inf is not inf", between(0, 1));
    v(2, "detect_positive", s.detect_positive, 1, "0: +inf is not inf", between(0, 1));
}

int TensorUnary::shape(const TensorUnary& s, const std::vector<Shape>& in,
                       std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 1));
    QUOLL_RETURN_IF_ERROR(expect_number(s, in[0].dtype));
    out = in;
    const bool of_floats = s.op_type == IS_NAN || s.op_type == IS_INF;
    if (of_floats) QUOLL_RETURN_IF_ERROR(expect_dtype(s, "input", in[0].dtype, DType::f32));
    if (s.op_type == NOT) QUOLL_RETURN_IF_ERROR(expect_dtype(s, "input", in[0].dtype, DType::u8));
    if (s.op_type == BIT_NOT && in[0].dtype == DType::f32)
        return s.fail("bits of f32: expected an integer type");
    if (of_floats) out[0].dtype = DType::u8;
    return kOk;
}

static float round_value(float x) { return rintf(x); }
template <class T>
static T round_value(T x) {
    return x;
}

template <class T>
static void keep_type(int op, const Mat& in, Mat& out) {
    switch (op) {
        case TensorUnary::ABS:
            return map_values<T, T>(in, out, [](T x) { return x < 0 ? wrapping_sub(T(0), x) : x; });
        case TensorUnary::NEG:
            return map_values<T, T>(in, out, [](T x) { return wrapping_sub(T(0), x); });
        case TensorUnary::SIGN:
            return map_values<T, T>(in, out, [](T x) { return x > 0 ? T(1) : x < 0 ? T(-1) : x; });
        case TensorUnary::ROUND:
            return map_values<T, T>(in, out, [](T x) { return round_value(x); });
    }
}

int TensorUnary::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    std::vector<Shape> out;
    QUOLL_RETURN_IF_ERROR(shape(*this, {bottom.logical_shape()}, out));
    QUOLL_RETURN_IF_ERROR(create_like(bottom, out[0].dtype, &top, opt));
    const bool negative = detect_negative, positive = detect_positive;
    switch (op_type) {
        case IS_NAN:
            map_values<float, uint8_t>(bottom, top, [](float x) { return x != x; });
            return kOk;
        case IS_INF:
            map_values<float, uint8_t>(
                bottom, top, [=](float x) { return isinf(x) && (x < 0 ? negative : positive); });
            return kOk;
        case NOT:
            map_values<uint8_t, uint8_t>(bottom, top, [](uint8_t x) { return !x; });
            return kOk;
        case BIT_NOT:
            with_word(bottom.elemsize / bottom.elempack, [&](auto word) {
                using T = decltype(word);
                map_values<T, T>(bottom, top, [](T x) { return (T)~x; });
            });
            return kOk;
    }
    with_number(bottom.dtype,
                [&](auto number) { keep_type<decltype(number)>(op_type, bottom, top); });
    return kOk;
}

CastTo::CastTo() {
    set_valuewise(*this);
    set_any_storage(*this);
}

void CastTo::params(CastTo& s, ParamVisitor& v) {
    v(0, "to", s.to, 0, "0 f32, 1 f16, 2 bf16, 3 s32, 4 s8, 5 u8, 6 bool", between(kF32, kBool));
}

DType dtype_of_element(int element_type) {
    static const DType types[] = {DType::f32, DType::f16, DType::bf16, DType::s32,
                                  DType::s8,  DType::u8,  DType::u8};
    return types[element_type];
}

int CastTo::shape(const CastTo& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 1));
    out = in;
    out[0].dtype = dtype_of_element(s.to);
    return kOk;
}

// Float to int type R; with masks instead of branches, so that compilers vectorise it.
template <class R>
static R cut(float x) {
    // For u8 the bound is -1, which becomes 0 as an integer: compilers turn a bound of 0 into a
    // branch.
    const bool is_signed = std::is_signed<R>::value;
    const float low = is_signed ? (float)std::numeric_limits<R>::min() : -1.f;
    // For s32 the bound is the largest float below 2^31; larger values get all bits of the largest
    // int.
    const float high = sizeof(R) == 4 ? 2147483520.f : (float)std::numeric_limits<R>::max();
    const int number = -(int)(x == x), large = sizeof(R) == 4 ? -(int)(x >= 2147483648.f) : 0;
    const float above = x > low ? x : low, within = above < high ? above : high;
    int whole = (int)within & number;
    if (!is_signed) whole &= ~(whole >> 31);
    return (R)((whole & ~large) | (std::numeric_limits<int>::max() & large));
}
// to[i] = cut(from[i]); a separate function, in which compilers see that the loop has no branches.
template <class R>
__attribute__((noinline)) static void cut_run(const float* __restrict from, R* __restrict to,
                                              size_t count) {
    for (size_t i = 0; i < count; i++) to[i] = cut<R>(from[i]);
}

template <class R>
static R convert(float x) {
    return cut<R>(x);
}
template <>
float convert<float>(float x) {
    return x;
}
template <class R>
static R convert(int32_t x) {
    return (R)x;
}

// From f32, s32, s8 or u8 to another of them, or to bool.
static void convert_numbers(const Mat& from, bool to_bool, Mat& top) {
    with_number(from.dtype, [&](auto in) {
        using T = decltype(in);
        using Wide = typename std::conditional<std::is_same<T, float>::value, float, int32_t>::type;
        if (to_bool) return map_values<T, uint8_t>(from, top, [](T x) { return x != 0; });
        with_number(top.dtype, [&](auto out) {
            using R = decltype(out);
            if constexpr (std::is_same<T, float>::value && std::is_integral<R>::value)
                return map_runs<T, R>(from, top, cut_run<R>);
            map_values<T, R>(from, top, [](T x) { return convert<R>((Wide)x); });
        });
    });
}

void CastTo::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in, const Option&,
                          std::vector<BlobLayout>* out) const {
    (*out)[0].elempack = in[0].elempack;
    (*out)[0].shape.dtype = dtype_of_element(to);
}

int CastTo::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    std::vector<Shape> out;
    QUOLL_RETURN_IF_ERROR(shape(*this, {bottom.logical_shape()}, out));
    const DType target = out[0].dtype;
    if (bottom.dtype == target && to != kBool) {
        top = bottom;
        return kOk;
    }
    if (bottom.empty()) return create_like(bottom, target, &top, opt);
    Mat wide = bottom;
    if (bottom.dtype == DType::f16) cast_float16_to_float32(bottom, wide, opt);
    if (bottom.dtype == DType::bf16) cast_bfloat16_to_float32(bottom, wide, opt);
    if (wide.empty()) return kOutOfMemory;
    const bool narrow = target == DType::f16 || target == DType::bf16;
    const DType computed = narrow ? DType::f32 : target;
    if (wide.dtype != computed || to == kBool) {
        Mat numbers;
        QUOLL_RETURN_IF_ERROR(create_like(wide, computed, &numbers, opt));
        convert_numbers(wide, to == kBool, numbers);
        wide = numbers;
    }
    top = wide;
    if (target == DType::f16) cast_float32_to_float16(wide, top, opt);
    if (target == DType::bf16) cast_float32_to_bfloat16(wide, top, opt);
    return top.empty() ? (int)kOutOfMemory : (int)kOk;
}

QUOLL_DEFINE_LAYER(TensorUnary)
QUOLL_DEFINE_LAYER(CastTo)

}  // namespace quoll
