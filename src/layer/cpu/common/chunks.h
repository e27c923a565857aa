// Blobs of one shape and elempack, walked as runs of contiguous floats that stay in cache.
#ifndef QUOLL_LAYER_CPU_CHUNKS_H
#define QUOLL_LAYER_CPU_CHUNKS_H

#include <stddef.h>

#include <algorithm>

#include "quoll/mat.h"

namespace quoll {

// True if the channels of m follow one another without gaps.
inline bool gapless(const Mat& m) { return m.cstep == (size_t)m.w * m.h * m.d; }

struct Chunk {
    size_t batch, channel, first;  // `first` counts scalars within the channel
    size_t count;

    template <class T = float>
    T* of(const Mat& m) const {
        return (T*)m.data + (batch * m.nstep + channel * m.cstep) * m.elempack + first;
    }
};

class Chunks {
public:
    // Floats of a chunk at most; three of them fit the first-level cache.
    enum { kChunk = 2048 };

    // `no_gaps`: gapless() holds for all blobs that will be walked together.
    Chunks(const Mat& m, bool no_gaps)
        : channels_(no_gaps ? 1 : m.c),
          run_((size_t)m.w * m.h * m.d * (no_gaps ? m.c : 1) * m.elempack),
          per_run_((run_ + kChunk - 1) / kChunk),
          count_((int)(per_run_ * channels_ * m.n)) {}
    Chunks(const Mat& a, const Mat& b) : Chunks(a, gapless(a) && gapless(b)) {}

    int count() const { return count_; }
    Chunk operator[](int i) const {
        const size_t run = i / per_run_, first = i % per_run_ * kChunk;
        return Chunk{run / channels_, run % channels_, first,
                     std::min<size_t>(kChunk, run_ - first)};
    }

private:
    size_t channels_, run_, per_run_;
    int count_;
};

}  // namespace quoll

#endif
