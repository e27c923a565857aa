// How threads share equal pieces of a layer's work (items of a batch, groups of channels): several
// pieces side by side, or one after the other.
#ifndef QUOLL_LAYER_SIDE_BY_SIDE_H
#define QUOLL_LAYER_SIDE_BY_SIDE_H

#include <algorithm>

#include "quoll/platform.h"

namespace quoll {

// The cost of beginning and ending a region, in multiply-adds for each of its threads (1.5 us; on
// 16 threads a layer takes 20 to 30 us whatever it computes).
const double kRegionThread = 150000;
// Sharing a piece costs each thread more than its part of the work: this fraction for each thread
// that shares it. The parts are uneven, and blobs are in other cores' caches (measured with 1 to 16
// threads).
const double kSharing = 1. / 32;

// The time of `threads` threads that share a piece of `work`, both in multiply-adds of one thread.
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

// How many pieces run at a time, and how many threads each has. pieces 1: they follow each other,
// each on all threads.
struct SideBySide {
    int pieces, threads;
};

// The fastest way to run `count` pieces of `work` multiply-adds each.
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
