// The discrete Fourier transform of any length, and the windows of Spectrogram and
// InverseSpectrogram.
#ifndef QUOLL_LAYER_DFT_H
#define QUOLL_LAYER_DFT_H

#include "layer/common/schema.h"

namespace quoll {

struct Complex {
    double re, im;
};

// X[k] = sum over j of x[j] e^(-2 pi i j k / n), as products of small transforms (Cooley and Tukey,
// Math. Comp. 19, 1965): n times the sum of n's prime factors multiplications.
class Dft {
public:
    // Makes the roots of unity; a negative code when memory runs out.
    int create(int n);
    // Bytes of scratch memory that transform() needs.
    size_t scratch_size() const { return (size_t)n_ * sizeof(Complex); }
    // in and out have n values and must not overlap.
    void transform(const Complex* in, Complex* out, Complex* scratch) const;

private:
    void part(const Complex* in, int stride, Complex* out, int n, Complex* scratch) const;

    int n_ = 0;
    Mat roots_;  // n Complex: e^(-2 pi i j / n)
};

// The parameters that both operators have, with the same ids.
struct StftFields {
    int n_fft;        // length of a frame
    int hoplen;       // from frame to frame
    int winlen;       // length of the window, in the middle of the frame
    int window_type;  // 0 ones, 1 Hann, 2 Hamming (periodic)
    int center;       // 1: frame j is centred at j * hoplen
    int normalized;   // 1: by sqrt(n_fft), 2: by the norm of the window

    StftFields()
        : n_fft(0), hoplen(0), winlen(0), window_type(0), center(1), normalized(0), scale(1) {}

    // Fills the members below.
    int create(const Layer& layer);

    Mat window_data;  // the window in a frame, n_fft values
    double scale;     // what the forward transform is multiplied with
    Dft dft;
};
void stft_params(StftFields& s, ParamVisitor& v);

}  // namespace quoll

#endif
