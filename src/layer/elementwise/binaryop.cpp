#include "layer/elementwise/binaryop.h"

#include <math.h>

#include <algorithm>

#include "layer/common/blocks.h"
#include "layer/common/elementwise.h"
#include "layer/common/extremes.h"
#include "layer/common/integer.h"

namespace quoll {

BinaryOp::BinaryOp() {}

void BinaryOp::params(BinaryOp& s, ParamVisitor& v) {
    v(0, "op_type", s.op_type, 0, "function, see OperationType", between(0, kOperationCount - 1));
    v(1, "with_scalar", s.with_scalar, 0, "1: the second operand is b", between(0, 1));
    v(2, "b", s.b, 0.f, "second operand if with_scalar");
}

void BinaryOp::weights(BinaryOp&, WeightVisitor&) {}

int BinaryOp::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    if (with_scalar) set_elementwise(*this);
    return kOk;
}

bool BinaryOp::is_neutral() const {
    const bool product = op_type == MUL || op_type == DIV, sum = op_type == ADD || op_type == SUB;
    return with_scalar && ((product && b == 1.f) || (sum && b == 0.f));
}

float BinaryOp::value(float x, float y) const {
    switch (op_type) {
        case ADD:
            return kTakesRelu && relu && x + y < 0.f ? 0.f : x + y;
        case SUB:
            return x - y;
        case MUL:
            return x * y;
        case DIV:
            return x / y;
        case MAX:
            return maximum(x, y);
        case MIN:
            return minimum(x, y);
        case POW:
            return powf(x, y);
        case RSUB:
            return y - x;
        case RDIV:
            return y / x;
        case RPOW:
            return powf(y, x);
        case ATAN2:
            return atan2f(x, y);
        case RATAN2:
            return atan2f(y, x);
        case FMOD:
            return fmodf(x, y);
        case RFMOD:
            return fmodf(y, x);
        case LOGADDEXP:
            return x == y ? x + logf(2.f) : std::max(x, y) + log1pf(expf(-fabsf(x - y)));
        case FLOOR_DIVIDE:
            return floorf(x / y);
        case RFLOOR_DIVIDE:
            return floorf(y / x);
        case REMAINDER:
            return remainderf(x, y);
        case RREMAINDER:
            return remainderf(y, x);
    }
    return x;
}

int32_t BinaryOp::value(int32_t x, int32_t y) const {
    const uint32_t ux = (uint32_t)x, uy = (uint32_t)y;
    switch (op_type) {
        case ADD:
            return (int32_t)(ux + uy);
        case SUB:
            return (int32_t)(ux - uy);
        case MUL:
            return (int32_t)(ux * uy);
        case DIV:
            return int_quotient(x, y);
        case MAX:
            return std::max(x, y);
        case MIN:
            return std::min(x, y);
        case POW:
            return int_power(x, y);
        case RSUB:
            return (int32_t)(uy - ux);
        case RDIV:
            return int_quotient(y, x);
        case RPOW:
            return int_power(y, x);
        case FMOD:
            return int_modulo(x, y);
        case RFMOD:
            return int_modulo(y, x);
        case FLOOR_DIVIDE:
            return int_floor_quotient(x, y);
        case RFLOOR_DIVIDE:
            return int_floor_quotient(y, x);
    }
    return 0;
}

static bool has_int_form(int op_type) {
    return op_type <= BinaryOp::RPOW || op_type == BinaryOp::FMOD || op_type == BinaryOp::RFMOD ||
           op_type == BinaryOp::FLOOR_DIVIDE || op_type == BinaryOp::RFLOOR_DIVIDE;
}

// Broadcasts `s` to `out`, with its axis 0 on axis `first`; false if a size is neither equal nor 1.
static bool spread(const Shape& s, int first, Shape* out) {
    for (int i = 0; i < s.dims; i++) {
        const int mine = s.size(i), other = out->size(first + i);
        if (mine != other && mine != 1 && other != 1) return false;
        out->set_size(first + i, mine == 1 ? other : mine);
    }
    return true;
}

int BinaryOp::align(const Shape& x, const Shape& y, int first[2], Shape* out) const {
    const bool x_is_fewer = x.dims < y.dims;
    const Shape& fewer = x_is_fewer ? x : y;
    const Shape& more = x_is_fewer ? y : x;
    const int inner = more.dims - fewer.dims;
    int& start = first[x_is_fewer ? 0 : 1];
    first[0] = first[1] = 0;
    start = fewer.dims == 1 && fewer.w != more.size(0) ? inner : 0;
    *out = more;
    if (spread(fewer, start, out)) return kOk;
    start = inner;
    *out = more;
    if (spread(fewer, start, out)) return kOk;
    return fail("%s and %s do not fit on each other", shape_text(x).c_str(), shape_text(y).c_str());
}

