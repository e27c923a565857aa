#include "layer/tensor/narrowto.h"

#include "layer/common/elementtype.h"
#include "layer/common/elementwise.h"
#include "layer/common/valuewise.h"

namespace quoll {

NarrowTo::NarrowTo() {
    set_valuewise(*this);
    support_inplace = true;
}

void NarrowTo::params(NarrowTo& s, ParamVisitor& v) {
    v(0, "element_type", s.element_type, 16, "the type, numbered as in ONNX", between(1, 28));
    v(1, "saturate", s.saturate, 1,
      "floats that are too large: 1: the largest value; 0: infinity, or NaN where there is none",
      between(0, 1));
    v(2, "round_mode", s.round_mode, 0, "floats: 0 nearest, 1 up (away from 0), 2 down",
      between(FloatFormat::kNearest, FloatFormat::kDown));
}

int NarrowTo::shape(const NarrowTo& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    const ElementInfo* type = element_info(s.element_type);
    if (!type || (type->dtype == DType::f32 ? !type->has_format() : type->bits > 16))
        return s.fail("element_type: expected one of at most 16 bits, got %d", s.element_type);
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 1));
    out = in;
    return expect_dtype(s, "input", in[0].dtype, type->dtype);
}

int NarrowTo::forward_inplace(Mat& blob, const Option&) const {
    std::vector<Shape> out;
    QUOLL_RETURN_IF_ERROR(shape(*this, {blob.logical_shape()}, out));
    const ElementInfo& type = *element_info(element_type);
    if (blob.empty()) return kOk;
    if (blob.dtype == DType::f32) {
        const FloatFormat::Rounding rounding = (FloatFormat::Rounding)round_mode;
        for_each_value(blob,
                       [&](float x) { return type.format.round(x, saturate != 0, rounding); });
        return kOk;
    }
    with_number(blob.dtype, [&](auto number) {
        using T = decltype(number);
        for_each_value<T>(blob, [&](T x) { return (T)low_bits(type, (uint32_t)x); });
    });
    return kOk;
}

BitCast::BitCast() { set_valuewise(*this); }

void BitCast::params(BitCast& s, ParamVisitor& v) {
    v(0, "from", s.from, 1, "type of the input, numbered as in ONNX", between(1, 28));
    v(1, "to", s.to, 1, "type of the output, of as many bits", between(1, 28));
}

int BitCast::shape(const BitCast& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    const ElementInfo *source = element_info(s.from), *target = element_info(s.to);
    if (!source || !target || source->bits != target->bits || source->bits > 32)
        return s.fail("from %d to %d: expected types of as many bits, at most 32", s.from, s.to);
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 1));
    QUOLL_RETURN_IF_ERROR(expect_dtype(s, "input", in[0].dtype, source->dtype));
    out = in;
    out[0].dtype = target->dtype;
    return kOk;
}

// The bits of a value in the low bits of a word.
static uint32_t bits_of(const ElementInfo& type, float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    return type.has_format() ? type.format.encode(x) : bits;
}
template <class T>
static uint32_t bits_of(const ElementInfo& type, T x) {
    return (uint32_t)x << (32 - type.bits) >> (32 - type.bits);
}

static void set_bits(const ElementInfo& type, uint32_t bits, float* x) {
    memcpy(x, &bits, sizeof(bits));
    if (type.has_format()) *x = type.format.decode(bits);
}
template <class T>
static void set_bits(const ElementInfo& type, uint32_t bits, T* x) {
    *x = (T)low_bits(type, bits);
}

int BitCast::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    std::vector<Shape> out;
    QUOLL_RETURN_IF_ERROR(shape(*this, {bottom.logical_shape()}, out));
    QUOLL_RETURN_IF_ERROR(create_like(bottom, out[0].dtype, &top, opt));
    const ElementInfo &source = *element_info(from), &target = *element_info(to);
    with_number(bottom.dtype, [&](auto in) {
        with_number(top.dtype, [&](auto number) {
            using T = decltype(in);
            using R = decltype(number);
            map_values<T, R>(bottom, top, [&](T x) {
                R value;
                set_bits(target, bits_of(source, x), &value);
                return value;
            });
        });
    });
    return kOk;
}

QUOLL_DEFINE_LAYER(NarrowTo)
QUOLL_DEFINE_LAYER(BitCast)

}  // namespace quoll
