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

// Byte i of each 16 is byte from_a[i] of the same 16 of a, or, where from_a[i] is 0x80, byte
// from_b[i] of those of b; exactly one of the two is 0x80.
template <size_t N>
class PickOfTwo {
public:
    using V = vec<uint8_t, N>;
    // Tables of 16 bytes.
    PickOfTwo(const uint8_t* from_a, const uint8_t* from_b) {
        uint8_t a[N], b[N];
        for (size_t i = 0; i < N; i++) {
            a[i] = from_a[i % 16];
            b[i] = from_b[i % 16];
            if (kOneTable) a[i] = a[i] & 0x80 ? 16 + b[i] : a[i];
        }
        from_a_ = V::load(a), from_b_ = V::load(b);
    }
    QUOLL_INLINE V operator()(V a, V b) const {
#if defined(__aarch64__)
        if constexpr (kOneTable)
            return {hn::Vec<typename V::Tag>(vqtbl2q_u8({{a.v.raw, b.v.raw}}, from_a_.v.raw))};
#endif
        return pick_in_blocks(a, from_a_) | pick_in_blocks(b, from_b_);
    }

private:
#if defined(__aarch64__)
    static constexpr bool kOneTable =
        N == 16 && N <= native_lanes<uint8_t>();  // TBL of two registers
#else
    static constexpr bool kOneTable = false;
#endif
    V from_a_, from_b_;
};

}  // namespace
}  // namespace simd
}  // namespace quoll
