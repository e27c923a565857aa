#include "matmulinteger.h"

#include <algorithm>

#include "blocks.h"
#include "zero_points.h"

namespace quoll {

MatMulInteger::MatMulInteger()
    : a_unsigned(0), b_unsigned(0), a_zero_point_input(0), b_zero_point_input(0) {}

void MatMulInteger::params(MatMulInteger& s, ParamVisitor& v) {
    const Range flag = between(0, 1), byte = between(-128, 255);
    v(0, "a_unsigned", s.a_unsigned, 0, "1: the bytes of an s8 input 0 are u8", flag);
    v(1, "b_unsigned", s.b_unsigned, 0, "1: the bytes of an s8 input 1 are u8", flag);
    v(2, "a_zero_point_input", s.a_zero_point_input, 0, "1: an input has them", flag);
    v(3, "b_zero_point_input", s.b_zero_point_input, 0, "1: an input has them", flag);
    v.ints(4, "a_zero_points", s.a_zero_points, "what stands for 0 in a: one, or one a row", byte);
    v.ints(5, "b_zero_points", s.b_zero_points, "what stands for 0 in b: one, or one a column",
           byte);
}

void MatMulInteger::weights(MatMulInteger&, WeightVisitor&) {}

namespace {

// A blob as [batch, batch, rows, columns]; steps are 0 on axes that are repeated.
struct Operand {
    int size[4];
    size_t step[4];

    size_t at(int i, int j, int k, int l) const {
        return i * step[0] + j * step[1] + k * step[2] + l * step[3];
    }
};

// cstep: values from channel to channel; not looked at for one or two axes. as_column: one axis is
// the rows, not the columns.
Operand operand(const Shape& s, size_t cstep, bool as_column) {
    Operand o = {{1, 1, 1, 1}, {0, 0, 0, 0}};
    const int skip = 4 - s.dims;
    size_t step = 1;
    for (int axis = 3; axis >= skip; axis--) {
        o.size[axis] = s.size(axis - skip);
        if (axis == skip && s.dims > 2) step = cstep;
        o.step[axis] = o.size[axis] == 1 ? 0 : step;
        step *= o.size[axis];
    }
    if (as_column && s.dims == 1) {
        std::swap(o.size[2], o.size[3]);
        std::swap(o.step[2], o.step[3]);
    }
    return o;
}

bool repeats(int size, int to) { return size == 1 || size == to; }

}  // namespace

// Checks zero points that are blobs: those of `of`, whose axis `summed` (2 or 3) they do not have.
static int check_zero_points(const Layer& layer, const Shape& zero, const Operand& of,
                             const char* name, int summed) {
    const int other = 5 - summed;
    if (zero.dims < 1 || zero.dims > 4)
        return layer.fail("zero points of %s: expected 1 to 4 axes", name);
    const Operand z = operand(zero, 0, summed == 3);
    bool fits = z.size[summed] == 1 && repeats(z.size[other], of.size[other]);
    for (int i = 0; i < 2; i++) fits = fits && repeats(z.size[i], of.size[i]);
    if (fits) return kOk;
    return layer.fail("zero points of %s: %s do not fit", name, shape_text(zero).c_str());
}

int MatMulInteger::shape(const MatMulInteger& s, const std::vector<Shape>& in,
                         std::vector<Shape>& out) {
    const size_t inputs = 2u + s.a_zero_point_input + s.b_zero_point_input;
    if (in.size() != inputs) return s.fail("expected %zu inputs, got %zu", inputs, in.size());
    for (int i = 0; i < 2; i++)
        if (in[i].dims < 1 || in[i].dims > 4 || !is_byte(in[i].dtype))
            return s.fail("input %d: expected 1 to 4 axes of s8 or u8, got %s of %s", i,
                          shape_text(in[i]).c_str(), dtype_name(in[i].dtype));
    const Operand a = operand(in[0], 0, false), b = operand(in[1], 0, true);
    int size[4] = {0, 0, a.size[2], b.size[3]};
    bool fits = a.size[3] == b.size[2];
    for (int i = 0; i < 2; i++) {
        fits = fits && (repeats(a.size[i], b.size[i]) || b.size[i] == 1);
        size[i] = std::max(a.size[i], b.size[i]);
    }
    if (!fits)
        return s.fail("%s times %s is not defined", shape_text(in[0]).c_str(),
                      shape_text(in[1]).c_str());
    if (s.a_zero_point_input) QUOLL_RETURN_IF_ERROR(check_zero_points(s, in[2], a, "a", 3));
    if (s.b_zero_point_input)
        QUOLL_RETURN_IF_ERROR(check_zero_points(s, in[inputs - 1], b, "b", 2));
    if (!repeats(std::max(1, s.a_zero_points.w), a.size[2]) ||
        !repeats(std::max(1, s.b_zero_points.w), b.size[3]))
        return s.fail("zero points: expected 1 or %d, and 1 or %d; got %d and %d", a.size[2],
                      b.size[3], s.a_zero_points.w, s.b_zero_points.w);
    // The axes of the result: those that an operand has, without the ones made up for one axis.
    int sizes[4], count = 0;
    for (int i = 4 - std::max(in[0].dims, in[1].dims); i < 2; i++) sizes[count++] = size[i];
    if (in[0].dims > 1) sizes[count++] = size[2];
    if (in[1].dims > 1) sizes[count++] = size[3];
    if (count == 0) sizes[count++] = 1;
    Shape result(1, DType::s32);
    result.dims = count;
    for (int i = 0; i < count; i++) result.set_size(i, sizes[i]);
    result.n = in[0].n;
    out.assign(1, result);
    return kOk;
}

int MatMulInteger::forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                           const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tops(*this, bottom_blobs, top_blobs, opt));
    const Mat &am = bottom_blobs[0], &bm = bottom_blobs[1];
    const Mat& az = a_zero_point_input ? bottom_blobs[2] : a_zero_points;
    const Mat& bz = b_zero_point_input ? bottom_blobs.back() : b_zero_points;
    const auto view = [](const Mat& m, bool as_column) {
        return m.empty() ? Operand{{1, 1, 1, 1}, {0, 0, 0, 0}}
                         : operand(m.logical_shape(), m.cstep, as_column);
    };
    const Operand a = view(am, false), b = view(bm, true);
    const Operand a_zero = view(az, true), b_zero = view(bz, false);
    const Bytes a_values(am, a_unsigned), b_values(bm, b_unsigned);
    Mat& top = top_blobs[0];
    const size_t plane = (size_t)top.w * top.h * top.d;
    size_t next = 0;
    for (int i = 0; i < std::max(a.size[0], b.size[0]); i++)
        for (int j = 0; j < std::max(a.size[1], b.size[1]); j++)
            for (int m = 0; m < a.size[2]; m++)
                for (int n = 0; n < b.size[3]; n++, next++) {
                    const int za = az.empty() ? 0 : integer_at(az, a_zero.at(i, j, m, 0));
                    const int zb = bz.empty() ? 0 : integer_at(bz, b_zero.at(i, j, 0, n));
                    int64_t sum = 0;
                    for (int k = 0; k < a.size[3]; k++)
                        sum += (int64_t)(a_values[a.at(i, j, m, k)] - za) *
                               (b_values[b.at(i, j, k, n)] - zb);
                    ((int*)top.data)[next / plane * top.cstep + next % plane] = wrapped(sum);
                }
    return kOk;
}

int64_t MatMulInteger::macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const {
    if (!first_sizes_known(in, out)) return -1;
    return (int64_t)out[0].total() * in[0].w;
}

QUOLL_DEFINE_LAYER(MatMulInteger)

}  // namespace quoll
