#include "layer/common/dft.h"

#include <math.h>

namespace quoll {

static const double kPi = 3.14159265358979323846;

// b: a root of unity.
static Complex product(Complex a, Complex b) {
    // A zero root times infinity has to count, as in real arithmetic.
    if (b.im == 0) return Complex{a.re * b.re, a.im * b.re};
    if (b.re == 0) return Complex{-a.im * b.im, a.re * b.im};
    return Complex{a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

int Dft::create(int n) {
    n_ = n;
    roots_.create((int)(n * sizeof(Complex) / sizeof(float)));
    if (roots_.empty()) return kOutOfMemory;
    Complex* roots = (Complex*)roots_.data;
    static const Complex kQuarters[] = {{1, 0}, {0, -1}, {-1, 0}, {0, 1}};
    for (int64_t j = 0; j < n; j++)
        roots[j] = 4 * j % n == 0 ? kQuarters[4 * j / n]
                                  : Complex{cos(2 * kPi * j / n), -sin(2 * kPi * j / n)};
    return kOk;
}

static int smallest_factor(int n) {
    for (int p = 2; (int64_t)p * p <= n; p++)
        if (n % p == 0) return p;
    return n;
}

// The transform of the n values in[0], in[stride], ...
void Dft::part(const Complex* in, int stride, Complex* out, int n, Complex* scratch) const {
    if (n == 1) {
        out[0] = in[0];
        return;
    }
    const Complex* roots = (const Complex*)roots_.data;
    const int p = smallest_factor(n), m = n / p;
    for (int r = 0; r < p; r++) part(in + r * stride, stride * p, out + r * m, m, scratch);
    // Column k of the p transforms of length m: twiddle, then a transform of length p.
    for (int k = 0; k < m; k++) {
        for (int r = 0; r < p; r++)
            scratch[r] = product(out[r * m + k], roots[(int64_t)r * k % n * stride]);
        for (int q = 0; q < p; q++) {
            Complex sum = {0, 0};
            for (int r = 0; r < p; r++) {
                const Complex term = product(scratch[r], roots[(int64_t)r * q % p * m * stride]);
                sum.re += term.re, sum.im += term.im;
            }
            out[q * m + k] = sum;
        }
    }
}

void Dft::transform(const Complex* in, Complex* out, Complex* scratch) const {
    part(in, 1, out, n_, scratch);
}

void stft_params(StftFields& s, ParamVisitor& v) {
    // Longer frames can only be mistakes.
    const double most = 1 << 24;
    v(0, "n_fft", s.n_fft, 0, "length of a frame", between(1, most));
    v(2, "hoplen", s.hoplen, s.n_fft / 4, "step from frame to frame", between(1, most));
    v(3, "winlen", s.winlen, s.n_fft, "length of the window, at most n_fft", between(1, s.n_fft));
    v(4, "window_type", s.window_type, 0, "0 ones, 1 Hann, 2 Hamming", between(0, 2));
    v(5, "center", s.center, 1, "1: frame j is centred at j * hoplen", between(0, 1));
    v(7, "normalized", s.normalized, 0, "0 no, 1 by sqrt(n_fft), 2 by the norm of the window",
      between(0, 2));
}

int StftFields::create(const Layer& layer) {
    window_data.create(n_fft);
    if (window_data.empty() || dft.create(n_fft) != kOk) {
        layer.fail("out of memory for frames of %d", n_fft);
        return kOutOfMemory;
    }
    window_data.fill(0.f);
    const int before = (n_fft - winlen) / 2;
    double squares = 0;
    for (int i = 0; i < winlen; i++) {
        const double wave = cos(2 * kPi * i / winlen);
        const double value = window_type == 0   ? 1
                             : window_type == 1 ? 0.5 * (1 - wave)
                                                : 0.54 - 0.46 * wave;
        window_data[before + i] = (float)value;
        squares += value * value;
    }
    scale = normalized == 0 ? 1 : 1 / sqrt(normalized == 1 ? n_fft : squares);
    return kOk;
}

}  // namespace quoll
