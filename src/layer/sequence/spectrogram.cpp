#include "layer/sequence/spectrogram.h"

#include <limits.h>
#include <math.h>

namespace quoll {

Spectrogram::Spectrogram() : power(0), pad_type(2), onesided(1) { one_blob_only = true; }

void Spectrogram::params(Spectrogram& s, ParamVisitor& v) {
    stft_params(s, v);
    v(1, "power", s.power, 0, "0 complex, 1 magnitude, 2 its square", between(0, 2));
    v(6, "pad_type", s.pad_type, 2, "0 zeros, 1 edge, 2 reflect", between(0, 2));
    v(8, "onesided", s.onesided, 1, "1: frequencies 0 to n_fft / 2 only");
}

void Spectrogram::weights(Spectrogram&, WeightVisitor&) {}

int Spectrogram::create_pipeline(const Option&) { return create(*this); }

int Spectrogram::shape(const Spectrogram& s, const std::vector<Shape>& in,
                       std::vector<Shape>& out) {
    if (in.size() != 1) return s.fail("expected 1 input, got %zu", in.size());
    if (in[0].dims < 1 || in[0].dims > 2 || in[0].h != 1 || !accepts_float(s, in[0].dtype))
        return s.fail("expected a signal of one axis of f32, got %s of %s",
                      shape_text(in[0]).c_str(), dtype_name(in[0].dtype));
    const int64_t half = s.center ? s.n_fft / 2 : 0, size = in[0].w + 2 * half;
    if (size < s.n_fft || (half >= in[0].w && s.pad_type == 2))
        return s.fail("%d values are too few for frames of %d", in[0].w, s.n_fft);
    const int64_t frames = (size - s.n_fft) / s.hoplen + 1;
    if (frames > INT_MAX) return s.fail("%lld frames are too many", (long long)frames);
    out.assign(1, s.power ? Shape((int)frames, s.num_freqs(), in[0].dtype)
                          : Shape(2, (int)frames, s.num_freqs(), in[0].dtype));
    out[0].n = in[0].n;
    return kOk;
}

// Value i of a signal of `size` values, which is continued beyond its ends.
static float padded(const float* x, int64_t i, int64_t size, int pad_type) {
    if (i >= 0 && i < size) return x[i];
    if (pad_type == 0) return 0.f;
    if (pad_type == 1) return i < 0 ? x[0] : x[size - 1];
    return i < 0 ? x[-i] : x[2 * (size - 1) - i];
}

void Spectrogram::store_frame(const Complex* spectrum, int frame, Mat& top) const {
    for (int k = 0; k < num_freqs(); k++) {
        const Complex c = spectrum[k];
        if (power == 0) {
            float* out = (float*)top.data + k * top.cstep + 2 * (size_t)frame;
            out[0] = (float)c.re, out[1] = (float)c.im;
        } else {
            const double square = c.re * c.re + c.im * c.im;
            top.row(k)[frame] = (float)(power == 1 ? sqrt(square) : square);
        }
    }
}

int Spectrogram::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    std::vector<Mat> tops;
    QUOLL_RETURN_IF_ERROR(create_tops(*this, {bottom_blob}, tops, opt));
    top_blob = tops[0];
    // Frame, spectrum and scratch.
    Mat memory((int)(sizeof(Complex) / sizeof(float)) * n_fft, 3, (size_t)4u,
               opt.workspace_allocator);
    if (memory.empty()) return kOutOfMemory;
    Complex* frame = (Complex*)memory.data;
    const int frames = power ? top_blob.w : top_blob.h;
    for (int j = 0; j < frames; j++) {
        const int64_t first = (int64_t)j * hoplen - (center ? n_fft / 2 : 0);
        for (int i = 0; i < n_fft; i++) {
            const float x = padded(bottom_blob, first + i, bottom_blob.w, pad_type);
            frame[i] = {scale * window_data[i] * x, 0};
        }
        dft.transform(frame, frame + n_fft, frame + 2 * (size_t)n_fft);
        store_frame(frame + n_fft, j, top_blob);
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(Spectrogram)

}  // namespace quoll
