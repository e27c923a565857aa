// Kernel rows of a few planar channels as k-groups of bytes. A k-group for each pixel of three
// channels would be zeros for a quarter, of one channel for three quarters; here it has up to four
// taps of one channel that lie `stride` columns apart, so that those of neighbouring outputs are
// neighbours in a row of every stride-th column, and every output has k-groups of its own.
#ifndef QUOLL_LAYER_CPU_INT8_INT8_JOINED_ROWS_H
#define QUOLL_LAYER_CPU_INT8_INT8_JOINED_ROWS_H

#include <vector>

#include "layer/common/conv_window.h"
#include "layer/cpu/int8/int8.h"

namespace quoll {

class Int8JoinedRows {
public:
    Int8JoinedRows() : kernel_(0), stride_(0) {}
    // Kernel rows of so many columns, `stride` apart.
    Int8JoinedRows(int channels, int kernel, int stride);
    // Of an output.
    int k_groups() const { return (int)groups_.size(); }
    // The tap, channel * taps + column, that value `i` of an output's k-groups meets; -1: none.
    int tap(int i, int taps) const;
    // Of scratch memory that pack() needs.
    size_t scratch(const WindowAxis& x) const;
    // Of one row of the input, value (c, x) at row[c * channel + x], f32, which is rounded with
    // `scale`, or s8. Columns outside hold `pad`.
    struct Row {
        const void* row;
        ptrdiff_t channel;
        bool is_s8;
        float scale;
        int pad;
    };
    // K-group i of output n goes to to[n * pixel + i / together * plane + i % together * 4].
    struct Place {
        char* to;
        ptrdiff_t pixel, plane;
        int together;
    };
    void pack(const Int8Kernels& kernels, const Row& row, const WindowAxis& x, const Place& place,
              int8_t* scratch) const;

private:
    // K-group of the taps phase + stride * (first + 0 to 3).
    struct Group {
        int channel, phase, first;
    };
    int taps_of(int phase) const { return (kernel_ - phase + stride_ - 1) / stride_; }
    int kernel_, stride_;
    std::vector<Group> groups_;
};

}  // namespace quoll

#endif