int BinaryOp::shape(const BinaryOp& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    const size_t expected = s.with_scalar ? 1 : 2;
    if (in.size() != expected) return s.fail("expected %zu inputs, got %zu", expected, in.size());
    for (const Shape& shape : in) {
        if (shape.dims < 1) return s.fail("an input of no axes");
        if (shape.dtype != in[0].dtype ||
            (!accepts_float(s, shape.dtype) && shape.dtype != DType::s32 && !s.is_neutral()))
            return s.fail("expected f32 or s32 inputs, got %s and %s", dtype_name(in[0].dtype),
                          dtype_name(shape.dtype));
    }
    if (in[0].dtype == DType::s32 && !has_int_form(s.op_type))
        return s.fail("op_type %d is not defined for s32", s.op_type);
    out.assign(1, in[0]);
    if (s.with_scalar) return kOk;
    int first[2];
    QUOLL_RETURN_IF_ERROR(s.align(in[0], in[1], first, &out[0]));
    // As ReLU says it.
    return kTakesRelu && s.relu && in[0].dtype == DType::s32 ? same_f32_shapes(s, {out[0]}, out)
                                                             : (int)kOk;
}

// Steps along the four axes c, d, h, w of the output; 0 where one value serves all indexes.
static void steps_on(const Mat& m, int first, int dims, size_t step[4]) {
    const Axes4 axes = axes_of(m);
    for (int i = 0; i < 4; i++) step[i] = 0;
    for (int i = 0; i < m.dims; i++) {
        const int at = axis_of_four(i, m.dims);
        if (axes.size[at] != 1) step[axis_of_four(first + i, dims)] = axes.step[at];
    }
}

template <class T>
static void apply(const BinaryOp& op, const Mat& a, const size_t sa[4], const Mat& b,
                  const size_t sb[4], Mat& out) {
    const Axes4 to = axes_of(out);
    for (int i = 0; i < to.size[0]; i++) {
        for (int j = 0; j < to.size[1]; j++) {
            for (int k = 0; k < to.size[2]; k++) {
                const T* pa = (const T*)a.data + i * sa[0] + j * sa[1] + k * sa[2];
                const T* pb = (const T*)b.data + i * sb[0] + j * sb[1] + k * sb[2];
                T* y = (T*)out.data + i * to.step[0] + j * to.step[1] + k * to.step[2];
                for (int l = 0; l < to.size[3]; l++) y[l] = op.value(pa[l * sa[3]], pb[l * sb[3]]);
            }
        }
    }
}

int BinaryOp::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                      const Option& opt) const {
    if (with_scalar) return Layer::forward(bottoms, tops, opt);
    QUOLL_RETURN_IF_ERROR(create_tops(*this, bottoms, tops, opt));
    const Mat &x = bottoms[0], &y = bottoms[1];
    int first[2];
    Shape out;
    QUOLL_RETURN_IF_ERROR(align(x.logical_shape(), y.logical_shape(), first, &out));
    size_t sx[4], sy[4];
    steps_on(x, first[0], out.dims, sx);
    steps_on(y, first[1], out.dims, sy);
    if (x.dtype == DType::s32)
        apply<int32_t>(*this, x, sx, y, sy, tops[0]);
    else
        apply<float>(*this, x, sx, y, sy, tops[0]);
    return kOk;
}

int BinaryOp::forward_inplace(Mat& blob, const Option& opt) const {
    std::vector<Shape> out;
    QUOLL_RETURN_IF_ERROR(shape(*this, {blob.logical_shape()}, out));
    if (is_neutral()) return kOk;
    if (blob.dtype == DType::s32) {
        const int32_t operand = (int32_t)std::min(std::max(b, -2147483648.f), 2147483520.f);
        for_each_value<int32_t>(blob, [&](int32_t x) { return value(x, operand); });
    } else {
        for_each_value(blob, [this](float x) { return value(x, b); });
    }
    return kLongestChain > 1 && then ? then->forward_inplace(blob, opt) : (int)kOk;
}

QUOLL_DEFINE_LAYER(BinaryOp)

}  // namespace quoll
