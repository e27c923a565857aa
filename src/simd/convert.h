// Storage types: IEEE half, bfloat16 and 8-bit integers in memory, float or int32_t in registers.
// Narrowing rounds to nearest even; NaN stays NaN; integers saturate. Compiled for AVX512-BF16,
// whose instructions take f32 denormals as zero, so does narrowing to bf16. The _n forms touch the
// first n values only.
#pragma once

#include "simd/vec.h"

namespace quoll {
namespace simd {
namespace {

// ---------------------------------------------------------------- small integers <-> int32_t

template <class S, size_t N>
QUOLL_INLINE veci<N> load_small(const S* p) {
    if constexpr (N <= native_lanes<int32_t>()) {
        return {hn::PromoteTo(hn::FixedTag<int32_t, N>(), hn::LoadU(hn::FixedTag<S, N>(), p))};
    } else {
        return {load_small<S, N / 2>(p), load_small<S, N / 2>(p + N / 2)};
    }
}

template <class S, size_t N>
QUOLL_INLINE void store_small(veci<N> a, S* p) {
    if constexpr (N <= native_lanes<int32_t>()) {
        const hn::FixedTag<S, N> tag;
        hn::StoreU(hn::DemoteTo(tag, a.v), tag, p);
    } else {
        store_small<S, N / 2>(a.lo, p);
        store_small<S, N / 2>(a.hi, p + N / 2);
    }
}

template <size_t N>
QUOLL_INLINE veci<N> load_s8(const int8_t* p) {
    return load_small<int8_t, N>(p);
}
template <size_t N>
QUOLL_INLINE veci<N> load_u8(const uint8_t* p) {
    return load_small<uint8_t, N>(p);
}
template <size_t N>
QUOLL_INLINE void store_s8(veci<N> a, int8_t* p) {
    store_small<int8_t, N>(a, p);
}
template <size_t N>
QUOLL_INLINE void store_u8(veci<N> a, uint8_t* p) {
    // Highway's narrowing takes 16-bit intermediates for signed ones.
    store_small<uint8_t, N>(min(veci<N>::set(255), max(veci<N>::zero(), a)), p);
}

// The low 8 bits of each lane.
template <size_t N>
QUOLL_INLINE void store_low_bytes(veci<N> a, void* p) {
#if HWY_TARGET == HWY_AVX3
    if constexpr (N == 16) {
        _mm_storeu_si128(static_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a.v.raw));
        return;
    }
#endif
    store_small<uint8_t>(a & veci<N>::set(255), static_cast<uint8_t*>(p));
}

// Whether the processor rounds half away from zero, and NaN to 0.
#if HWY_TARGET == HWY_NEON && defined(__aarch64__)
constexpr bool kRoundsAway = true;
#else
constexpr bool kRoundsAway = false;
#endif

// x without its fraction, or with kRoundsAway rounded half away from zero (nearest: rounded, ties
// to even), |x| < 2^31. For NaN the low 16 bits are 0.
template <bool nearest, size_t N>
QUOLL_INLINE veci<N> whole_byte(vecf<N> x) {
#if HWY_TARGET == HWY_AVX3
    if constexpr (N == 16)
        return {{nearest ? _mm512_cvtps_epi32(x.v.raw) : _mm512_cvttps_epi32(x.v.raw)}};
#elif HWY_TARGET == HWY_NEON && defined(__aarch64__)
    if constexpr (N > 4) {
        return {whole_byte<nearest>(x.lo), whole_byte<nearest>(x.hi)};
    } else if constexpr (N == 4) {
        return {decltype(veci<N>().v)(nearest ? vcvtnq_s32_f32(x.v.raw) : vcvtaq_s32_f32(x.v.raw))};
    } else {
        return {decltype(veci<N>().v)(nearest ? vcvtn_s32_f32(x.v.raw) : vcvta_s32_f32(x.v.raw))};
    }
#endif
    const vecf<N> number = select(x == x, x, vecf<N>::zero());
    return nearest ? to_int(number) : trunc_int(number);
}

// The bytes that packs made of four vectors, which are in the order of their parts of 128 bits.
#if HWY_TARGET == HWY_AVX3
QUOLL_INLINE void store_packed_bytes(__m512i bytes, int8_t* p) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_storeu_si512(p, _mm512_permutexvar_epi32(order, bytes));
}
#elif HWY_TARGET == HWY_AVX2
QUOLL_INLINE void store_packed_bytes(__m256i bytes, int8_t* p) {
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permutevar8x32_epi32(bytes, order));
}
#endif

