#include "layer/nn/matmulinteger.h"

#include <algorithm>

#include "layer/common/affine8.h"
#include "layer/common/zero_points.h"

namespace quoll {

MatMulInteger::MatMulInteger()
    : a_unsigned(0),
      b_unsigned(0),
      a_zero_point_input(0),
      b_zero_point_input(0),
      num_output(0),
      weight_data_size(0),
      ranged(0),
      bias_term(0),
      top_factor(0.f),
      top_zero_point(0) {}

void MatMulInteger::params(MatMulInteger& s, ParamVisitor& v) {
    const Range flag = between(0, 1), byte = between(-128, 255);
    v(0, "a_unsigned", s.a_unsigned, 0, "1: the bytes of an s8 input 0 are u8", flag);
    v(1, "b_unsigned", s.b_unsigned, 0, "1: the bytes of b, if it is s8, are u8", flag);
    v(2, "a_zero_point_input", s.a_zero_point_input, 0, "1: an input has them", flag);
    v(3, "b_zero_point_input", s.b_zero_point_input, 0, "1: an input has them", flag);
    v.ints(4, "a_zero_points", s.a_zero_points, "what stands for 0 in a: one, or one a row", byte);
    v.ints(5, "b_zero_points", s.b_zero_points, "what stands for 0 in b: one, or one a column",
           byte);
    v(6, "num_output", s.num_output, 0, "columns of weight_data; 0: b is an input", at_least(0));
    v(7, "weight_data_size", s.weight_data_size, 0, "scalars of weight_data", at_least(0));
    v(8, "ranged", s.ranged, 0, "1: a is f32, quantised by its range, and so is the result", flag);
    v(9, "bias_term", s.bias_term, 0, "1: bias_data is there (ranged)", flag);
    v(10, "top_factor", s.top_factor, 0.f,
      "not 0: the result is s8, the sums times this; two inputs of s8 with a zero point each",
      between(0, 1e38));
    v(11, "top_zero_point", s.top_zero_point, 0, "of an s8 result", between(-128, 127));
}

void MatMulInteger::weights(MatMulInteger& s, WeightVisitor& v) {
    v(s.has_weight(), "weight_data", s.weight_data, s.weight_data_size, WeightKind::kTagged,
      "int8: [rows][num_output]");
    v(s.ranged != 0, "weight_scales", s.weight_scales, s.num_output, WeightKind::kRaw,
      "[num_output]");
    v(s.bias_term != 0, "bias_data", s.bias_data, s.num_output, WeightKind::kRaw, "[num_output]");
}

int MatMulInteger::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    if ((ranged && (!has_weight() || a_zero_point_input || !a_zero_points.empty())) ||
        (bias_term && !ranged))
        return fail(
            "ranged (8): expected weight_data and no zero points of a, bias_term (9) with it");
    const bool plain = !has_weight() && !a_unsigned && !b_unsigned && !a_zero_point_input &&
                       !b_zero_point_input && a_zero_points.w <= 1 && b_zero_points.w <= 1;
    if (gives_int8() && (!plain || ranged))
        return fail("top_factor (10): expected two inputs of s8 with one zero point each");
    if (has_weight() && (weight_data_size < num_output || weight_data_size % num_output != 0))
        return fail("weight_data_size (7): expected a multiple of %d, got %d", num_output,
                    weight_data_size);
    return kOk;
}

int MatMulInteger::load_model(const ModelBin& mb) {
    QUOLL_RETURN_IF_ERROR(load_weights_by_schema(*this, mb));
    if (!has_weight() || weight_data.dtype == DType::s8) return kOk;
    return fail("weight_data: expected int8, got %s", dtype_name(weight_data.dtype));
}

MatMulInteger::Operand::Operand(const Shape& s, size_t cstep, bool as_column)
    : size{1, 1, 1, 1}, step{0, 0, 0, 0} {
    const int skip = 4 - s.dims;
    size_t next = 1;
    for (int axis = 3; axis >= skip; axis--) {
        size[axis] = s.size(axis - skip);
        if (axis == skip && s.dims > 2) next = cstep;
        step[axis] = size[axis] == 1 ? 0 : next;
        next *= size[axis];
    }
    if (as_column && s.dims == 1) {
        std::swap(size[2], size[3]);
        std::swap(step[2], step[3]);
    }
}

