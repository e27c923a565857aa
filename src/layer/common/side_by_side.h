// Whether equal pieces of a layer's work (items of a batch, groups of channels) share the threads,
// or threads share each piece.
#ifndef QUOLL_LAYER_SIDE_BY_SIDE_H
#define QUOLL_LAYER_SIDE_BY_SIDE_H

#include <algorithm>

namespace quoll {

// In multiply-adds: the beginning and end of a region, for each of its threads (1.5 us; on 16
// threads a layer takes 20 to 30 whatever it computes).
const double kRegionThread = 150000;
// Of threads that share a piece each takes longer than its part of the work by so much for each of
// them: parts are not even, and blobs lie in other cores' caches (measured with 1 to 16).
const double kSharing = 1. / 32;

// For `count` pieces of `work` multiply-adds each: the threads that share the pieces, each of which
// then runs on one; 1: pieces follow each other, each on all `threads`.
inline int threads_side_by_side(int count, double work, int threads) {
    if (count <= 1 || threads <= 1) return 1;
    const double region = kRegionThread * threads, turns = (count + threads - 1) / threads;
    const double shared = work * (1 + kSharing * threads) / threads + region;
    const double in_turn = count * std::min(work, shared), side_by_side = turns * work + region;
    return side_by_side < in_turn ? std::min(count, threads) : 1;
}

}  // namespace quoll

#endif