// whole_byte + zero of four vectors, one after another, for results that all lie in [-128, 127].
template <bool nearest, size_t N>
QUOLL_INLINE void store_whole_bytes(const vecf<N> (&x)[4], veci<N> zero, int8_t* p) {
#if HWY_TARGET == HWY_AVX3
    if constexpr (N == 16) {
        const auto whole = [&](int i) QUOLL_INLINE_LAMBDA {
            return (whole_byte<nearest>(x[i]) + zero).v.raw;
        };
        return store_packed_bytes(_mm512_packs_epi16(_mm512_packs_epi32(whole(0), whole(1)),
                                                     _mm512_packs_epi32(whole(2), whole(3))),
                                  p);
    }
#elif HWY_TARGET == HWY_AVX2
    if constexpr (N == 8) {
        const auto whole = [&](int i) QUOLL_INLINE_LAMBDA {
            const __m256i y =
                nearest ? _mm256_cvtps_epi32(x[i].v.raw) : _mm256_cvttps_epi32(x[i].v.raw);
            return _mm256_add_epi32(y, zero.v.raw);
        };
        return store_packed_bytes(_mm256_packs_epi16(_mm256_packs_epi32(whole(0), whole(1)),
                                                     _mm256_packs_epi32(whole(2), whole(3))),
                                  p);
    }
#elif HWY_TARGET == HWY_NEON && defined(__aarch64__)
    if constexpr (N == 4) {
        const auto whole = [&](int i) QUOLL_INLINE_LAMBDA {
            return vreinterpretq_s16_s32((whole_byte<nearest>(x[i]) + zero).v.raw);
        };
        const int16x8_t low = vuzp1q_s16(whole(0), whole(1)), high = vuzp1q_s16(whole(2), whole(3));
        vst1q_s8(p, vuzp1q_s8(vreinterpretq_s8_s16(low), vreinterpretq_s8_s16(high)));
        return;
    }
#endif
    for (size_t i = 0; i < 4; i++) store_low_bytes(whole_byte<nearest>(x[i]) + zero, p + i * N);
}

// Whether limits of int8 cost little in store_saturated_bytes.
constexpr bool kHasSaturatedBytes = HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2;

// Four vectors, one after another: rounded half to even, |x| < 2^31, plus zero, limited to
// [low, high].
template <size_t N>
QUOLL_INLINE void store_saturated_bytes(const vecf<N> (&x)[4], int zero, int low, int high,
                                        int8_t* p) {
#if HWY_TARGET == HWY_AVX3
    if constexpr (N == 16) {
        const auto whole = [&](int i) QUOLL_INLINE_LAMBDA { return whole_byte<true>(x[i]).v.raw; };
        const __m512i zeros = _mm512_set1_epi16((short)zero);
        const __m512i first = _mm512_adds_epi16(_mm512_packs_epi32(whole(0), whole(1)), zeros);
        const __m512i second = _mm512_adds_epi16(_mm512_packs_epi32(whole(2), whole(3)), zeros);
        __m512i bytes = _mm512_packs_epi16(first, second);
        bytes = _mm512_min_epi8(bytes, _mm512_set1_epi8((char)high));
        return store_packed_bytes(_mm512_max_epi8(bytes, _mm512_set1_epi8((char)low)), p);
    }
#elif HWY_TARGET == HWY_AVX2
    if constexpr (N == 8) {
        const auto whole = [&](int i)
                               QUOLL_INLINE_LAMBDA { return _mm256_cvtps_epi32(x[i].v.raw); };
        const __m256i zeros = _mm256_set1_epi16((short)zero);
        const __m256i first = _mm256_adds_epi16(_mm256_packs_epi32(whole(0), whole(1)), zeros);
        const __m256i second = _mm256_adds_epi16(_mm256_packs_epi32(whole(2), whole(3)), zeros);
        __m256i bytes = _mm256_packs_epi16(first, second);
        bytes = _mm256_min_epi8(bytes, _mm256_set1_epi8((char)high));
        return store_packed_bytes(_mm256_max_epi8(bytes, _mm256_set1_epi8((char)low)), p);
    }
#endif
    using I = veci<N>;
    for (size_t i = 0; i < 4; i++) {
        const I whole = whole_byte<true>(x[i]) + I::set(zero);
        store_low_bytes(min(I::set(high), max(I::set(low), whole)), p + i * N);
    }
}

