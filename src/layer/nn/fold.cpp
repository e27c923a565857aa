#include "layer/nn/fold.h"

#include "layer/common/channels.h"

namespace quoll {

Fold::Fold() : output_w(0), output_h(0) { one_blob_only = true; }

void Fold::params(Fold& s, ParamVisitor& v) {
    window_params(s, v, 1, 0);
    v(20, "output_w", s.output_w, 0, "width of the image", between(1, 1 << 24));
    v(21, "output_h", s.output_h, s.output_w, "height of the image", between(1, 1 << 24));
}

void Fold::weights(Fold&, WeightVisitor&) {}

// Places of the window: x.out and y.out.
int Fold::geometry(const Shape& in, WindowAxis* x, WindowAxis* y) const {
    *x = across(output_w), *y = down(output_h);
    QUOLL_RETURN_IF_ERROR(convolve_axis(*this, "w", pad_left, pad_right, x));
    QUOLL_RETURN_IF_ERROR(convolve_axis(*this, "h", pad_top, pad_bottom, y));
    if ((int64_t)x->out * y->out == in.w && in.h % ((int64_t)kernel_w * kernel_h) == 0) return kOk;
    return fail("expected %lld columns and a multiple of %lld rows, got %s",
                (long long)x->out * y->out, (long long)kernel_w * kernel_h, shape_text(in).c_str());
}

int Fold::shape(const Fold& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(channelwise_shape(s, in, out, 0));
    if (in[0].dims != 2) return s.fail("expected 2 axes, got %s", shape_text(in[0]).c_str());
    WindowAxis x, y;
    QUOLL_RETURN_IF_ERROR(s.geometry(in[0], &x, &y));
    out[0] = Shape(s.output_w, s.output_h, (int)(in[0].h / ((int64_t)s.kernel_w * s.kernel_h)),
                   in[0].dtype);
    out[0].n = in[0].n;
    return kOk;
}

int Fold::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    std::vector<Mat> tops;
    QUOLL_RETURN_IF_ERROR(create_tops(*this, {bottom_blob}, tops, opt));
    top_blob = tops[0];
    WindowAxis x, y;
    QUOLL_RETURN_IF_ERROR(geometry(bottom_blob.logical_shape(), &x, &y));
    top_blob.fill(0.f);
    const float* in = bottom_blob;
    for (int row = 0; row < bottom_blob.h; row++) {
        const int q = row / (kernel_w * kernel_h), u = row / kernel_w % kernel_h;
        float* image = (float*)top_blob.data + q * top_blob.cstep;
        for (int i = 0; i < y.out; i++) {
            const int64_t sy = y.position(i, u);
            for (int j = 0; j < x.out; j++, in++) {
                const int64_t sx = x.position(j, row % kernel_w);
                if (y.holds(sy) && x.holds(sx)) image[sy * x.in + sx] += *in;
            }
        }
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(Fold)

}  // namespace quoll
