// int8 convolution of 3x3 taps by Winograd's F(4x4, 3x3) in integers, for kernels of 16-bit values,
// also where those of bytes are twice as fast (Int8Kernels::s16): 36 multiplications for 16 outputs
// where windows take 144. Points are 0, 1, -1, 2, -1/2 and infinity: of their differences 15 is odd
// and 2 remains, along each axis. Inputs are transformed by whole numbers, weights by 30 times
// Winograd's fractions, so that sums are 900 times those of the definition. They are computed
// modulo 2^32, where 225 can be divided by and 4 takes two bits: answers are the same, to the bit.
// (A. Lavin, S. Gray: Fast algorithms for convolutional neural networks, 2015.)
#ifndef QUOLL_LAYER_CPU_INT8_INT8_WINOGRAD_H
#define QUOLL_LAYER_CPU_INT8_INT8_WINOGRAD_H

#include "layer/cpu/int8/int8_product.h"
#include "layer/nn/convolution.h"

namespace quoll {

class Int8Winograd {
public:
    enum { kPoints = 36 };
    // Whether these kernels take it for these weights: 3x3 at steps of 1 in one group, enough
    // channels, sums that fit.
    static bool is_supported(const Int8Kernels& kernels, const ConvolutionFields& s);
    // channels: of the laid out input, in order, s.num_output times in_channels taps. Returns kOk
    // or kOutOfMemory.
    int create(const Int8Kernels& kernels, const ConvolutionFields& s, int in_channels,
               int channels);
    bool created() const { return channels_ > 0; }
    // Whether windows of so many outputs are fewer multiplications by tiles: maps of few outputs
    // leave most of a tile unused. bytes_beside: beside kernels of bytes (Int8Kernels::s16), which
    // multiply twice as many values in a time, and read an eighth of the weights; to fetch these
    // takes as long as multiplying four tiles by them.
    static bool pays(int width, int height, bool bytes_beside) {
        const double made = (double)kPoints * tiles(width) * tiles(height);
        const double windows = 9. * width * height;
        return bytes_beside ? 2 * (made + 4 * kPoints) <= windows : 4 * made <= 3 * windows;
    }
    // Tiles along an axis, and input positions under them.
    static int tiles(int outputs) { return (outputs + 3) / 4; }
    static int positions(int outputs) { return 4 * tiles(outputs) + 2; }
    // Bytes of the transformed input of so many outputs, and of what each thread adds up.
    double bytes(int width, int height, int threads) const {
        return 2. * kPoints * tiles(width) * tiles(height) * channels_ + 64 +
               (double)sizeof(int32_t) * kPoints * kMostSums * threads;
    }
    // in: [channels / block][positions(height)][positions(width)][block] of 16 bits. result: as
    // int8_run takes it, C of width by height outputs. room: bytes() of it.
    void run(const Int8Result& result, const int16_t* in, int block, int width, int height,
             int16_t* room, int threads) const;

private:
    enum { kMostColumns = 32 };  // of a panel
    // Of a point, in the tiles that are multiplied at a time.
    enum { kMostSums = 14 * kMostColumns };

    void store(const Int8Result& result, Int8Panel* panel, int32_t* outputs, int first, int last,
               int width, int height) const;
    void run_tiles(const Int8Result& result, const int16_t* a, size_t panel, int first, int last,
                   int width, int height, int32_t* sums) const;

    const Int8Kernels* kernels_ = nullptr;
    int channels_ = 0;
    Mat weights_;  // k-groups [panel][point][channels / 2][width]
};

}  // namespace quoll

#endif