MatMulInteger::Operand::Operand(const Mat& m, bool as_column)
    : Operand(m.empty() ? Shape(1) : m.logical_shape(), m.cstep, as_column) {}

MatMulInteger::Operands MatMulInteger::operands(const std::vector<Mat>& bottoms) const {
    Operands o = {bottoms[0], Mat(), a_zero_points, b_zero_points};
    if (has_weight()) {
        o.b = weight_data;
        if (!o.b.empty()) {
            o.b.dims = 2, o.b.w = num_output, o.b.h = b_rows();
            o.b.cstep = o.b.nstep = weight_data.w;
        }
    } else {
        o.b = bottoms[1];
    }
    if (a_zero_point_input) o.a_zero = bottoms[has_weight() ? 1 : 2];
    if (b_zero_point_input) o.b_zero = bottoms.back();
    return o;
}

static bool repeats(int size, int to) { return size == 1 || size == to; }

// Checks zero points that are blobs: those of `of`, whose axis `summed` (2 or 3) they do not have.
int MatMulInteger::check_zero_points(const Shape& zero, const Operand& of, const char* name,
                                     int summed) const {
    const int other = 5 - summed;
    if (zero.dims < 1 || zero.dims > 4)
        return fail("zero points of %s: expected 1 to 4 axes", name);
    const Operand z(zero, 0, summed == 3);
    bool fits = z.size[summed] == 1 && repeats(z.size[other], of.size[other]);
    for (int i = 0; i < 2; i++) fits = fits && repeats(z.size[i], of.size[i]);
    if (fits) return kOk;
    return fail("zero points of %s: %s do not fit", name, shape_text(zero).c_str());
}

int MatMulInteger::check_inputs(const std::vector<Shape>& in) const {
    const size_t factors = has_weight() ? 1 : 2;
    const size_t inputs = factors + a_zero_point_input + b_zero_point_input;
    if (in.size() != inputs) return fail("expected %zu inputs, got %zu", inputs, in.size());
    for (size_t i = 0; i < factors; i++) {
        const bool known = ranged         ? in[i].dtype == DType::f32
                           : gives_int8() ? in[i].dtype == DType::s8
                                          : is_byte(in[i].dtype);
        if (in[i].dims < 1 || in[i].dims > 4 || !known)
            return fail("input %zu: expected 1 to 4 axes of %s, got %s of %s", i,
                        ranged         ? "f32"
                        : gives_int8() ? "s8"
                                       : "s8 or u8",
                        shape_text(in[i]).c_str(), dtype_name(in[i].dtype));
    }
    return kOk;
}

int MatMulInteger::shape(const MatMulInteger& s, const std::vector<Shape>& in,
                         std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(s.check_inputs(in));
    const Shape b_shape = s.has_weight() ? Shape(s.num_output, s.b_rows(), DType::s8) : in[1];
    const Operand a(in[0], 0, false), b(b_shape, 0, true);
    int size[4] = {0, 0, a.size[2], b.size[3]};
    bool fits = a.size[3] == b.size[2];
    for (int i = 0; i < 2; i++) {
        fits = fits && (repeats(a.size[i], b.size[i]) || b.size[i] == 1);
        size[i] = a.size[i] == 1 ? b.size[i] : a.size[i];
    }
    if (!fits)
        return s.fail("%s times %s is not defined", shape_text(in[0]).c_str(),
                      shape_text(b_shape).c_str());
    if (s.a_zero_point_input)
        QUOLL_RETURN_IF_ERROR(s.check_zero_points(in[s.has_weight() ? 1 : 2], a, "a", 3));
    if (s.b_zero_point_input) QUOLL_RETURN_IF_ERROR(s.check_zero_points(in.back(), b, "b", 2));
    if (!repeats(std::max(1, s.a_zero_points.w), a.size[2]) ||
        !repeats(std::max(1, s.b_zero_points.w), b.size[3]))
        return s.fail("zero points: expected 1 or %d, and 1 or %d; got %d and %d", a.size[2],
                      b.size[3], s.a_zero_points.w, s.b_zero_points.w);
    // The axes of the result: those that an operand has, without the ones made up for one axis.
    int sizes[4], count = 0;
    for (int i = 4 - std::max(in[0].dims, b_shape.dims); i < 2; i++) sizes[count++] = size[i];
    if (in[0].dims > 1) sizes[count++] = size[2];
    if (b_shape.dims > 1) sizes[count++] = size[3];
    if (count == 0) sizes[count++] = 1;
    Shape result(1, s.ranged ? DType::f32 : s.gives_int8() ? DType::s8 : DType::s32);
    result.dims = count;
    for (int i = 0; i < count; i++) result.set_size(i, sizes[i]);
    result.n = in[0].n;
    out.assign(1, result);
    return kOk;
}

