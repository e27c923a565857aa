#include "layer/nn/unfold.h"

#include <limits.h>

#include "layer/common/channels.h"

namespace quoll {

Unfold::Unfold() : pad_value(0.f) { one_blob_only = true; }

void Unfold::params(Unfold& s, ParamVisitor& v) {
    window_params(s, v, 1, kPadSameLower);
    v(18, "pad_value", s.pad_value, 0.f, "value of the padding");
}

void Unfold::weights(Unfold&, WeightVisitor&) {}

int Unfold::shape(const Unfold& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(channelwise_shape(s, in, out, 0));
    if (in[0].dims > 3) return s.fail("expected 1 to 3 axes, got %s", shape_text(in[0]).c_str());
    WindowAxis x = s.across(in[0].w), y = s.down(in[0].h);
    QUOLL_RETURN_IF_ERROR(convolve_axis(s, "w", s.pad_left, s.pad_right, &x));
    QUOLL_RETURN_IF_ERROR(convolve_axis(s, "h", s.pad_top, s.pad_bottom, &y));
    const double columns = (double)x.out * y.out, rows = (double)x.kernel * y.kernel * in[0].c;
    if (columns > INT_MAX || rows > INT_MAX)
        return s.fail("a matrix of %.0f x %.0f is too large", columns, rows);
    out[0] = Shape((int)columns, (int)rows, in[0].dtype);
    out[0].n = in[0].n;
    return kOk;
}

int Unfold::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    std::vector<Mat> tops;
    QUOLL_RETURN_IF_ERROR(create_tops(*this, {bottom_blob}, tops, opt));
    top_blob = tops[0];
    WindowAxis x = across(bottom_blob.w), y = down(bottom_blob.h);
    QUOLL_RETURN_IF_ERROR(convolve_axis(*this, "w", pad_left, pad_right, &x));
    QUOLL_RETURN_IF_ERROR(convolve_axis(*this, "h", pad_top, pad_bottom, &y));
    float* out = top_blob;
    for (int row = 0; row < top_blob.h; row++) {
        const int q = row / (kernel_w * kernel_h), u = row / kernel_w % kernel_h;
        const float* image = (const float*)bottom_blob.data + q * bottom_blob.cstep;
        for (int i = 0; i < y.out; i++) {
            const int64_t sy = y.position(i, u);
            for (int j = 0; j < x.out; j++) {
                const int64_t sx = x.position(j, row % kernel_w);
                const bool inside = y.holds(sy) && x.holds(sx);
                *out++ = inside ? image[sy * x.in + sx] : pad_value;
            }
        }
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(Unfold)

}  // namespace quoll