#if HWY_TARGET == HWY_AVX3
// Pixels of 64 values from four blocks of 16, each a pixel of which is `step` bytes from the next;
// every byte exclusive-or `bits`.
QUOLL_INLINE void join_four_blocks(const int8_t* from, ptrdiff_t block, ptrdiff_t step,
                                   size_t pixels, int bits, uint8_t* to, ptrdiff_t to_step) {
    const __m512i all = _mm512_set1_epi8((char)bits);
    const auto part = [&](int i) QUOLL_INLINE_LAMBDA {
        return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i * block));
    };
    for (; pixels > 0; pixels--, from += step, to += to_step) {
        __m512i x = _mm512_castsi128_si512(part(0));
        x = _mm512_mask_broadcast_i32x4(x, 0x00f0, part(1));
        x = _mm512_mask_broadcast_i32x4(x, 0x0f00, part(2));
        x = _mm512_mask_broadcast_i32x4(x, 0xf000, part(3));
        _mm512_storeu_si512(to, _mm512_xor_si512(x, all));
    }
}
#endif

#if HWY_TARGET == HWY_AVX3
// out[i] = table[in[i] + 128] of 256 values, for the first so many i, which are returned: pairs of
// the table's bytes are picked by seven bits, bytes of the pairs by the eighth.
QUOLL_INLINE size_t look_up_bytes(const int8_t* in, size_t n, const int8_t* table, int8_t* out) {
    __m512i pairs[4];
    for (int i = 0; i < 4; i++) pairs[i] = _mm512_loadu_si512(table + 64 * i);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in + i));
        const __m512i q = _mm512_cvtepu8_epi16(_mm256_xor_si256(bytes, _mm256_set1_epi8(-128)));
        const __m512i pair = _mm512_srli_epi16(q, 1);
        const __m512i low = _mm512_permutex2var_epi16(pairs[0], pair, pairs[1]);
        const __m512i high = _mm512_permutex2var_epi16(pairs[2], pair, pairs[3]);
        const __mmask32 upper = _mm512_test_epi16_mask(q, _mm512_set1_epi16(128));
        const __m512i picked = _mm512_mask_blend_epi16(upper, low, high);
        const __m512i shift = _mm512_slli_epi16(_mm512_and_si512(q, _mm512_set1_epi16(1)), 3);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i),
                            _mm512_cvtepi16_epi8(_mm512_srlv_epi16(picked, shift)));
    }
    return i;
}
#endif

#if HWY_TARGET == HWY_NEON
// Rounded half away from zero; NaN is 0.
QUOLL_INLINE int32x4_t rounded_away(float32x4_t x) {
#if defined(__aarch64__)
    return vcvtaq_s32_f32(x);
#else
    // Half less one ulp reaches the next whole number from one half on, and not from the number
    // before that.
    const float32x4_t half =
        vbslq_f32(vdupq_n_u32(0x80000000), x, vdupq_n_f32(0.49999997f));  // with the sign of x
    return vcvtq_s32_f32(vaddq_f32(x, half));
#endif
}

// Four vectors, rounded half away from zero, NaN to 0, then limited to [low, high].
QUOLL_INLINE void store_limited_bytes(const vec<float, 4> (&x)[4], int8x16_t low, int8x16_t high,
                                      int8_t* p) {
    const auto whole = [&](int i) QUOLL_INLINE_LAMBDA { return rounded_away(x[i].v.raw); };
#if defined(__aarch64__)
    const auto pair = [&](int i) QUOLL_INLINE_LAMBDA {
        return vqmovn_high_s32(vqmovn_s32(whole(i)), whole(i + 1));
    };
    const int8x16_t bytes = vqmovn_high_s16(vqmovn_s16(pair(0)), pair(2));
#else
    const auto pair = [&](int i) QUOLL_INLINE_LAMBDA {
        return vqmovn_s16(vcombine_s16(vqmovn_s32(whole(i)), vqmovn_s32(whole(i + 1))));
    };
    const int8x16_t bytes = vcombine_s8(pair(0), pair(2));
#endif
    vst1q_s8(p, vminq_s8(high, vmaxq_s8(low, bytes)));
}
#endif

#if HWY_TARGET == HWY_NEON
// Row i of a 4 x 4 matrix of 32-bit words at p + i * step becomes its column i.
QUOLL_INLINE void load_transposed_words(const int8_t* p, ptrdiff_t step, int8x16_t (&columns)[4]) {
    const auto row = [&](ptrdiff_t i) QUOLL_INLINE_LAMBDA {
        return vreinterpretq_s32_s8(vld1q_s8(p + i * step));
    };
    const int32x4x2_t a = vtrnq_s32(row(0), row(1)), b = vtrnq_s32(row(2), row(3));
    for (int i = 0; i < 2; i++) {
        columns[i] =
            vreinterpretq_s8_s32(vcombine_s32(vget_low_s32(a.val[i]), vget_low_s32(b.val[i])));
        columns[i + 2] =
            vreinterpretq_s8_s32(vcombine_s32(vget_high_s32(a.val[i]), vget_high_s32(b.val[i])));
    }
}
#endif

