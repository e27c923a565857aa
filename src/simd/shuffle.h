// Lanes in another order.
#pragma once

#include "simd/vec.h"

namespace quoll {
namespace simd {
namespace {

// a[0], a[2], ..., b[0], b[2], ...
template <class T, size_t N>
QUOLL_INLINE vec<T, N, true> even_lanes(vec<T, N, true> a, [[maybe_unused]] vec<T, N, true> b) {
#if HWY_TARGET == HWY_SCALAR
    return a;
#else
    return {hn::ConcatEven(hn::FixedTag<T, N>(), b.v, a.v)};
#endif
}

// For pick_lanes, from N indexes that are less than N.
template <size_t N>
QUOLL_INLINE auto lane_table(const int32_t* indexes) {
    return hn::SetTableIndices(hn::FixedTag<float, N>(), indexes);
}

// a[indexes[0]], a[indexes[1]], ...
template <size_t N, class Table>
QUOLL_INLINE vecf<N> pick_lanes(vecf<N> a, Table table) {
    return {hn::TableLookupLanes(a.v, table)};
}

}  // namespace
}  // namespace simd
}  // namespace quoll
