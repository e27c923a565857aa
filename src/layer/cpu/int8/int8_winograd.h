// int8 convolution of 3x3 taps by Winograd's F(4x4, 3x3) in integers, for kernels of 16-bit values,
// also where those of bytes are twice as fast (Int8Kernels::s16): 36 multiplications for 16 outputs
// where windows take 144. Points are 0, 1, -1, 2, -1/2 and infinity: of their differences 15 is odd
// and 2 remains, along each axis. Inputs are transformed by whole numbers, weights by 30 times
// Winograd's fractions, so that sums are 900 times those of the definition. They are computed
// modulo 2^32, where 225 can be divided by and 4 takes two bits: answers are the same, to the bit.
// Where a map is no multiple of 4, tiles of 3 outputs, which do without point 2, have the same
// weights: F(3, 3) along one axis or both.
// (A. Lavin, S. Gray: Fast algorithms for convolutional neural networks, 2015.)
#ifndef QUOLL_LAYER_CPU_INT8_INT8_WINOGRAD_H
#define QUOLL_LAYER_CPU_INT8_INT8_WINOGRAD_H

#include <algorithm>

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
    // Whether tiles take fewer multiplications than windows for this many outputs, all of them
    // counted as tiles of 4 x 4: small maps leave most of a tile unused.
    static bool pays(int width, int height) {
        return 4. * kPoints * tiles(width) * tiles(height) <= 3. * 9 * width * height;
    }
    // Whether they take less time than windows by kernels of bytes (Int8Kernels::s16): these
    // multiply twice as many values in a time and read an eighth of the weights, which takes as
    // long to fetch as four tiles do to be multiplied. A tile's transforms take 24 and 14 vectors'
    // time for a vector of channels and of outputs. That is so on Zen 4, and with 256 bits on
    // Golden Cove. With 512 bits windows are faster there (geometric mean of 41 layers 1.2, of
    // 14x14 pixels 1.4 to 2): they multiply twice as many bytes in a cycle, and weights come from
    // further away.
    static bool beats_bytes(int width, int height, int channels, int outputs) {
        const double all = (double)tiles(width) * tiles(height);
        const double products = 2. * kPoints * (all + 4);
        const double transforms = 64. * all * (24. / outputs + 14. / channels);
        return products + transforms <= 9. * width * height;
    }
    // The tiles along an axis, and the input positions under them.
    static int tiles(int outputs) { return (outputs + 3) / 4; }
    static int positions(int outputs) { return Axis(outputs).begin(tiles(outputs)) + 2; }
    // The bytes of scratch memory that run() needs for this many outputs.
    double bytes(int width, int height, int threads) const;
    // in: [channels / block][positions(height)][positions(width)][block] of 16 bits. result: as
    // int8_run takes it, C of width by height outputs. room: bytes() of it.
    void run(const Int8Result& result, const int16_t* in, int block, int width, int height,
             int16_t* room, int threads) const;

private:
    enum { kMostColumns = 32 };  // of a panel
    // The sums of a point, in the tiles that are multiplied at a time.
    enum { kMostSums = 14 * kMostColumns };

    // The tiles along an axis: those of 4 outputs, and behind them as many of 3 as do.
    struct Axis {
        int fours, threes;
        explicit Axis(int outputs)
            : fours(std::max(0, outputs - 3 * tiles(outputs))), threes(tiles(outputs) - fours) {}
        // The first output of a tile.
        int begin(int tile) const { return 3 * tile + std::min(tile, fours); }
    };
    // Tiles of the same height and width, row by row, from tile `first` of all on.
    struct Group {
        int first, across, y, x, height, width;  // y, x: of its first output
    };
    // All tiles: groups of 4 by 3 outputs, 4 by 4, 3 by 4 and 3 by 3 (height by width), so that the
    // tiles that have a point follow each other.
    struct Map {
        int width, height, tiles;
        Group groups[4];
        Map(int width, int height);
        const Group& group_of(int tile) const;
        int group_end(const Group& group) const;
        // The first tile that has a point, and the one behind the last.
        int begin(size_t point) const { return point % 6 == 3 ? groups[1].first : 0; }
        int end(size_t point) const;
    };
    void store(const Int8Result& result, Int8Panel* panel, int32_t* outputs, int first, int last,
               const Map& map) const;
    // How the tiles are divided, and how many of them have their input transformed at a time.
    struct Parts {
        size_t all, parts, together;
        bool each;  // a thread transforms what it multiplies
        size_t begin(size_t i) const { return partition_begin(all, parts, i); }
        size_t end(size_t i) const { return begin(i) + partition_length(all, parts, i); }
    };
    Parts divide(int width, int height, int threads) const;
    // The bytes of the points of this many tiles, in whole cache lines.
    size_t points_bytes(size_t tiles) const {
        return (2 * kPoints * tiles * channels_ + 63) / 64 * 64;
    }
    // Transformed input of neighbouring tiles, [point][tiles][channels].
    struct Points {
        int16_t* values;
        int first, tiles;
    };
    void transform(const int16_t* in, int block, const Map& map, int first, int last,
                   const Points& to) const;
    void multiply(const Points& a, Int8Panel* panel, size_t index, int first, int last,
                  const Map& map, int32_t* sums) const;
    void run_tiles(const Int8Result& result, const Points& a, size_t panel, int first, int last,
                   const Map& map, int32_t* sums) const;

    const Int8Kernels* kernels_ = nullptr;
    int channels_ = 0;
    Mat weights_;  // k-groups [panel][point][channels / 2][width]
};

}  // namespace quoll

#endif
