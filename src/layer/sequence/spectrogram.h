#ifndef QUOLL_LAYER_SPECTROGRAM_H
#define QUOLL_LAYER_SPECTROGRAM_H

#include "layer/common/dft.h"

namespace quoll {

// The short-time Fourier transform of a signal of one axis: windowed frames of n_fft values, hoplen
// apart. With a power of 0 the output is [frequency, frame, 2], real and imaginary parts; with 1 or
// 2 it is [frequency, frame], the magnitude or its square.
class Spectrogram : public Operator<Spectrogram>, public StftFields {
public:
    Spectrogram();
    static void params(Spectrogram& s, ParamVisitor& v);
    static void weights(Spectrogram& s, WeightVisitor& v);
    static int shape(const Spectrogram& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;

    int create_pipeline(const Option& opt) override;

    int power;
    int pad_type;  // of the half frame on both sides with center: 0 zeros, 1 the edge, 2 reflected
    int onesided;  // 1: frequencies 0 to n_fft / 2 only

private:
    int num_freqs() const { return onesided ? n_fft / 2 + 1 : n_fft; }
    void store_frame(const Complex* spectrum, int frame, Mat& top) const;
};

}  // namespace quoll

#endif
