#include "layer/cpu/signal/fft.h"

#include <math.h>
#include <stdint.h>

#include <utility>

namespace quoll {

namespace {

// A stage does this `run` times, with neighbouring values: a transform of values that are `apart`
// apart, whose result k is multiplied by root k - 1 and goes to k * run.
struct Part {
    size_t apart, run;
    const float* roots;
    const float* waves;  // the roots of unity of the radix
};

// (re, im) times a root of unity.
inline void store_turned(float* y_re, float* y_im, size_t at, float re, float im,
                         const float* root) {
    y_re[at] = re * root[0] - im * root[1];
    y_im[at] = re * root[1] + im * root[0];
}

void stage2(const Part& p, const float* __restrict re, const float* __restrict im,
            float* __restrict y_re, float* __restrict y_im) {
    const size_t n = p.run, b = p.apart;
    const float root[] = {p.roots[0], p.roots[1]};
    for (size_t q = 0; q < n; q++) {
        y_re[q] = re[q] + re[b + q];
        y_im[q] = im[q] + im[b + q];
        store_turned(y_re, y_im, n + q, re[q] - re[b + q], im[q] - im[b + q], root);
    }
}

void stage4(const Part& p, const float* __restrict re, const float* __restrict im,
            float* __restrict y_re, float* __restrict y_im) {
    const size_t n = p.run, b = p.apart, c = 2 * b, d = 3 * b;
    float roots[6];
    for (int i = 0; i < 6; i++) roots[i] = p.roots[i];
    for (size_t q = 0; q < n; q++) {
        const float sum_re = re[q] + re[c + q], sum_im = im[q] + im[c + q];
        const float odd_re = re[b + q] + re[d + q], odd_im = im[b + q] + im[d + q];
        const float low_re = re[q] - re[c + q], low_im = im[q] - im[c + q];
        const float high_re = re[b + q] - re[d + q], high_im = im[b + q] - im[d + q];
        y_re[q] = sum_re + odd_re;
        y_im[q] = sum_im + odd_im;
        store_turned(y_re, y_im, n + q, low_re + high_im, low_im - high_re, roots);
        store_turned(y_re, y_im, 2 * n + q, sum_re - odd_re, sum_im - odd_im, roots + 2);
        store_turned(y_re, y_im, 3 * n + q, low_re - high_im, low_im + high_re, roots + 4);
    }
}

// An odd radix: values r and radix - r are multiplied with roots that mirror each other.
template <int kRadix>
void stage_odd(const Part& p, const float* __restrict re, const float* __restrict im,
               float* __restrict y_re, float* __restrict y_im) {
    const int half = kRadix / 2;
    const size_t n = p.run;
    float wave[kRadix][2], roots[kRadix][2];
    for (int i = 0; i < kRadix; i++) {
        for (int part = 0; part < 2; part++) {
            wave[i][part] = p.waves[2 * i + part];
            roots[i][part] = i ? p.roots[2 * (i - 1) + part] : (float)(1 - part);
        }
    }
    for (size_t q = 0; q < n; q++) {
        float sum_re[half + 1], sum_im[half + 1], gap_re[half + 1], gap_im[half + 1];
        float all_re = re[q], all_im = im[q];
        for (int r = 1; r <= half; r++) {
            const size_t a = r * p.apart + q, b = (kRadix - r) * p.apart + q;
            sum_re[r] = re[a] + re[b], sum_im[r] = im[a] + im[b];
            gap_re[r] = re[a] - re[b], gap_im[r] = im[a] - im[b];
            all_re += sum_re[r], all_im += sum_im[r];
        }
        y_re[q] = all_re, y_im[q] = all_im;
        for (int k = 1; k <= half; k++) {
            float with_re = re[q], with_im = im[q], against_re = 0, against_im = 0;
            for (int r = 1; r <= half; r++) {
                const float c = wave[r * k % kRadix][0], s = wave[r * k % kRadix][1];
                with_re += sum_re[r] * c, with_im += sum_im[r] * c;
                against_re -= gap_im[r] * s, against_im += gap_re[r] * s;
            }
            store_turned(y_re, y_im, k * n + q, with_re + against_re, with_im + against_im,
                         roots[k]);
            store_turned(y_re, y_im, (kRadix - k) * n + q, with_re - against_re,
                         with_im - against_im, roots[kRadix - k]);
        }
    }
}

// Any radix: each result as a sum over the values.
void stage_any(int radix, const Part& p, const float* __restrict re, const float* __restrict im,
               float* __restrict y_re, float* __restrict y_im) {
    for (int k = 0; k < radix; k++, y_re += p.run, y_im += p.run) {
        for (size_t q = 0; q < p.run; q++) y_re[q] = re[q], y_im[q] = im[q];
        for (int r = 1; r < radix; r++) {
            const float* const wave = p.waves + (size_t)((int64_t)r * k % radix) * 2;
            const float c = wave[0], s = wave[1];
            const size_t from = r * p.apart;
            for (size_t q = 0; q < p.run; q++) {
                y_re[q] += re[from + q] * c - im[from + q] * s;
                y_im[q] += re[from + q] * s + im[from + q] * c;
            }
        }
        for (size_t q = 0; k && q < p.run; q++)
            store_turned(y_re, y_im, q, y_re[q], y_im[q], p.roots + 2 * (size_t)(k - 1));
    }
}

}  // namespace

void Fft::create(int n) {
    n_ = n;
    stages_.clear(), roots_.clear();
    const auto add_root = [&](int64_t turns, int64_t of) {
        const double angle = -2 * M_PI * (double)(turns % of) / (double)of;
        roots_.push_back((float)cos(angle));
        roots_.push_back((float)sin(angle));
    };
    int run = 1;
    for (int left = n; left > 1;) {
        int radix = left % 4 == 0 ? 4 : 2;
        while (left % radix != 0) radix++;
        Stage stage = {radix, left / radix, run, roots_.size(), 0};
        for (int64_t j = 0; j < stage.count; j++)
            for (int64_t k = 1; k < radix; k++) add_root(j * k, left);
        stage.waves = roots_.size();
        for (int64_t k = 0; k < radix; k++) add_root(k, radix);
        stages_.push_back(stage);
        run *= radix, left /= radix;
    }
}

void Fft::transform(float** re, float** im, float* scratch, int lanes) const {
    float *from_re = *re, *from_im = *im, *to_re = scratch;
    float* to_im = scratch + (size_t)n_ * lanes;
    for (const Stage& s : stages_) {
        Part part = {(size_t)s.count * s.run * lanes, (size_t)s.run * lanes, &roots_[s.roots],
                     &roots_[s.waves]};
        for (int j = 0; j < s.count; j++, part.roots += 2 * (s.radix - 1)) {
            const size_t in = j * part.run, out = in * s.radix;
            const float *x_re = from_re + in, *x_im = from_im + in;
            float *y_re = to_re + out, *y_im = to_im + out;
            switch (s.radix) {
                case 2:
                    stage2(part, x_re, x_im, y_re, y_im);
                    break;
                case 3:
                    stage_odd<3>(part, x_re, x_im, y_re, y_im);
                    break;
                case 4:
                    stage4(part, x_re, x_im, y_re, y_im);
                    break;
                case 5:
                    stage_odd<5>(part, x_re, x_im, y_re, y_im);
                    break;
                default:
                    stage_any(s.radix, part, x_re, x_im, y_re, y_im);
            }
        }
        std::swap(from_re, to_re), std::swap(from_im, to_im);
    }
    *re = from_re, *im = from_im;
}

}  // namespace quoll