// Rounds m, which is f32, to s8 with the scale and zero point of its range.
static int quantise(const Mat& m, AffineRange* range, Mat* quantized, const Option& opt) {
    float low = 0.f, high = 0.f;
    const size_t plane = (size_t)m.w * m.h * m.d;
    const auto each = [&](auto f) {
        for (int q = 0; q < m.c; q++)
            for (size_t i = 0; i < plane; i++) f(q, i, ((const float*)m.data)[q * m.cstep + i]);
    };
    each([&](int, size_t, float x) { low = x < low ? x : low, high = x > high ? x : high; });
    *range = AffineRange(low, high);
    Shape shape = m.logical_shape();
    shape.dtype = DType::s8;
    quantized->create(shape, 1, opt.workspace_allocator);
    if (quantized->empty()) return kOutOfMemory;
    each([&](int q, size_t i, float x) {
        ((signed char*)quantized->data)[q * quantized->cstep + i] =
            affine_int8(x / range->scale, range->zero_point);
    });
    return kOk;
}

int MatMulInteger::forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                           const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tops(*this, bottom_blobs, top_blobs, opt));
    Operands o = operands(bottom_blobs);
    AffineRange range(0.f, 0.f);
    if (ranged) QUOLL_RETURN_IF_ERROR(quantise(bottom_blobs[0], &range, &o.a, opt));
    const Operand a(o.a, false), b(o.b, true), a_zero(o.a_zero, true), b_zero(o.b_zero, false);
    const Bytes a_values(o.a, a_unsigned && !ranged), b_values(o.b, b_unsigned);
    Mat& top = top_blobs[0];
    const size_t plane = (size_t)top.w * top.h * top.d;
    size_t next = 0;
    for (int i = 0; i < std::max(a.size[0], b.size[0]); i++)
        for (int j = 0; j < std::max(a.size[1], b.size[1]); j++)
            for (int m = 0; m < a.size[2]; m++)
                for (int n = 0; n < b.size[3]; n++, next++) {
                    const int za = ranged             ? range.zero_point
                                   : o.a_zero.empty() ? 0
                                                      : integer_at(o.a_zero, a_zero.at(i, j, m, 0));
                    const int zb =
                        o.b_zero.empty() ? 0 : integer_at(o.b_zero, b_zero.at(i, j, 0, n));
                    int64_t sum = 0;
                    for (int k = 0; k < a.size[3]; k++)
                        sum += (int64_t)(a_values[a.at(i, j, m, k)] - za) *
                               (b_values[b.at(i, j, k, n)] - zb);
                    const size_t at = next / plane * top.cstep + next % plane;
                    if (gives_int8())
                        ((signed char*)top.data)[at] =
                            affine_int8((float)sum * top_factor, top_zero_point);
                    else if (ranged)
                        ((float*)top.data)[at] =
                            (float)wrapped(sum) * (weight_scales[n] * range.scale) +
                            (bias_term ? bias_data[n] : 0.f);
                    else
                        ((int*)top.data)[at] = wrapped(sum);
                }
    return kOk;
}

int64_t MatMulInteger::macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const {
    if (!first_sizes_known(in, out)) return -1;
    return (int64_t)out[0].total() * in[0].w;
}

QUOLL_DEFINE_LAYER(MatMulInteger)

}  // namespace quoll
