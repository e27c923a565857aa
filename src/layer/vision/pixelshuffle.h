#ifndef QUOLL_LAYER_PIXELSHUFFLE_H
#define QUOLL_LAYER_PIXELSHUFFLE_H

#include "layer/common/schema.h"

namespace quoll {

// Depth to space: r * r channels become one with r times the width and height, where r is
// upscale_factor. Output (q, y * r + i, x * r + j) is input (channel, y, x) of channel q * r * r +
// i * r + j in mode 0, (i * r + j) * c / (r * r) + q in mode 1.
class PixelShuffle : public Operator<PixelShuffle> {
public:
    PixelShuffle();
    static void params(PixelShuffle& s, ParamVisitor& v);
    static void weights(PixelShuffle& s, WeightVisitor& v);
    static int shape(const PixelShuffle& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;
    unsigned traits() const override { return kMovesValues; }

    int upscale_factor = 1;
    int mode = 0;

protected:
    // The input channel that pixel (i, j) of the blocks of output channel q of `channels` is.
    int source_channel(int q, int i, int j, int channels) const {
        const int r = upscale_factor;
        return mode == 0 ? (q * r + i) * r + j : (i * r + j) * channels + q;
    }
};

}  // namespace quoll

#endif
