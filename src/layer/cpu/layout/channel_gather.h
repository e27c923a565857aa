// Moving channels between blobs of different elempacks, whatever the dtype.
//
// A "channel" is one index of the outermost axis, counted in scalars; its "row" is what lies within
// that index (w of a 2-D blob; w, h, d of 3 and 4 axes), in elements. Blobs of one axis have the
// same order in memory whatever their elempack: they are taken as planar.
#ifndef QUOLL_LAYER_CPU_LAYOUT_CHANNEL_GATHER_H
#define QUOLL_LAYER_CPU_LAYOUT_CHANNEL_GATHER_H

#include <stddef.h>

#include <vector>

#include "layer/common/blocks.h"
#include "layer/common/elempack.h"
#include "layer/common/scratch.h"
#include "quoll/option.h"

namespace quoll {

// m's values in the shape `to`, from and to any elempack: shares the memory where the layout
// allows. The result keeps the elempack if the outermost axis stays as it is, and is planar
// otherwise.
int reshape_channels(const Mat& m, const Shape& to, Mat* out, const Option& opt);

// Where the channels of a blob are.
struct ChannelView {
    explicit ChannelView(const Mat& m);

    unsigned char* data;
    int count;          // of channels
    int pack;           // channels of an element
    int shift;          // its logarithm; -1 if it is no power of two
    size_t scalar;      // bytes of one
    size_t block_step;  // bytes from one element's channels to the next's
    size_t row;         // elements of a row

    // The scalar of a channel in element `at` of its row.
    unsigned char* at(int channel, size_t at) const {
        const int block = shift < 0 ? channel / pack : channel >> shift;
        return data + block * block_step + (at * pack + channel - block * pack) * scalar;
    }
};

// Gathers channels: channel i of the destination is channel source[i] of the source.
class ChannelGather {
public:
    // A source of -1 leaves the channel alone. Both blobs have the same dtype.
    ChannelGather(const Mat& src, const Mat& dst, const std::vector<int>& source);

    // Blocks of channels that make an element of the destination.
    int blocks() const { return (int)(*plans_).size(); }
    // For the channels of one block: n elements from `from` on in the source's rows become those
    // from `to` on in the destination's.
    void copy(int block, size_t from, size_t to, size_t n) const;
    // All blocks, whole rows, which must be of the same length.
    void copy_all(const Option& opt) const;

private:
    // How the channels of one block of the destination come about.
    struct Plan {
        int width;   // channels that one move takes
        bool quads;  // four at a time from different places
        bool picks;  // 16 bytes at a time, by shuffles
    };
    void copy_quads(int block, size_t from, size_t to, size_t n) const;
    size_t copy_picks(int block, size_t from, size_t to, size_t n) const;

    const ChannelView src_, dst_;
    Scratch<int> source_;
    Scratch<Plan> plans_;  // for each block
};

// All channels of src to those of dst from `first` on, which is a multiple of dst's elempack, as
// the number of channels is. Rows have the same length.
void copy_channels(const Mat& src, Mat& dst, int first, const Option& opt);
// Each channel of src to `times` neighbouring ones of dst. Rows have the same length.
void copy_repeated(const Mat& src, Mat& dst, int times, const Option& opt);

// Copies n picks of `bytes` bytes each, `src_step` and `dst_step` bytes apart.
void copy_strided(const unsigned char* src, size_t src_step, unsigned char* dst, size_t dst_step,
                  size_t bytes, size_t n);

}  // namespace quoll

#endif
