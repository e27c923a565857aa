#include "layer/sequence/stft.h"

#include <math.h>

#include <algorithm>

#include "layer/common/scratch.h"
#include "layer/common/tensor.h"
#include "layer/cpu/common/packing.h"
#include "layer/cpu/signal/fft.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// One frame's spectrum.
struct Bins {
    const float *re, *im;
    size_t apart;  // neighbours

    float real(int k) const { return re[k * apart]; }
    float imaginary(int k) const { return im[k * apart]; }
};

class StftCpu : public Stft {
public:
    int create_pipeline(const Option& opt) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

private:
    void join_halves(const Bins& z, float* out) const;
    void transform_frames(const float* in, int lanes, float* out) const;

    Fft fft_;                    // of half the length where that is even
    std::vector<float> angles_;  // then e^(-2 pi i k / length), k <= length / 2, in pairs
};

int StftCpu::create_pipeline(const Option& opt) {
    QUOLL_RETURN_IF_ERROR(Stft::create_pipeline(opt));
    const bool even = length % 2 == 0;
    fft_.create(even ? length / 2 : length);
    angles_.clear();
    for (int k = 0; even && k <= length / 2; k++) {
        angles_.push_back((float)cos(2 * M_PI * k / length));
        angles_.push_back((float)-sin(2 * M_PI * k / length));
    }
    return kOk;
}

// The spectrum of a frame of even length, which was transformed as half as many complex numbers,
// made of neighbours. The parts of their spectrum Z with and against symmetry are the transforms E
// and O of the values at even and odd places, and X[k] = E[k] + e^(-2 pi i k / length) O[k].
void StftCpu::join_halves(const Bins& z, float* out) const {
    const int half = length / 2;
    for (int k = 0; k <= half; k++) {
        const int a = k == half ? 0 : k, b = k == 0 ? 0 : half - k;
        const float even_re = 0.5f * (z.real(a) + z.real(b));
        const float even_im = 0.5f * (z.imaginary(a) - z.imaginary(b));
        const float odd_re = 0.5f * (z.imaginary(a) + z.imaginary(b));
        const float odd_im = 0.5f * (z.real(b) - z.real(a));
        const float c = angles_[2 * (size_t)k], s = angles_[2 * (size_t)k + 1];
        out[2 * k] = even_re + odd_re * c - odd_im * s;
        out[2 * k + 1] = even_im + odd_re * s + odd_im * c;
    }
    // The upper half of a real signal's spectrum mirrors the lower one.
    for (int k = half + 1; k < bins(); k++) {
        out[2 * k] = out[2 * (length - k)];
        out[2 * k + 1] = -out[2 * (length - k) + 1];
    }
}

// `lanes` frames at a time.
void StftCpu::transform_frames(const float* in, int lanes, float* out) const {
    const size_t n = fft_.size(), size = n * lanes;
    const bool even = length % 2 == 0;
    Scratch<float> memory;
    memory->resize(4 * size);
    float *re = memory->data(), *im = re + size;
    const float* const window = window_data;
    for (int l = 0; l < lanes; l++) {
        const float* const x = in + (size_t)l * step;
        for (size_t j = 0; j < n; j++) {
            const size_t at = even ? 2 * j : j;
            re[j * lanes + l] = x[at] * window[at];
            im[j * lanes + l] = even ? x[at + 1] * window[at + 1] : 0.f;
        }
    }
    fft_.transform(&re, &im, memory->data() + 2 * size, lanes);
    for (int l = 0; l < lanes; l++) {
        const Bins z = {re + l, im + l, (size_t)lanes};
        float* const to = out + (size_t)l * bins() * 2;
        if (even) join_halves(z, to);
        for (int k = 0; !even && k < bins(); k++)
            to[2 * k] = z.real(k), to[2 * k + 1] = z.imaginary(k);
        // A fast transform spreads what is not finite to sums in which it has no part.
        if (!isfinite(to[0])) transform_frame(in + (size_t)l * step, to);
    }
}

int StftCpu::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                     const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const int kLanes = 8;
    const Mat &x = bottoms[0], &top = tops[0];
    if (top.empty()) return kOk;
    const int64_t blocks = (top.d + kLanes - 1) / kLanes;
    const double work = (double)top.c * top.d * length * 8;
    parallel_for(top.c * blocks, threads_for(opt, work), [&](int64_t i) {
        const size_t row = (size_t)(i / blocks);
        const int first = (int)(i % blocks) * kLanes, count = std::min(kLanes, top.d - first);
        const int together = count == kLanes ? kLanes : 1;
        for (int f = first; f < first + count; f += together)
            transform_frames((const float*)x.data + row * x.w + (size_t)f * step, together,
                             (float*)top.data + row * top.cstep + (size_t)f * bins() * 2);
    });
    return kOk;
}

}  // namespace

Layer* create_Stft_fast_layer() { return new StftCpu; }

}  // namespace quoll
