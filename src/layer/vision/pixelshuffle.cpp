#include "layer/vision/pixelshuffle.h"

#include <limits.h>
#include <string.h>

namespace quoll {

PixelShuffle::PixelShuffle() {
    one_blob_only = true;
    support_fp16_storage = support_bf16_storage = true;
}

void PixelShuffle::params(PixelShuffle& s, ParamVisitor& v) {
    v(0, "upscale_factor", s.upscale_factor, 1, "factor of w and h", between(1, 4096));
    v(1, "mode", s.mode, 0, "0: a block's channels are neighbours, 1: they are far apart",
      between(0, 1));
}

void PixelShuffle::weights(PixelShuffle&, WeightVisitor&) {}

int PixelShuffle::shape(const PixelShuffle& s, const std::vector<Shape>& in,
                        std::vector<Shape>& out) {
    if (in.size() != 1) return s.fail("expected 1 input, got %zu", in.size());
    const int r = s.upscale_factor;
    if (in[0].dims != 3 || in[0].c % (r * r) != 0)
        return s.fail("expected 3 axes and a multiple of %d channels, got %s", r * r,
                      shape_text(in[0]).c_str());
    if (in[0].w > INT_MAX / r || in[0].h > INT_MAX / r)
        return s.fail("%s cannot grow by %d", shape_text(in[0]).c_str(), r);
    out = in;
    out[0].w *= r, out[0].h *= r, out[0].c /= r * r;
    return kOk;
}

int PixelShuffle::forward(const Mat& bottom, Mat& top, const Option& opt) const {
    std::vector<Mat> tops;
    QUOLL_RETURN_IF_ERROR(create_tops(*this, {bottom}, tops, opt));
    top = tops[0];
    const int r = upscale_factor;
    const size_t es = bottom.elemsize;
    for (int q = 0; q < top.c; q++) {
        for (int i = 0; i < r; i++) {
            for (int j = 0; j < r; j++) {
                const int from = source_channel(q, i, j, top.c);
                const char* src = (const char*)bottom.data + from * bottom.cstep * es;
                for (int y = 0; y < bottom.h; y++) {
                    char* dst =
                        (char*)top.data + (q * top.cstep + (size_t)(y * r + i) * top.w + j) * es;
                    for (int x = 0; x < bottom.w; x++, src += es) memcpy(dst + x * r * es, src, es);
                }
            }
        }
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(PixelShuffle)

}  // namespace quoll
