// Transforms of complex signals of any length.
#ifndef QUOLL_LAYER_CPU_SIGNAL_FFT_H
#define QUOLL_LAYER_CPU_SIGNAL_FFT_H

#include <stddef.h>

#include <vector>

namespace quoll {

// X[k] = the sum over j of x[j] e^(-2 pi i j k / n), by stages of 4, 2, 3, 5, ... that each write
// their results in order (T. G. Stockham, High-speed convolution and correlation, AFIPS 1966).
class Fft {
public:
    // Makes the roots of unity.
    void create(int n);
    int size() const { return n_; }
    // Transforms `lanes` signals at a time: value j of signal l is at j * lanes + l of re and im,
    // which have n * lanes values each and are overwritten. The result is in *re and *im, which may
    // then be the scratch memory, twice as large as one of them.
    void transform(float** re, float** im, float* scratch, int lanes) const;

private:
    struct Stage {
        int radix, count, run;  // transforms of `radix` values: `count` times `run` neighbours
        size_t roots;           // where its factors begin: count times radix - 1 pairs
        size_t waves;           // where the roots of unity of its radix are, as many pairs
    };

    int n_ = 0;
    std::vector<Stage> stages_;
    std::vector<float> roots_;
};

}  // namespace quoll

#endif
