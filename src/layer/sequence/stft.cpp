#include "layer/sequence/stft.h"

#include <limits.h>

#include "layer/common/scratch.h"
#include "layer/common/tensor.h"

namespace quoll {

void Stft::params(Stft& s, ParamVisitor& v) {
    const double most = 1 << 24;
    v(0, "length", s.length, 0, "length of a frame", between(1, most));
    v(1, "step", s.step, 1, "from frame to frame", between(1, most));
    v(2, "onesided", s.onesided, 1, "1: bins 0 to length / 2 only", between(0, 1));
}

void Stft::weights(Stft& s, WeightVisitor& v) {
    v(true, "window_data", s.window_data, s.length, WeightKind::kRaw, "[length]");
}

int Stft::create_pipeline(const Option&) { return dft_.create(length); }

int Stft::shape(const Stft& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(s, in, 1, 1));
    const Shape& x = in[0];
    if (x.dims < 1 || x.dims > 2 || !accepts_float(s, x.dtype))
        return s.fail("expected signals [rows, samples] of f32, got %s of %s",
                      shape_text(x).c_str(), dtype_name(x.dtype));
    if (x.w < s.length) return s.fail("%d values are too few for frames of %d", x.w, s.length);
    out.assign(1, Shape(2, s.bins(), (x.w - s.length) / s.step + 1, x.h, x.dtype));
    out[0].n = x.n;
    return kOk;
}

void Stft::transform_frame(const float* in, float* out) const {
    Scratch<Complex> frame, spectrum, memory;
    frame->resize(length), spectrum->resize(length), memory->resize(length);
    for (int j = 0; j < length; j++) frame[j] = {(double)in[j] * window_data[j], 0};
    dft_.transform(frame->data(), spectrum->data(), memory->data());
    for (int k = 0; k < bins(); k++) {
        out[2 * k] = (float)spectrum[k].re;
        out[2 * k + 1] = (float)spectrum[k].im;
    }
}

int Stft::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                  const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat& x = bottoms[0];
    for (int r = 0; r < tops[0].c; r++)
        for (int f = 0; f < tops[0].d; f++)
            transform_frame((const float*)x.data + (size_t)r * x.w + (size_t)f * step,
                            (float*)tops[0].data + r * tops[0].cstep + (size_t)f * bins() * 2);
    return kOk;
}

QUOLL_DEFINE_LAYER(Stft)

}  // namespace quoll
