#include "layer/sequence/rotaryembed.h"

namespace quoll {

RotaryEmbed::RotaryEmbed() : interleaved(0) {}

void RotaryEmbed::params(RotaryEmbed& s, ParamVisitor& v) {
    v(0, "interleaved", s.interleaved, 0, "1: neighbours are pairs, 0: the halves of a row are",
      between(0, 1));
}

void RotaryEmbed::weights(RotaryEmbed&, WeightVisitor&) {}

int RotaryEmbed::shape(const RotaryEmbed& s, const std::vector<Shape>& in,
                       std::vector<Shape>& out) {
    if (in.size() != 3) return s.fail("expected 3 inputs, got %zu", in.size());
    for (const Shape& shape : in)
        if (!accepts_float(s, shape.dtype))
            return s.fail("expected inputs of f32, got %s", dtype_name(shape.dtype));
    const Shape &x = in[0], &cosines = in[1];
    if ((x.dims != 2 && x.dims != 3) || x.w % 2 != 0)
        return s.fail("expected an even w, h and maybe c, got %s", shape_text(x).c_str());
    const bool row =
        cosines.dims == 1 || cosines.dims == 2 || (cosines.dims == 3 && cosines.c == 1);
    if (!row || cosines.h < x.h || (cosines.w != x.w / 2 && cosines.w != x.w))
        return s.fail("cosines: expected %d (or %d) x %d, got %s", x.w / 2, x.w, x.h,
                      shape_text(cosines).c_str());
    if (in[2].dims != cosines.dims || in[2].w != cosines.w || in[2].h < x.h || in[2].c != 1)
        return s.fail("sines: expected %s as the cosines, got %s", shape_text(cosines).c_str(),
                      shape_text(in[2]).c_str());
    out.assign(1, x);
    return kOk;
}

int RotaryEmbed::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                         const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tops(*this, bottoms, tops, opt));
    const Mat& x = bottoms[0];
    const int half = x.w / 2, second = !interleaved && bottoms[1].w == x.w ? half : 0;
    const int pair = interleaved ? 2 : 1, partner = interleaved ? 1 : half;
    for (int q = 0; q < x.c; q++) {
        for (int y = 0; y < x.h; y++) {
            const float* in = x.channel(q).row(y);
            const float *c = bottoms[1].row(y), *s = bottoms[2].row(y);
            float* out = tops[0].channel(q).row(y);
            for (int i = 0; i < half; i++) {
                const float x0 = in[i * pair], x1 = in[i * pair + partner];
                out[i * pair] = x0 * c[i] - x1 * s[i];
                out[i * pair + partner] = x0 * s[i + second] + x1 * c[i + second];
            }
        }
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(RotaryEmbed)

}  // namespace quoll
