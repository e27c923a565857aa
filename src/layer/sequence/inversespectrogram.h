#ifndef QUOLL_LAYER_INVERSESPECTROGRAM_H
#define QUOLL_LAYER_INVERSESPECTROGRAM_H

#include "layer/common/dft.h"

namespace quoll {

// The signal of a spectrogram [frequency, frame, 2] (all n_fft frequencies, or the first n_fft /
// 2 + 1 of a real signal): overlapping frames are added up and divided by the sum of the squared
// windows, which gives 0 where that sum is 0. With `returns` 0 the output is [size, 2], real and
// imaginary parts; with 1 or 2 it is the real or the imaginary part.
class InverseSpectrogram : public Operator<InverseSpectrogram>, public StftFields {
public:
    InverseSpectrogram();
    static void params(InverseSpectrogram& s, ParamVisitor& v);
    static void weights(InverseSpectrogram& s, WeightVisitor& v);
    static int shape(const InverseSpectrogram& s, const std::vector<Shape>& in,
                     std::vector<Shape>& out);
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;

    int create_pipeline(const Option& opt) override;

    int returns;
};

}  // namespace quoll

#endif
