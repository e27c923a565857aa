// Shuffles of bytes.
#pragma once

#include "simd/vec.h"

namespace quoll {
namespace simd {
namespace {

// Byte i of each 16 is byte from[i] of the same 16 of a, or 0 where from[i] is 0x80.
template <size_t N>
QUOLL_INLINE vec<uint8_t, N> pick_in_blocks(vec<uint8_t, N, true> a, vec<uint8_t, N, true> from) {
    return {hn::TableLookupBytesOr0(a.v, from.v)};
}
template <size_t N>
QUOLL_INLINE vec<uint8_t, N> pick_in_blocks(vec<uint8_t, N, false> a, vec<uint8_t, N, false> from) {
    static_assert(N == 16 && native_lanes<uint8_t>() == 1, "only where there are no vectors");
    uint8_t bytes[N], at[N], out[N];
    a.store(bytes);
    from.store(at);
    for (size_t i = 0; i < N; i++) out[i] = at[i] & 0x80 ? 0 : bytes[at[i] & 15];
    return vec<uint8_t, N>::load(out);
}

}  // namespace
}  // namespace simd
}  // namespace quoll