// ---------------------------------------------------------------- half

// The sixteen bits of halves, one in each lane.
template <size_t N>
QUOLL_INLINE veci<N> half_bits_from_float(vecf<N> x) {
    using I = veci<N>;
    const I bits = bit_cast<int32_t>(x);
    const I magnitude = bits & I::set(0x7fffffff);
    // Normal: drop 13 bits of the mantissa, rounding to even, and move the exponent's bias.
    const I odd = magnitude.template shift_right<13>() & I::set(1);
    const I normal =
        (magnitude + I::set(0xfff - ((127 - 15) << 23)) + odd).template shift_right<13>();
    // Denormal: adding 0.5 leaves the result in the low bits, rounded by the adder.
    const I tiny =
        bit_cast<int32_t>(bit_cast<float>(magnitude) + vecf<N>::set(.5f)) - I::set(126 << 23);
    I h = select(magnitude < I::set((127 - 14) << 23), tiny, normal);
    // From 2^16 on infinite; what lies between 65520 and that came out so by the carry.
    h = select(magnitude >= I::set((127 + 16) << 23), I::set(0x7c00), h);
    // A NaN is made quiet, here and below, as processors do it.
    const I nan = I::set(0x7e00) | (magnitude.template shift_right<13>() & I::set(0x1ff));
    h = select(magnitude > I::set(255 << 23), nan, h);
    return h | (bits.template shift_right<16>() & I::set(0x8000));
}

template <size_t N>
QUOLL_INLINE vecf<N> float_from_half_bits(veci<N> h) {
    using I = veci<N>;
    const I magnitude = (h & I::set(0x7fff)).template shift_left<13>();
    const I exponent = magnitude & I::set(31 << 23);
    I bits = magnitude + I::set((127 - 15) << 23);
    const I special = bits + I::set((128 - 16) << 23);
    const I tiny = bit_cast<int32_t>(bit_cast<float>(bits + I::set(1 << 23)) -
                                     bit_cast<float>(I::set((127 - 14) << 23)));
    const I quiet = select(magnitude > I::set(31 << 23), I::set(1 << 22), I::zero());
    bits = select(exponent == I::set(31 << 23), special | quiet, bits);
    bits = select(exponent == I::zero(), tiny, bits);
    return bit_cast<float>(bits | (h & I::set(0x8000)).template shift_left<16>());
}

// Whether the processor converts halves. For NEON without VFPv4 Highway has functions of its own,
// which truncate and know neither infinities nor NaN.
#if HWY_TARGET == HWY_NEON
constexpr bool kHasHalf = (__ARM_FP & 2) != 0;
#else
constexpr bool kHasHalf = HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3;
#endif

template <size_t N>
QUOLL_INLINE vecf<N> load_f16(const uint16_t* p) {
    if constexpr (N > kLanes) {
        return {load_f16<N / 2>(p), load_f16<N / 2>(p + N / 2)};
    } else if constexpr (kHasHalf) {
        const hn::FixedTag<hwy::float16_t, N> tag;
        return {hn::PromoteTo(hn::FixedTag<float, N>(),
                              hn::LoadU(tag, reinterpret_cast<const hwy::float16_t*>(p)))};
    } else {
        return float_from_half_bits(load_small<uint16_t, N>(p));
    }
}
template <size_t N>
QUOLL_INLINE void store_f16(vecf<N> x, uint16_t* p) {
    if constexpr (N > kLanes) {
        store_f16(x.lo, p);
        store_f16(x.hi, p + N / 2);
    } else if constexpr (kHasHalf) {
        const hn::FixedTag<hwy::float16_t, N> tag;
        hn::StoreU(hn::DemoteTo(tag, x.v), tag, reinterpret_cast<hwy::float16_t*>(p));
    } else {
        store_small<uint16_t>(half_bits_from_float(x), p);
    }
}

// ---------------------------------------------------------------- bfloat16

