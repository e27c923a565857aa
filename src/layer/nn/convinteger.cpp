#include "layer/nn/convinteger.h"

#include "layer/common/zero_points.h"

namespace quoll {

ConvInteger::ConvInteger()
    : num_output(0),
      weight_data_size(0),
      group(1),
      weight_unsigned(0),
      dynamic_weight(0),
      x_zero_point_input(0),
      w_zero_point_input(0),
      x_zero_point(0) {}

void ConvInteger::params(ConvInteger& s, ParamVisitor& v) {
    const Range flag = between(0, 1), byte = between(-128, 255);
    v(0, "num_output", s.num_output, 0, "output channels; not with dynamic_weight", at_least(0));
    window_params(s, v, 0, kPadSameLower);
    v(6, "weight_data_size", s.weight_data_size, 0, "scalars of weight_data", at_least(0));
    v(7, "group", s.group, 1, "groups of channels", at_least(1));
    v(8, "weight_unsigned", s.weight_unsigned, 0, "1: the bytes of weight_data are u8", flag);
    v(19, "dynamic_weight", s.dynamic_weight, 0, "1: the weight is input 1", flag);
    v(20, "x_zero_point_input", s.x_zero_point_input, 0, "1: an input has x_zero_point", flag);
    v(21, "w_zero_point_input", s.w_zero_point_input, 0, "1: an input has w_zero_points", flag);
    v(22, "x_zero_point", s.x_zero_point, 0, "what stands for 0 in x", byte);
    v.ints(23, "w_zero_points", s.w_zero_points, "what stands for 0 in w: one, or one a channel",
           byte);
}

void ConvInteger::weights(ConvInteger& s, WeightVisitor& v) {
    v(!s.dynamic_weight, "weight_data", s.weight_data, s.weight_data_size, WeightKind::kTagged,
      "int8: [num_output][num_input / group][kernel_h][kernel_w]");
}

int ConvInteger::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    if (dynamic_weight) return kOk;
    if (num_output < 1 || num_output % group != 0)
        return fail("num_output (0): expected a multiple of group %d, got %d", group, num_output);
    const double unit = (double)kernel_w * kernel_h * num_output;
    if (unit < 1 || weight_data_size < unit || weight_data_size % (int64_t)unit != 0)
        return fail("weight_data_size (6): expected a multiple of %.0f, got %d", unit,
                    weight_data_size);
    return kOk;
}

int ConvInteger::load_model(const ModelBin& mb) {
    QUOLL_RETURN_IF_ERROR(load_weights_by_schema(*this, mb));
    if (dynamic_weight || weight_data.dtype == DType::s8) return kOk;
    return fail("weight_data: expected int8, got %s", dtype_name(weight_data.dtype));
}

// A convolution of inputs of known size, and the indexes of optional inputs, 0 being none.
struct ConvInteger::Geometry {
    WindowAxis x, y;
    int num_output, per_group;  // output channels, and input channels of a group
    int weight, x_zero, w_zero;
};

int ConvInteger::check_zero_points(const std::vector<Shape>& in, const Geometry& g) const {
    if (g.x_zero && in[g.x_zero].total() != (size_t)in[g.x_zero].n)
        return fail("the zero point of x: expected 1 value, got %s",
                    shape_text(in[g.x_zero]).c_str());
    const int64_t given = !g.w_zero                ? w_zero_points.w
                          : in[g.w_zero].dims == 1 ? in[g.w_zero].w
                                                   : -1;
    if (given == 1 || given == g.num_output || (given == 0 && !g.w_zero)) return kOk;
    return fail("zero points of the weight: expected 1 or %d", g.num_output);
}

