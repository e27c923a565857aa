// Blobs of one shape and elempack, walked as runs of contiguous floats that stay in cache.
#ifndef QUOLL_LAYER_CPU_PIECES_H
#define QUOLL_LAYER_CPU_PIECES_H

#include <stddef.h>

#include <algorithm>

#include "quoll/mat.h"

namespace quoll {

// True if the channels of m follow one another without gaps.
inline bool gapless(const Mat& m) { return m.cstep == (size_t)m.w * m.h * m.d; }

struct Piece {
    size_t batch, channel, first;  // `first` counts scalars within the channel
    size_t count;

    template <class T = float>
    T* of(const Mat& m) const {
        return (T*)m.data + (batch * m.nstep + channel * m.cstep) * m.elempack + first;
    }
};

class Pieces {
public:
    // Floats of a piece at most; three of them fit the first-level cache.
    enum { kPiece = 2048 };

    // `no_gaps`: gapless() holds for all blobs that will be walked together.
    Pieces(const Mat& m, bool no_gaps)
        : channels_(no_gaps ? 1 : m.c),
          run_((size_t)m.w * m.h * m.d * (no_gaps ? m.c : 1) * m.elempack),
          per_run_((run_ + kPiece - 1) / kPiece),
          count_((int)(per_run_ * channels_ * m.n)) {}
    Pieces(const Mat& a, const Mat& b) : Pieces(a, gapless(a) && gapless(b)) {}

    int count() const { return count_; }
    Piece operator[](int i) const {
        const size_t run = i / per_run_, first = i % per_run_ * kPiece;
        return Piece{run / channels_, run % channels_, first,
                     std::min<size_t>(kPiece, run_ - first)};
    }

private:
    size_t channels_, run_, per_run_;
    int count_;
};

}  // namespace quoll

#endif
