// How equal pieces of a layer's work (items of a batch, groups of channels) and threads share each
// other.
#ifndef QUOLL_LAYER_SIDE_BY_SIDE_H
#define QUOLL_LAYER_SIDE_BY_SIDE_H

#include <algorithm>

#include "quoll/platform.h"

namespace quoll {

// In multiply-adds: the beginning and end of a region, for each of its threads (1.5 us; on 16
// threads a layer takes 20 to 30 whatever it computes).
const double kRegionThread = 150000;
// Of threads that share a piece each takes longer than its part of the work by so much for each of
// them: parts are not even, and blobs lie in other cores' caches (measured with 1 to 16).
const double kSharing = 1. / 32;

// The same of `threads` threads that share a piece.
inline double shared_work(double work, int threads) {
    const double shared = work * (1 + kSharing * threads) / threads + kRegionThread * threads;
    return threads > 1 ? std::min(work, shared) : work;
}

// OpenMP's regions within a region have one thread.
#ifdef QUOLL_OPENMP_TEAM
const bool kSharesPieces = false;
#else
const bool kSharesPieces = true;
#endif

// So many pieces at a time, each on so many threads. 1: they follow each other, each on all.
struct SideBySide {
    int pieces, threads;
};

// For `count` pieces of `work` multiply-adds each.
inline SideBySide side_by_side(int count, double work, int threads) {
    SideBySide best = {1, threads};
    if (!QUOLL_THREADS) return best;
    double least = count * shared_work(work, threads);
    for (int pieces = std::min(count, threads); pieces > 1; pieces--) {
        const int each = kSharesPieces ? threads / pieces : 1,
                  turns = (count + pieces - 1) / pieces;
        const double time = turns * shared_work(work, each) + kRegionThread * threads;
        if (time >= least) continue;
        least = time;
        best = {pieces, each};
    }
    return best;
}

}  // namespace quoll

#endif
