#include "layer/sequence/inversespectrogram.h"

#include <limits.h>

#include <algorithm>

namespace quoll {

InverseSpectrogram::InverseSpectrogram() : returns(0) { one_blob_only = true; }

void InverseSpectrogram::params(InverseSpectrogram& s, ParamVisitor& v) {
    stft_params(s, v);
    v(1, "returns", s.returns, 0, "0 complex, 1 real part, 2 imaginary part", between(0, 2));
}

void InverseSpectrogram::weights(InverseSpectrogram&, WeightVisitor&) {}

int InverseSpectrogram::create_pipeline(const Option&) { return create(*this); }

int InverseSpectrogram::shape(const InverseSpectrogram& s, const std::vector<Shape>& in,
                              std::vector<Shape>& out) {
    if (in.size() != 1) return s.fail("expected 1 input, got %zu", in.size());
    if (in[0].dims != 3 || in[0].w != 2 || !accepts_float(s, in[0].dtype))
        return s.fail("expected [frequency, frame, 2] of f32, got %s of %s",
                      shape_text(in[0]).c_str(), dtype_name(in[0].dtype));
    if (in[0].c != s.n_fft && in[0].c != s.n_fft / 2 + 1)
        return s.fail("expected %d or %d frequencies, got %d", s.n_fft, s.n_fft / 2 + 1, in[0].c);
    // What remains without the half frames that `center` adds; an odd n_fft has one value more than
    // two halves.
    const int64_t size = (int64_t)(in[0].h - 1) * s.hoplen + (s.center ? s.n_fft % 2 : s.n_fft);
    if (size < 1 || size > INT_MAX)
        return s.fail("%d frames give %lld values", in[0].h, (long long)size);
    out.assign(1, s.returns ? Shape((int)size, in[0].dtype) : Shape(2, (int)size, in[0].dtype));
    out[0].n = in[0].n;
    return kOk;
}

int InverseSpectrogram::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    std::vector<Mat> tops;
    QUOLL_RETURN_IF_ERROR(create_tops(*this, {bottom_blob}, tops, opt));
    top_blob = tops[0];
    const int size = returns ? top_blob.w : top_blob.h, half = center ? n_fft / 2 : 0;
    // Spectrum, frame and scratch; then the sums of frames and squared windows.
    Mat memory((int)(sizeof(Complex) / sizeof(float)) * n_fft, 3, (size_t)4u,
               opt.workspace_allocator);
    Mat sums(size, 3, (size_t)4u, opt.workspace_allocator);
    if (memory.empty() || sums.empty()) return kOutOfMemory;
    sums.fill(0.f);
    Complex* spectrum = (Complex*)memory.data;
    const Complex* frame = spectrum + n_fft;
    // The inverse transform is the conjugate of the transform of the conjugate.
    const double factor = 1 / scale / n_fft;
    for (int j = 0; j < bottom_blob.h; j++) {
        for (int k = 0; k < n_fft; k++) {
            const bool mirrored = k >= bottom_blob.c;
            const float* x = (const float*)bottom_blob.data +
                             (mirrored ? n_fft - k : k) * bottom_blob.cstep + 2 * (size_t)j;
            spectrum[k] = {x[0] * factor, (mirrored ? x[1] : -x[1]) * factor};
        }
        dft.transform(spectrum, spectrum + n_fft, spectrum + 2 * (size_t)n_fft);
        const int64_t first = (int64_t)j * hoplen - half;
        const int64_t last = std::min<int64_t>(n_fft, size - first);
        for (int64_t i = std::max<int64_t>(0, -first); i < last; i++) {
            const float weight = window_data[i];
            sums.row(0)[first + i] += (float)(frame[i].re * weight);
            sums.row(1)[first + i] -= (float)(frame[i].im * weight);
            sums.row(2)[first + i] += weight * weight;
        }
    }
    for (int i = 0; i < size; i++) {
        const float squares = sums.row(2)[i], inverse = squares > 0 ? 1 / squares : 0.f;
        if (returns == 0)
            for (int part = 0; part < 2; part++)
                top_blob.row(i)[part] = sums.row(part)[i] * inverse;
        else
            top_blob[i] = sums.row(returns - 1)[i] * inverse;
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(InverseSpectrogram)

}  // namespace quoll