int ConvInteger::geometry(const std::vector<Shape>& in, Geometry* g) const {
    int next = 1;
    const auto index = [&next](bool present) { return present ? next++ : 0; };
    g->weight = index(dynamic_weight);
    g->x_zero = index(x_zero_point_input), g->w_zero = index(w_zero_point_input);
    if ((int)in.size() != next) return fail("expected %d inputs, got %zu", next, in.size());
    const Shape& x = in[0];
    if (x.dims < 2 || x.dims > 3 || !is_byte(x.dtype) || x.c % group != 0)
        return fail("expected [channels, h, w] of s8 or u8 in %d groups, got %s of %s", group,
                    shape_text(x).c_str(), dtype_name(x.dtype));
    g->x = across(x.w), g->y = down(x.h);
    g->per_group = x.c / group, g->num_output = num_output;
    if (dynamic_weight) {
        const Shape& w = in[g->weight];
        if (w.dims != 4 || !is_byte(w.dtype) || w.d != g->per_group || w.c % group != 0)
            return fail("the weight: expected [output, %d, h, w] of s8 or u8, got %s of %s",
                        g->per_group, shape_text(w).c_str(), dtype_name(w.dtype));
        g->x.kernel = w.w, g->y.kernel = w.h, g->num_output = w.c;
    } else if ((double)num_output * g->per_group * kernel_w * kernel_h != weight_data_size) {
        return fail("expected %d input channels, got %d: the input is %s",
                    weight_data_size / num_output / kernel_w / kernel_h * group, x.c,
                    shape_text(x).c_str());
    }
    QUOLL_RETURN_IF_ERROR(convolve_axis(*this, "w", pad_left, pad_right, &g->x));
    QUOLL_RETURN_IF_ERROR(convolve_axis(*this, "h", pad_top, pad_bottom, &g->y));
    return check_zero_points(in, *g);
}

int ConvInteger::shape(const ConvInteger& s, const std::vector<Shape>& in,
                       std::vector<Shape>& out) {
    Geometry g;
    QUOLL_RETURN_IF_ERROR(s.geometry(in, &g));
    out.assign(1, Shape(g.x.out, g.y.out, g.num_output, DType::s32));
    out[0].n = in[0].n;
    return kOk;
}

// One output value. `x` is the group's first channel, `w` the first weight of the output channel.
static int64_t window_sum(const Bytes& values, size_t x, size_t cstep, const Bytes& weights,
                          size_t w, int channels, const WindowAxis& across, const WindowAxis& down,
                          int i, int j, int x_zero, int w_zero) {
    int64_t sum = 0;
    for (int q = 0; q < channels; q++) {
        for (int u = 0; u < down.kernel; u++) {
            const int64_t sy = down.position(i, u);
            for (int k = 0; k < across.kernel; k++, w++) {
                const int64_t sx = across.position(j, k);
                if (!down.holds(sy) || !across.holds(sx)) continue;
                const size_t at = x + q * cstep + sy * across.in + sx;
                sum += (values[at] - x_zero) * (weights[w] - w_zero);
            }
        }
    }
    return sum;
}

int ConvInteger::forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                         const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tops(*this, bottom_blobs, top_blobs, opt));
    std::vector<Shape> in = shapes_of(bottom_blobs);
    Geometry g;
    QUOLL_RETURN_IF_ERROR(geometry(in, &g));
    const Mat& x = bottom_blobs[0];
    Mat& top = top_blobs[0];
    Mat weight = weight_data;
    if (dynamic_weight)
        QUOLL_RETURN_IF_ERROR(flat_weight(*this, bottom_blobs[g.weight], opt, &weight));
    const Bytes values(x, false), weights(weight, !dynamic_weight && weight_unsigned);
    const Mat& w_zeros = g.w_zero ? bottom_blobs[g.w_zero] : w_zero_points;
    const int x_zero = g.x_zero ? integer_at(bottom_blobs[g.x_zero], 0) : x_zero_point;
    const size_t per_output = (size_t)g.per_group * g.x.kernel * g.y.kernel;
    for (int p = 0; p < g.num_output; p++) {
        const int w_zero = w_zeros.empty() ? 0 : integer_at(w_zeros, w_zeros.w > 1 ? p : 0);
        const size_t first = (size_t)(p / (g.num_output / group)) * g.per_group * x.cstep;
        int* out = (int*)top.data + p * top.cstep;
        for (int i = 0; i < top.h; i++)
            for (int j = 0; j < top.w; j++)
                *out++ = wrapped(window_sum(values, first, x.cstep, weights, p * per_output,
                                            g.per_group, g.x, g.y, i, j, x_zero, w_zero));
    }
    return kOk;
}

int64_t ConvInteger::macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const {
    if (!first_sizes_known(in, out)) return -1;
    return (int64_t)out[0].total() * kernel_w * kernel_h * (in[0].size(0) / group);
}

QUOLL_DEFINE_LAYER(ConvInteger)

}  // namespace quoll
