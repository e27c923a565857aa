#ifndef QUOLL_LAYER_STFT_H
#define QUOLL_LAYER_STFT_H

#include "layer/common/dft.h"

namespace quoll {

// Short-time Fourier transforms with any window, without padding: signals [rows, samples] give
// [rows, frames, bins, 2], real and imaginary parts of the sums over j of x[frame * step + j]
// window[j] e^(-2 pi i j bin / length). ONNX STFT of real signals.
class Stft : public Operator<Stft> {
public:
    Stft() { support_zero_size = true; }
    static void params(Stft& s, ParamVisitor& v);
    static void weights(Stft& s, WeightVisitor& v);
    static int shape(const Stft& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int create_pipeline(const Option& opt) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int length = 0;    // of a frame
    int step = 0;      // from frame to frame
    int onesided = 1;  // 1: bins 0 to length / 2 alone
    Mat window_data;

protected:
    int bins() const { return onesided ? length / 2 + 1 : length; }
    // Of one frame's values.
    void transform_frame(const float* in, float* out) const;

private:
    Dft dft_;
};

}  // namespace quoll

#endif