template <size_t N>
QUOLL_INLINE vecf<N> load_bf16(const uint16_t* p) {
    return bit_cast<float>(load_small<uint16_t, N>(p).template shift_left<16>());
}
// x rounded to bf16, in the upper halves of its lanes; the lower halves are anything.
template <size_t N>
QUOLL_INLINE veci<N> round_to_bf16(vecf<N> x) {
    using I = veci<N>;
    const I bits = bit_cast<int32_t>(x);
#if HWY_TARGET == HWY_AVX3
    if constexpr (N == 16) {
        const __mmask16 odd = _mm512_test_epi32_mask(bits.v.raw, _mm512_set1_epi32(1 << 16));
        const __m512i half =
            _mm512_mask_blend_epi32(odd, _mm512_set1_epi32(0x7fff), _mm512_set1_epi32(0x8000));
        const __m512i sum = _mm512_add_epi32(bits.v.raw, half);
        // Nibbles 0 and 1, for quiet and signalling NaN of x: x made quiet. The others: keep sum.
        return {hn::Vec<hn::FixedTag<int32_t, N>>{_mm512_castps_si512(
            _mm512_fixupimm_ps(_mm512_castsi512_ps(sum), x.v.raw, _mm512_set1_epi32(0x22), 0))}};
    }
#endif
    const I odd = bits.template shift_right<16>() & I::set(1);
    const I rounded = bits + (I::set(0x7fff) + odd);
    return select(mask_cast<int32_t>(is_nan(x)), bits | I::set(0x400000), rounded);
}

template <size_t N>
QUOLL_INLINE void store_bf16(vecf<N> x, uint16_t* p) {
#if HWY_TARGET != HWY_SCALAR
    if constexpr (N == 2 * kLanes) {
        const hn::FixedTag<uint16_t, N> tag;
#if defined(__AVX512BF16__)
        const auto both = hn::Vec<hn::FixedTag<uint16_t, N>>{
            (__m512i)_mm512_cvtne2ps_pbh(x.hi.v.raw, x.lo.v.raw)};
#else
        const auto both = hn::ConcatOdd(tag, hn::BitCast(tag, round_to_bf16(x.hi).v),
                                        hn::BitCast(tag, round_to_bf16(x.lo).v));
#endif
        return hn::StoreU(both, tag, p);
    }
#if defined(__AVX512BF16__)
    if constexpr (N == kLanes) {
        return _mm256_storeu_si256((__m256i*)p, (__m256i)_mm512_cvtneps_pbh(x.v.raw));
    }
#endif
#endif
    if constexpr (N > kLanes) {
        store_bf16(x.lo, p);
        store_bf16(x.hi, p + N / 2);
    } else {
        const veci<N> b = round_to_bf16(x).template shift_right<16>();
        store_small<uint16_t>(b & veci<N>::set(0xffff), p);
    }
}

// ---------------------------------------------------------------- parts

// The first n of N values and zeros, and the first n of N values: value by value they would take
// longer than all the rest of a short row.
template <size_t N>
QUOLL_INLINE void load_part(const uint16_t* p, size_t n, uint16_t (&part)[N]) {
#if HWY_TARGET == HWY_AVX3
    if constexpr (N >= 8) {
        const hn::FixedTag<uint16_t, N> tag;
        return hn::StoreU(hn::MaskedLoad(hn::FirstN(tag, n), tag, p), tag, part);
    }
#endif
    for (uint16_t& value : part) value = 0;
    for (size_t i = 0; i < n; i++) part[i] = p[i];
}
template <size_t N>
QUOLL_INLINE void store_part(const uint16_t (&part)[N], uint16_t* p, size_t n) {
#if HWY_TARGET == HWY_AVX3
    if constexpr (N >= 8) {
        const hn::FixedTag<uint16_t, N> tag;
        return hn::BlendedStore(hn::LoadU(tag, part), hn::FirstN(tag, n), tag, p);
    }
#endif
    for (size_t i = 0; i < n; i++) p[i] = part[i];
}

template <size_t N>
QUOLL_INLINE vecf<N> load_f16_n(const uint16_t* p, size_t n) {
    if (n >= N) return load_f16<N>(p);
    uint16_t part[N];
    load_part(p, n, part);
    return load_f16<N>(part);
}
template <size_t N>
QUOLL_INLINE void store_f16_n(vecf<N> x, uint16_t* p, size_t n) {
    if (n >= N) return store_f16(x, p);
    uint16_t part[N];
    store_f16(x, part);
    store_part(part, p, n);
}
template <size_t N>
QUOLL_INLINE vecf<N> load_bf16_n(const uint16_t* p, size_t n) {
    if (n >= N) return load_bf16<N>(p);
    uint16_t part[N];
    load_part(p, n, part);
    return load_bf16<N>(part);
}
template <size_t N>
QUOLL_INLINE void store_bf16_n(vecf<N> x, uint16_t* p, size_t n) {
    if (n >= N) return store_bf16(x, p);
    uint16_t part[N];
    store_bf16(x, part);
    store_part(part, p, n);
}

}  // namespace
}  // namespace simd
}  // namespace quoll
