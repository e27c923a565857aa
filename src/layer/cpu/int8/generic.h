// The functions of the int8 family.
#pragma once

#include <math.h>

#include <algorithm>

#include "layer/cpu/int8/int8.h"
#include "simd/byte_squares.h"
#include "simd/convert.h"
#include "simd/dot.h"
#include "simd/fixed_sums.h"
#if HWY_TARGET == HWY_NEON
#include "simd/int8_blocks_neon.h"
#endif

namespace quoll {
namespace {

namespace s = simd;

constexpr size_t kWordK = s::kHasDotOfFour ? 4 : 2;
constexpr int kOffset = s::kHasDotU8S8 ? 128 : 0;
// A value of A among the k-groups; of 8 bits either sort.
using Element = std::conditional_t<s::kHasDotOfFour, uint8_t, int16_t>;

// ---------------------------------------------------------------- products

// As the tiles of the gemm family; without a dot product of four, the product needs a register.
constexpr size_t kTileVectors = s::kLanes == 1 ? 4 : 2;
#if defined(__aarch64__)
constexpr size_t kMostTileRows = 8;  // as the tiles by hand, which replace most of these
#else
constexpr size_t kMostTileRows = kGemmMaxRows;
#endif
constexpr size_t kTileRows = std::min<size_t>(
    kMostTileRows,
    (QUOLL_ISA_REGISTERS - kTileVectors - (s::kHasDotOfFour ? 1 : 2)) / kTileVectors);
static_assert(kTileRows <= kGemmMaxRows, "Int8Kernels has no room for such a tile");
constexpr size_t kRowsPerPointer = 3;

template <size_t k_group, size_t N>
QUOLL_INLINE s::veci<N> dot(s::veci<N> sum, s::veci<N> a, s::veci<N> b) {
    if constexpr (k_group == 4) {
        return s::dot_of_four(sum, a, b);
    } else {
        return s::dot_s16(sum, a, b);
    }
}

// Sums of few rows wait for themselves: so many k-groups go to sums of their own.
template <size_t rows>
constexpr size_t kChains = rows == 1   ? 4
                           : rows == 2 ? 2
                                       : 1;

// As Int8TileBytes says, four rows of a vector of columns at a time.
template <size_t vectors, size_t rows>
QUOLL_INLINE void store_tile_bytes(const s::veci<s::kLanes>* sum, const Int8TileBytes& tile) {
    using V = s::vecf<s::kLanes>;
    const Int8TileBytes t = tile;  // which the stores cannot change
    s::unroll<vectors>([&](auto v) QUOLL_INLINE_LAMBDA {
        const V scale = V::load(t.scale + v() * s::kLanes),
                bias = V::load(t.bias + v() * s::kLanes);
        int8_t* const c = t.c + t.columns[v() * s::kLanes];
        s::unroll<(rows + 3) / 4>([&](auto i) QUOLL_INLINE_LAMBDA {
            constexpr size_t first = 4 * i(), count = s::min_size(4, rows - first);
            V x[4];
            s::unroll<4>([&](auto m) QUOLL_INLINE_LAMBDA {
                constexpr size_t row = first + s::min_size(m(), count - 1);
                x[m] = to_float(sum[row * vectors + v]) * scale + bias;
            });
            if constexpr (count == 4) {
                s::store_saturated_bytes(x, t.zero, t.low, t.high, c + first * s::kLanes);
            } else {
                int8_t part[4 * s::kLanes];
                s::store_saturated_bytes(x, t.zero, t.low, t.high, part);
                memcpy(c + first * s::kLanes, part, count * s::kLanes);
            }
        });
    });
}

template <size_t vectors, size_t rows, size_t k_group = kWordK>
void int8_tile(const Int8Tile& t) {
    using V = s::veci<s::kLanes>;
    constexpr size_t columns = vectors * s::kLanes;
    constexpr size_t pointers = (rows + kRowsPerPointer - 1) / kRowsPerPointer;
    V sum[rows * vectors];
    s::unroll<rows * vectors>(
        [&](auto i) QUOLL_INLINE_LAMBDA { sum[i] = V::load(t.init + i % vectors * s::kLanes); });
    constexpr size_t chains = kChains<rows>;
    V other[chains * rows * vectors];
    if constexpr (chains > 1)
        s::unroll<chains * rows * vectors>([&](auto i)
                                               QUOLL_INLINE_LAMBDA { other[i] = V::set(0); });
    const ptrdiff_t row = t.a_row;
    const int32_t *const a = t.a, *const panel = t.b;
    const size_t block_k = t.block_k;
    const char* fetched = t.fetch.from ? t.fetch.from : (const char*)t.b;  // no branch in the loop
    const size_t fetched_step = t.fetch.from ? t.fetch.step : 0;
    const GemmBlock* block = t.blocks;
    const GemmBlock* const end = block + t.num_blocks;
    // do-while: with a test before the loops gcc moves the accumulators at their borders.
    do {
        const int32_t* p[pointers];
        p[0] = a + block->a;
        s::unroll<pointers - 1>([&](auto i) QUOLL_INLINE_LAMBDA {
            p[i + 1] = p[i] + (ptrdiff_t)kRowsPerPointer * row;
        });
        const int32_t* b = panel + block->k * columns;
        size_t k = block_k;
        if constexpr (chains > 1) {
            for (; k > chains; k -= chains) {
                s::unroll<chains * rows>([&](auto i) QUOLL_INLINE_LAMBDA {
                    constexpr size_t c = i() / rows, m = i() % rows;
                    const V x = V::set(p[0][(ptrdiff_t)m * row + (ptrdiff_t)c]);
                    s::unroll<vectors>([&](auto v) QUOLL_INLINE_LAMBDA {
                        V& to = other[i() * vectors + v()];
                        to = dot<k_group>(to, x, V::load(b + c * columns + v() * s::kLanes));
                    });
                });
                p[0] += chains;
                b += chains * columns;
                if constexpr (vectors > 1) {
                    for (size_t c = 0; c < chains; c++, fetched += fetched_step)
                        __builtin_prefetch(fetched, 0, 2);
                }
            }
        }
        do {
            V column[vectors];
            s::unroll<vectors>(
                [&](auto v) QUOLL_INLINE_LAMBDA { column[v] = V::load(b + v() * s::kLanes); });
            s::unroll<rows>([&](auto m) QUOLL_INLINE_LAMBDA {
                const V x = V::set(p[m / kRowsPerPointer][(ptrdiff_t)(m % kRowsPerPointer) * row]);
                s::unroll<vectors>([&](auto v) QUOLL_INLINE_LAMBDA {
                    sum[m * vectors + v] = dot<k_group>(sum[m * vectors + v], x, column[v]);
                });
            });
            s::unroll<pointers>([&](auto i) QUOLL_INLINE_LAMBDA { p[i]++; });
            b += columns;
            if constexpr (vectors > 1) {
                __builtin_prefetch(fetched, 0, 2);
                fetched += fetched_step;
            }
        } while (--k);
    } while (++block != end);
    if constexpr (chains > 1)
        s::unroll<chains * rows * vectors>([&](auto i) QUOLL_INLINE_LAMBDA {
            constexpr size_t at = i() % (rows * vectors);
            sum[at] = sum[at] + other[i];
        });
    if constexpr (s::kHasSaturatedBytes && k_group == kWordK)
        if (t.bytes) return store_tile_bytes<vectors, rows>(sum, *t.bytes);
    int32_t* const out = t.sums;
    s::unroll<rows * vectors>([&](auto i)
                                  QUOLL_INLINE_LAMBDA { sum[i].store(out + i() * s::kLanes); });
}

template <size_t vectors, size_t rows>
constexpr Int8TileKernel tile_or_null() {
    if constexpr (rows <= kTileRows) {
        return &int8_tile<vectors, rows>;
    } else {
        return nullptr;
    }
}

// Of Int8Kernels::s16.
template <size_t vectors, size_t rows>
constexpr Int8TileKernel s16_tile_or_null() {
    if constexpr (s::kHasDotU8S8 && rows <= kTileRows) {
        return &int8_tile<vectors, rows, 2>;
    } else {
        return nullptr;
    }
}

// ---------------------------------------------------------------- rounding

// Half less one ulp: a sum with it reaches the next whole number from one half on, and not from the
// number before that.
constexpr float kAlmostHalf = 0.49999997f;

// Half away from zero, within [-127, 127]. Of NaN the low byte is 0.
template <size_t N>
QUOLL_INLINE s::veci<N> round_limited(s::vecf<N> x) {
    using V = s::vecf<N>;
    const V limited = min(V::set(127.f), max(V::set(-127.f), x));
    if constexpr (s::kRoundsAway) return s::whole_byte<false>(limited);
    return s::whole_byte<false>(limited + copysign(V::set(kAlmostHalf), limited));
}

// affine_int8().
template <size_t N>
QUOLL_INLINE s::veci<N> round_affine(s::vecf<N> x, int zero) {
    using V = s::vecf<N>;
    const V finite = select(x == x, x, V::zero());
    const V low = V::set((float)(-128 - zero)), high = V::set((float)(127 - zero));
    return s::whole_byte<true>(min(high, max(low, finite))) + s::veci<N>::set(zero);
}

QUOLL_INLINE int round_affine(float x, int zero) {
    int8_t q;
    s::store_low_bytes(round_affine(s::vecf<1>::set(x), zero), &q);
    return q;
}

// f(std::integral_constant<size_t, N>(), i) for steps of a register, then for single values.
template <class F>
QUOLL_INLINE void for_steps(size_t n, F f) {
    size_t i = 0;
    for (; i + s::kLanes <= n; i += s::kLanes) f(std::integral_constant<size_t, s::kLanes>(), i);
    for (; i < n; i++) f(std::integral_constant<size_t, 1>(), i);
}

void round_s8(const float* in, size_t n, float scale, int8_t* out) {
#if HWY_TARGET == HWY_NEON
    const size_t done = round_run(in, n, scale, out);
    n -= done, in += done, out += done;
#endif
    for_steps(n, [&](auto lanes, size_t i) QUOLL_INLINE_LAMBDA {
        using V = s::vecf<decltype(lanes)::value>;
        s::store_low_bytes(round_limited(V::load(in + i) * V::set(scale)), out + i);
    });
}

// ---------------------------------------------------------------- zero points

template <size_t N>
QUOLL_INLINE s::vecf<N> affine_value(const int8_t* p, s::veci<N> zero, s::vecf<N> scale) {
    return to_float(s::load_s8<N>(p) - zero) * scale;
}

// What affine_int8() makes of x / scale it also makes of this, without a division: a quotient by
// the reciprocal, corrected once by its remainder. Around the middle between two whole numbers that
// has been compared with the division for all mantissas of scales (tests/kernel/test_int8.cpp
// samples them); elsewhere a last digit more or less rounds alike.
template <size_t N>
struct AffineQuotient {
    using V = s::vecf<N>;
    V scale, reciprocal, most;

    // Of such scales neither the reciprocal nor a remainder that counts is below normal numbers.
    QUOLL_INLINE static bool is_exact(float scale) {
        return s::kHasFma && scale > 0x1p-100f && scale < 0x1p100f;
    }
    QUOLL_INLINE explicit AffineQuotient(float scale)
        : scale(V::set(scale)), reciprocal(V::set(1.f / scale)), most(V::set(1024.f * scale)) {}
    QUOLL_INLINE V operator()(V x) const {
        const V finite = select(x == x, x, V::zero());
        const V limited = min(most, max(V::zero() - most, finite));
        const V q = limited * reciprocal;
        return fma(nfma(q, scale, limited), reciprocal, q);
    }
};

void to_affine(const float* in, size_t n, float scale, int zero, int8_t* out) {
    if (AffineQuotient<s::kLanes>::is_exact(scale)) {
        constexpr size_t N = s::kLanes;
        const AffineQuotient<N> quotient(scale);
        size_t i = 0;
        for (; i + 4 * N <= n; i += 4 * N) {
            s::vecf<N> x[4];
            s::unroll<4>([&](auto v) QUOLL_INLINE_LAMBDA {
                x[v] = quotient(s::vecf<N>::load(in + i + v() * N));
            });
            s::store_saturated_bytes(x, zero, -128, 127, out + i);
        }
        n -= i, in += i, out += i;
    }
    for_steps(n, [&](auto lanes, size_t i) QUOLL_INLINE_LAMBDA {
        using V = s::vecf<decltype(lanes)::value>;
        s::store_low_bytes(round_affine(V::load(in + i) / V::set(scale), zero), out + i);
    });
}

void from_affine(const int8_t* in, size_t n, float scale, int zero, float* out) {
    for_steps(n, [&](auto lanes, size_t i) QUOLL_INLINE_LAMBDA {
        constexpr size_t N = decltype(lanes)::value;
        affine_value(in + i, s::veci<N>::set(zero), s::vecf<N>::set(scale)).store(out + i);
    });
}

// clamp(x op y) * top_scale of values i to i + N - 1, or without `clamps` (x op y) * top_scale.
template <size_t N, bool clamps>
QUOLL_INLINE s::vecf<N> affine_result(const Int8Affine& t, size_t i) {
    using V = s::vecf<N>;
    using I = s::veci<N>;
    V x = affine_value(t.a + i, I::set(t.zero_a), V::set(t.scale_a));
    if (t.b) {
        const V y = affine_value(t.b + i, I::set(t.zero_b), V::set(t.scale_b));
        x = t.multiply ? x * y : x + y;
    }
    if constexpr (clamps) x = min(V::set(t.high), max(V::set(t.low), x));
    return x * V::set(t.top_scale);
}

void affine(const Int8Affine& task) {
    const Int8Affine t = task;  // which stores of bytes cannot change
    size_t done = 0;
    if constexpr (s::kHasSaturatedBytes) {
        constexpr size_t N = s::kLanes;
        const float a = 256.f * fabsf(t.scale_a), b = t.b ? 256.f * fabsf(t.scale_b) : 0.f;
        const float most = (t.multiply && t.b ? a * b : a + b) * t.top_scale;
        const bool small = t.top_scale > 0.f && most < 0x1p30f && t.low <= t.high;
        const int low = round_affine(t.low * t.top_scale, t.top_zero);
        const int high = round_affine(t.high * t.top_scale, t.top_zero);
        if constexpr (s::kHasFixedSums) {
            if (t.fixed) {
                const Int8FixedSum& f = *t.fixed;
                const s::FixedSums sums = {f.high_factors, f.low_factors, f.high_start, f.low_start,
                                           f.shift,        low,           high};
                for (; done + 4 * N <= t.n; done += 4 * N)
                    s::fixed_sums(t.a + done, t.b + done, sums, t.out + done);
            }
        }
        for (; small && done + 4 * N <= t.n; done += 4 * N) {
            const s::vecf<N> x[4] = {
                affine_result<N, false>(t, done), affine_result<N, false>(t, done + N),
                affine_result<N, false>(t, done + 2 * N), affine_result<N, false>(t, done + 3 * N)};
            s::store_saturated_bytes(x, t.top_zero, low, high, t.out + done);
        }
    }
    for_steps(t.n - done, [&](auto lanes, size_t i) QUOLL_INLINE_LAMBDA {
        constexpr size_t N = decltype(lanes)::value;
        const s::vecf<N> x = affine_result<N, true>(t, done + i);
        s::store_low_bytes(round_affine(x, t.top_zero), t.out + done + i);
    });
}

void look_up(const int8_t* in, size_t n, const int8_t* table, int8_t* out) {
    size_t i = 0;
#if HWY_TARGET == HWY_AVX3
    i = s::look_up_bytes(in, n, table, out);
#endif
    const int8_t* const middle = table + 128;
    for (; i < n; i++) out[i] = middle[in[i]];
}

void range(const float* in, size_t n, float* limits) {
    using V = s::vecf<s::kLanes>;
    V low = V::set(limits[0]), high = V::set(limits[1]);
    size_t i = 0;
    for (; i + s::kLanes <= n; i += s::kLanes) {
        const V x = V::load(in + i);
        low = select(x < low, x, low), high = select(high < x, x, high);
    }
    alignas(64) float lows[s::kLanes], highs[s::kLanes];
    low.store(lows), high.store(highs);
    const auto take = [&](float x, float y) {
        if (x < limits[0]) limits[0] = x;
        if (y > limits[1]) limits[1] = y;
    };
    for (size_t l = 0; l < s::kLanes; l++) take(lows[l], highs[l]);
    for (; i < n; i++) take(in[i], in[i]);
}

void terms(const Int8Terms& t) {
    for_steps(t.n, [&](auto lanes, size_t i) QUOLL_INLINE_LAMBDA {
        constexpr size_t N = decltype(lanes)::value;
        using I = s::veci<N>;
        I sum = I::load(t.sums + i) + I::set(t.a) * I::load(t.x + i);
        if (t.y) sum = sum + I::set(t.b) * I::load(t.y + i);
        if (!t.scale) return sum.store((int32_t*)t.out + i);
        using V = s::vecf<N>;
        (to_float(sum) * V::load(t.scale + i) + V::load(t.bias + i)).store((float*)t.out + i);
    });
}

void largest(const int8_t* a, const int8_t* b, size_t n, int8_t* out) {
    using V = s::vec<int8_t, s::native_lanes<int8_t>()>;
    size_t i = 0;
    for (; i + V::kSize <= n; i += V::kSize) max(V::load(a + i), V::load(b + i)).store(out + i);
    for (; i < n; i++) out[i] = a[i] > b[i] ? a[i] : b[i];
}

// ---------------------------------------------------------------- A

template <size_t N>
QUOLL_INLINE s::veci<N> load_whole(const float* p, s::vecf<N> scale) {
    const s::vecf<N> x = s::vecf<N>::load(p) * scale;
    // An element of 8 bits is the low byte.
    return round_limited(
        s::kHasDotOfFour || s::kRoundsAway ? x : select(x == x, x, s::vecf<N>::zero()));
}
template <size_t N>
QUOLL_INLINE s::veci<N> load_whole(const int8_t* p, s::vecf<N>) {
    return s::load_s8<N>(p);
}

template <size_t N, class E>
QUOLL_INLINE void store_elements(s::veci<N> x, E* p) {
    if constexpr (sizeof(E) == 1) {
        s::store_low_bytes(x + s::veci<N>::set(kOffset), p);
    } else {
        s::store_small<int16_t>(x, p);
    }
}

// N values as elements.
template <size_t N, class T, class E>
QUOLL_INLINE void copy_elements(const T* from, s::vecf<N> scale, E* to) {
    if constexpr (sizeof(E) == 1 && sizeof(T) == 1) {
        using B = s::vec<uint8_t, N>;
        (B::load((const uint8_t*)from) ^ B::set(kOffset)).store(to);
    } else {
        store_elements<N>(load_whole<N>(from, scale), to);
    }
}

template <class T, size_t pack, class E = Element>
void input_packed(const Int8Input& t) {
    const auto scale = s::vecf<pack>::set(t.scale);
    const T* src = (const T*)t.src;
    int together = 1;  // blocks
    int joined = 0;
#if HWY_TARGET == HWY_AVX3
    // Whole pixels of the k-groups, in single stores.
    if constexpr (sizeof(T) == 1 && sizeof(E) == 1 && pack == 16) {
        for (; t.dst_pack == 64 && joined + 64 <= t.channels; joined += 64, src += 4 * t.src_block)
            s::join_four_blocks(src, t.src_block, t.src_pixel, t.pixels, kOffset,
                                (E*)t.dst + joined / 64 * t.dst_block, t.dst_pixel);
    }
#endif
    for (int c = joined; c < t.channels; c += together * (int)pack) {
        E* dst = (E*)t.dst + c / t.dst_pack * t.dst_block + c % t.dst_pack;
        size_t done = 0;
        together = 1;
#if HWY_TARGET == HWY_NEON
        if constexpr (sizeof(T) == 1 && pack == 4) together = copy_blocks(t, c, src, dst, &done);
        if constexpr (sizeof(T) == 4 && pack == 4 && sizeof(E) == 1)
            together = round_blocks(t, c, src, dst, &done);
#endif
        for (int b = 0; b < together; b++, src += t.src_block, dst += pack)
            for (size_t p = done; p < t.pixels; p++)
                copy_elements<pack>(src + (ptrdiff_t)p * t.src_pixel, scale,
                                    dst + (ptrdiff_t)p * t.dst_pixel);
    }
}

// The k-groups of N pixels from neighbouring channels, `count` of which exist.
template <class T, size_t N, class E>
QUOLL_INLINE s::veci<N> planar_k_groups(const Int8Input& t, const T* src, int count, size_t pixel) {
    using I = s::veci<N>;
    constexpr int bits = 8 * (int)sizeof(E);
    const auto scale = s::vecf<N>::set(t.scale);
    I k_group_bits = I::zero();
    s::unroll<4 / sizeof(E)>([&](auto e) QUOLL_INLINE_LAMBDA {
        I x = I::zero();
        if ((int)e() < count) {
            const T* from = src + (ptrdiff_t)e() * t.src_block;
            if (t.src_pixel == 1) {
                x = load_whole<N>(from + pixel, scale);
            } else {
                T gathered[N];
                for (size_t i = 0; i < N; i++)
                    gathered[i] = from[(ptrdiff_t)(pixel + i) * t.src_pixel];
                x = load_whole<N>(gathered, scale);
            }
        }
        x = (x + I::set(kOffset)) & I::set(sizeof(E) == 1 ? 0xff : 0xffff);
        k_group_bits = k_group_bits | x.template shift_left<(int)e() * bits>();
    });
    return k_group_bits;
}

#if HWY_TARGET == HWY_AVX3
// Neighbouring pixels of planes of bytes by sixteens, the last of which may be some twice.
void turn_planes(const Int8Input& t) {
    const s::Sixteen offset = s::set_sixteen(kOffset);
    for (int c = 0, count = 0; c < t.channels; c += count) {
        count = std::min({(int)s::kSquare, t.channels - c, t.dst_pack - c % t.dst_pack});
        const int8_t* const planes = (const int8_t*)t.src + c * t.src_block;
        uint8_t* const dst = (uint8_t*)t.dst + c / t.dst_pack * t.dst_block + c % t.dst_pack;
        const size_t words = (size_t)(count + 3) / 4;
        for (size_t first = 0; first < t.pixels; first += s::kSquare) {
            const size_t p = std::min(first, t.pixels - s::kSquare);
            s::turn_square(
                [&](int m) QUOLL_INLINE_LAMBDA {
                    const int8_t* const from = planes + m * t.src_block + p;
                    return m < count ? s::exclusive_or(s::load_sixteen(from), offset) : offset;
                },
                [&](auto n, s::Sixteen x) QUOLL_INLINE_LAMBDA {
                    s::store_first_words(x, words, dst + (ptrdiff_t)(p + n()) * t.dst_pixel);
                });
        }
    }
}
#endif

template <class T, class E = Element>
void input_planar(const Int8Input& t) {
#if HWY_TARGET == HWY_AVX3
    if constexpr (sizeof(T) == 1 && sizeof(E) == 1)
        if (t.src_pixel == 1 && t.pixels >= s::kSquare && t.channels > 4 && t.dst_pack > 4)
            return turn_planes(t);
#endif
    for (int c = 0; c < t.channels; c += 4 / (int)sizeof(E)) {
        const T* src = (const T*)t.src + c * t.src_block;
        char* dst = (char*)((E*)t.dst + c / t.dst_pack * t.dst_block + c % t.dst_pack);
        const ptrdiff_t step = t.dst_pixel * (ptrdiff_t)sizeof(E);
        const int count = t.channels - c;
        size_t done = 0;
#if HWY_TARGET == HWY_NEON
        if constexpr (sizeof(E) == 1) done = join_planes(t, src, count, (uint8_t*)dst);
#endif
        for_steps(t.pixels - done, [&](auto lanes, size_t i) QUOLL_INLINE_LAMBDA {
            const size_t p = done + i;
            constexpr size_t N = decltype(lanes)::value;
            alignas(64) int32_t k_groups[N];
            planar_k_groups<T, N, E>(t, src, count, p).store(k_groups);
            if (step == (ptrdiff_t)sizeof(int32_t)) {
                memcpy(dst + p * sizeof(int32_t), k_groups, sizeof(k_groups));
            } else {
                for (size_t l = 0; l < N; l++)
                    memcpy(dst + (ptrdiff_t)(p + l) * step, &k_groups[l], sizeof(int32_t));
            }
        });
    }
}

// ---------------------------------------------------------------- windows of single channels

template <int rows>
void join_rows(const Int8Rows& t) {
    constexpr int bits = 32 / (int)kWordK;
    for_steps(t.n, [&](auto lanes, size_t i) QUOLL_INLINE_LAMBDA {
        using I = s::veci<decltype(lanes)::value>;
        I k_group_bits = I::zero();
        s::unroll<rows>([&](auto r) QUOLL_INLINE_LAMBDA {
            I x = I::zero();
            if constexpr (s::kHasDotOfFour) {
                x = s::load_u8<I::kSize>((const uint8_t*)t.rows[r] + i);
            } else {
                x = s::load_s8<I::kSize>(t.rows[r] + i);
                if (r + 1 < rows) x = x & I::set(0xffff);
            }
            k_group_bits = k_group_bits | x.template shift_left<(int)r() * bits>();
        });
        // Of s8 values the top bit is what an offset of 128 changes.
        if constexpr (s::kHasDotU8S8) k_group_bits = k_group_bits ^ I::set((int32_t)0x80808080);
        k_group_bits.store(t.k_groups + i);
    });
}

void k_groups(const Int8Rows& t) {
    if (t.count == 1) return join_rows<1>(t);
    if (t.count == 2) return join_rows<2>(t);
    if constexpr (kWordK == 4) {
        if (t.count == 3) return join_rows<3>(t);
        return join_rows<4>(t);
    }
}

// Outputs x to x + T - 1.
template <size_t N, int T>
QUOLL_INLINE void window_tile(const Int8Windows& t, int x) {
    using V = s::veci<N>;
    V sum[T];
    const V init = V::load(t.init);
#pragma GCC unroll 8
    for (int i = 0; i < T; i++) sum[i] = init;
    const int32_t* const first = t.k_groups + (size_t)x * t.step;
    const int32_t* weight = t.weight;
    for (int k = 0; k < t.num_taps; k++, weight += N) {
        const V w = V::load(weight);
        const int32_t* in = first + t.taps[k];
#pragma GCC unroll 8
        for (int i = 0; i < T; i++)
            sum[i] = dot<kWordK>(sum[i], V::load(in + (size_t)i * t.step), w);
    }
#pragma GCC unroll 8
    for (int i = 0; i < T; i++) sum[i].store(t.sums + (size_t)(x + i) * N);
}

// Some of the row twice rather than one at a time.
template <size_t N>
void window_row(const Int8Windows& t) {
    int x = 0;
    for (; x + 8 <= t.count; x += 8) window_tile<N, 8>(t, x);
    if (t.count < 4)
        for (; x < t.count; x++) window_tile<N, 1>(t, x);
    for (; x < t.count; x += 4) {
        if (x > t.count - 4) x = t.count - 4;
        window_tile<N, 4>(t, x);
    }
}

void windows(const Int8Windows& t) {
    if constexpr (s::kLanes == 1) return window_row<1>(t);
    if constexpr (s::kLanes >= 4)
        if (t.pack == 4) return window_row<4>(t);
    if constexpr (s::kLanes >= 8)
        if (t.pack == 8) return window_row<8>(t);
    if constexpr (s::kLanes >= 16)
        if (t.pack == 16) return window_row<16>(t);
}

// ---------------------------------------------------------------- C

// What a tile holds: int32 sums or finished values.
enum class Held { kSums, kValues };

// Rows that are stored together where columns lie apart.
constexpr int kStoreRows = 16;

// Moves `rows` rows of `count` columns between [rows][L] at `part` and the places of a store.
template <size_t run, bool out, class T>
QUOLL_INLINE void move_runs(T* part, T* c, ptrdiff_t c_row, const ptrdiff_t* columns, size_t count,
                            int rows) {
    for (size_t i = 0; i < count; i += run) {
        T *p = part + i, *to = c + columns[i];
        for (int m = 0; m < rows; m++, p += s::kLanes, to += c_row) {
            if constexpr (out) {
                memcpy(to, p, run * sizeof(T));
            } else {
                memcpy(p, to, run * sizeof(T));
            }
        }
    }
}
template <bool out, class T>
void move_columns(T* part, T* c, ptrdiff_t c_row, const ptrdiff_t* columns, size_t count, int rows,
                  size_t run) {
#if HWY_TARGET == HWY_AVX3
    if constexpr (out && sizeof(T) == 1) {
        static_assert(kStoreRows == s::kSquare && s::kLanes == s::kSquare);
        if (run == 1 && c_row == 1 && rows == kStoreRows) {
            return s::turn_square(
                [&](int m) QUOLL_INLINE_LAMBDA { return s::load_sixteen(part + m * kStoreRows); },
                [&](auto n, s::Sixteen x) QUOLL_INLINE_LAMBDA {
                    if (n() < count) s::store_sixteen(x, c + columns[n]);
                });
        }
        const bool together = c_row == (ptrdiff_t)run && (run == 8 || run == 4);
        for (; together && rows >= 4; rows -= 4, part += 4 * s::kLanes, c += 4 * c_row) {
            if (run == 8)
                s::store_blocks<8>(part, c, columns, count);
            else
                s::store_blocks<4>(part, c, columns, count);
        }
    }
#elif HWY_TARGET == HWY_NEON
    if constexpr (out) {
        if (run == 1 && c_row == 1) {
            const int done = store_planes(part, c, columns, count, rows);
            part += done * s::kLanes, c += done, rows -= done;
        }
    }
#endif
    if constexpr (s::kLanes >= 8)
        if (run == s::kLanes / 2)
            return move_runs<s::kLanes / 2, out>(part, c, c_row, columns, count, rows);
    if constexpr (s::kLanes >= 16)
        if (run == s::kLanes / 4)
            return move_runs<s::kLanes / 4, out>(part, c, c_row, columns, count, rows);
    move_runs<1, out>(part, c, c_row, columns, count, rows);
}

// How the results of a store come about: f32; s8 rounded half away from zero, of values of any sign
// or of none below 0; s8 with a zero point.
enum class Kept { kFloats, kSigned, kPositive, kAffine };

// What values meet on their way to memory.
struct StoreLimits {
    float first_low, first_high;  // before top_scale, if `twice`
    float low, high;              // after it
    bool twice;
    int least_byte, most_byte;  // as bytes with the zero point

    // values: they are not clamped; s8: they are, then multiplied, then made s8.
    QUOLL_INLINE StoreLimits(const Int8Store& t, bool values, bool s8)
        : first_low(values ? -INFINITY : t.low),
          first_high(values ? INFINITY : t.high),
          low(first_low),
          high(first_high),
          twice(false),
          least_byte(0),
          most_byte(0) {
        if (!s8) return;
        const float least = t.affine ? (float)(-128 - t.top_zero) : -127.f;
        const float most = t.affine ? (float)(127 - t.top_zero) : 127.f;
        // Clamping, a positive factor and clamping are the factor and one clamping: products are
        // rounded in the same way.
        twice = !values && !(t.top_scale > 0.f && t.top_scale < INFINITY);
        const auto limit = [&](float x) {
            const float y = values || twice ? x : x * t.top_scale;
            return y > least ? (y < most ? y : most) : least;
        };
        low = twice ? least : limit(first_low), high = twice ? most : limit(first_high);
        if (!t.affine) return;
        least_byte = round_affine(low, t.top_zero), most_byte = round_affine(high, t.top_zero);
    }
};

// Leaky ReLU is part of the stores of sums where there is room for more of them.
#if HWY_TARGET == HWY_NEON
constexpr bool kHasSlopes = true;
#else
constexpr bool kHasSlopes = false;
#endif

template <Kept kept, Held held, bool leaky>
struct StoreColumn {
    using V = s::vecf<s::kLanes>;
    using Out = std::conditional_t<kept == Kept::kFloats, float, int8_t>;
    V scale, bias, low, high, top_scale, slope;
    s::veci<s::kLanes> zero;

    // multiplied: top_scale is in scale and bias.
    QUOLL_INLINE StoreColumn(const Int8Store& t, const StoreLimits& limits, size_t n,
                             bool multiplied)
        : scale(held != Held::kValues ? V::load(t.scale + n) : V::zero()),
          bias(held != Held::kValues ? V::load(t.bias + n) : V::zero()),
          low(V::set(limits.low)),
          high(V::set(limits.high)),
          top_scale(V::set(multiplied ? 1.f : t.top_scale)),
          slope(V::set(t.slope)),
          zero(s::veci<s::kLanes>::set(kept == Kept::kAffine ? t.top_zero : 0)) {
        if (!multiplied) return;
        scale = scale * V::set(t.top_scale);
        bias = bias * V::set(t.top_scale);
    }
    QUOLL_INLINE V value(const char* from) const {
        if constexpr (held == Held::kValues) return V::load((const float*)from);
        return to_float(s::veci<s::kLanes>::load((const int32_t*)from)) * scale + bias;
    }
    QUOLL_INLINE V active(V y) const {
        if constexpr (leaky) return max(y * slope, y);
        return y;
    }
    QUOLL_INLINE V active_value(const char* from) const { return active(value(from)); }
    // No result can be NaN.
    QUOLL_INLINE bool finite() const {
        if constexpr (held == Held::kValues) return false;
        const V zeros = scale * V::zero() + bias * V::zero();
        return !any(zeros != zeros);
    }
    // All results of sums are below 2^31.
    QUOLL_INLINE bool small() const {
        return !any(!(abs(scale) < V::set(.5f)) | !(abs(bias) < V::set(0x1p30f)));
    }
    QUOLL_INLINE V scaled(V y) const { return y * top_scale; }
    // What whole_byte is to round.
    QUOLL_INLINE V limited(V y) const {
        const V x = min(high, max(low, scaled(y))), half = V::set(kAlmostHalf);
        if constexpr (s::kRoundsAway) return x;
        if constexpr (kept == Kept::kSigned) return x + copysign(half, x);
        if constexpr (kept == Kept::kPositive) return x + half;
        return x;
    }
    QUOLL_INLINE void store(V y, Out* to) const {
        if constexpr (kept == Kept::kFloats) {
            min(high, max(low, y)).store(to);
        } else {
            s::veci<s::kLanes> q = s::whole_byte<kept == Kept::kAffine>(limited(y));
            if constexpr (kept == Kept::kAffine) q = q + zero;
            s::store_low_bytes(q, to);
        }
    }
};

// A column of registers where nothing is added and all lanes are neighbours. top_zero: of kAffine.
template <Kept kept, Held held, bool leaky, class Out>
QUOLL_INLINE void store_plain(const StoreColumn<kept, held, leaky>& column,
                              [[maybe_unused]] const StoreLimits& limits,
                              [[maybe_unused]] int top_zero, const char* from, size_t step, Out* c,
                              ptrdiff_t c_row, int rows) {
    int m = 0;
    constexpr bool saturates =
        kept == Kept::kAffine && held == Held::kSums && s::kHasSaturatedBytes;
    if constexpr (saturates) {
        // Copies, which the stores of bytes cannot change.
        const int low = limits.least_byte, high = limits.most_byte;
        const auto store = [&](size_t r1, size_t r2, size_t r3, int8_t* to) QUOLL_INLINE_LAMBDA {
            const s::vecf<s::kLanes> x[4] = {
                column.active_value(from), column.active_value(from + r1 * step),
                column.active_value(from + r2 * step), column.active_value(from + r3 * step)};
            s::store_saturated_bytes(x, top_zero, low, high, to);
        };
        const bool together = c_row == (ptrdiff_t)s::kLanes && column.small();
        for (; together && m + 4 <= rows; m += 4, from += 4 * step, c += 4 * s::kLanes)
            store(1, 2, 3, c);
        if (together && m < rows) {
            const size_t last = (size_t)(rows - m - 1);
            int8_t part[4 * s::kLanes];
            store(s::min_size(last, 1), last, last, part);
            memcpy(c, part, (last + 1) * s::kLanes);
        }
        if (together) return;
    }
#if HWY_TARGET == HWY_NEON
    if constexpr (kept == Kept::kSigned || kept == Kept::kPositive) {
        if (c_row == (ptrdiff_t)s::kLanes && limits.low <= 0.f && limits.high >= 0.f) {
            m = store_limited_rows(
                limits.low, limits.high, rows, c, from, step,
                [&](const char* row) { return column.scaled(column.active_value(row)); });
            from += m * step, c += m * c_row;
        }
    }
#endif
    if constexpr (kept != Kept::kFloats && !saturates) {
        const bool together = c_row == (ptrdiff_t)s::kLanes && (s::kRoundsAway || column.finite());
        for (; together && m + 4 <= rows; m += 4, from += 4 * step, c += 4 * c_row) {
            const s::vecf<s::kLanes> x[4] = {column.limited(column.active_value(from)),
                                             column.limited(column.active_value(from + step)),
                                             column.limited(column.active_value(from + 2 * step)),
                                             column.limited(column.active_value(from + 3 * step))};
            s::store_whole_bytes<kept == Kept::kAffine>(x, column.zero, c);
        }
    }
    for (; m + 2 <= rows; m += 2, from += 2 * step, c += 2 * c_row) {
        const auto y0 = column.active_value(from), y1 = column.active_value(from + step);
        column.store(y0, c);
        column.store(y1, c + c_row);
    }
    if (m < rows) column.store(column.active_value(from), c);
}

template <Kept kept, Held held, bool leaky, class Out>
QUOLL_INLINE void store_added(const StoreColumn<kept, held, leaky>& column,
                              const StoreLimits& limits, const char* from, size_t step,
                              const float* add, ptrdiff_t add_row, Out* c, ptrdiff_t c_row,
                              int rows) {
    using V = s::vecf<s::kLanes>;
    for (int m = 0; m < rows; m++, from += step, c += c_row) {
        V y = column.value(from);
        if (add) y = y + V::load(add + m * add_row);
        y = column.active(y);
        if (limits.twice) y = min(V::set(limits.first_high), max(V::set(limits.first_low), y));
        column.store(y, c);
    }
}

#if HWY_TARGET == HWY_NEON
// Bytes of sums without zero points, of two registers from column n on, where there are two and
// rows are neighbours, with what is added or not. Returns how many rows it stored.
template <bool adds, bool leaky>
[[gnu::noinline]] int store_pairs(const Int8Store& t, const StoreLimits& limits, size_t n) {
    constexpr size_t L = s::kLanes;
    if (n + 2 * L > t.used || t.c_row != (ptrdiff_t)L || !(limits.low <= 0.f) ||
        !(limits.high >= 0.f) || limits.twice)
        return 0;
    const StoreColumn<Kept::kSigned, Held::kSums, leaky> first(t, limits, n, false),
        second(t, limits, n + L, false);
    const char* from = (const char*)((const int32_t*)t.sums + n);
    const size_t step = t.width * 4;
    const float* add0 = adds ? t.add + t.add_columns[n] : nullptr;
    const float* add1 = adds ? t.add + t.add_columns[n + L] : nullptr;
    int8_t* const c = (int8_t*)t.c;
    return store_limited_pairs(limits.low, limits.high, t.rows, c + t.columns[n],
                               c + t.columns[n + L], [&](auto& a, auto& b) QUOLL_INLINE_LAMBDA {
                                   a = first.value(from), b = second.value(from + 4 * L);
                                   if constexpr (adds) {
                                       a = a + s::vecf<L>::load(add0);
                                       b = b + s::vecf<L>::load(add1);
                                       add0 += L, add1 += L;
                                   }
                                   a = first.scaled(first.active(a));
                                   b = second.scaled(second.active(b));
                                   from += step;
                               });
}

// The same as f32, without an upper limit.
template <bool adds, bool leaky>
[[gnu::noinline]] int store_float_pairs(const Int8Store& t, const StoreLimits& limits, size_t n) {
    constexpr size_t L = s::kLanes, kRows = 4;
    if (n + 2 * L > t.used || t.c_row != (ptrdiff_t)L || limits.high < INFINITY) return 0;
    const StoreColumn<Kept::kFloats, Held::kSums, leaky> column[2] = {{t, limits, n, false},
                                                                      {t, limits, n + L, false}};
    const char* from = (const char*)((const int32_t*)t.sums + n);
    const size_t step = t.width * 4;
    float *c0 = (float*)t.c + t.columns[n], *c1 = (float*)t.c + t.columns[n + L];
    const float* add0 = adds ? t.add + t.add_columns[n] : nullptr;
    const float* add1 = adds ? t.add + t.add_columns[n + L] : nullptr;
    const int last = t.rows - (int)kRows;
    int m = 0;
    for (; m <= last; m += kRows, c0 += kRows * L, c1 += kRows * L) {
        s::vecf<L> y[2][kRows];
        s::unroll<kRows>([&](auto i) QUOLL_INLINE_LAMBDA {
            y[0][i] = column[0].value(from);
            y[1][i] = column[1].value(from + 4 * L);
            from += step;
        });
        const auto store = [&](const auto& of, const float* add, s::vecf<L>* values,
                               float* to) QUOLL_INLINE_LAMBDA {
            s::unroll<kRows>([&](auto i) QUOLL_INLINE_LAMBDA {
                if constexpr (adds) values[i] = values[i] + s::vecf<L>::load(add + i() * L);
                values[i] = leaky ? of.active(values[i]) : max(of.low, values[i]);
            });
            s::unroll<kRows>([&](auto i) QUOLL_INLINE_LAMBDA { values[i].store(to + i() * L); });
        };
        store(column[0], add0, y[0], c0);
        store(column[1], add1, y[1], c1);
        if (adds) add0 += kRows * L, add1 += kRows * L;
    }
    return m;
}
#endif

template <Kept kept, Held held, bool leaky = false>
void store_tile(const Int8Store& t, const StoreLimits& limits) {
    using Column = StoreColumn<kept, held, leaky>;
    using Out = typename Column::Out;
    constexpr size_t L = s::kLanes;
    const bool whole = t.run == L, plain = !t.add && !limits.twice;
    const bool multiplied = kept == Kept::kAffine && held == Held::kSums && plain;
    const size_t step = t.width * 4;
    const bool turns =
        s::kHasByteSquares && sizeof(Out) == 1 && t.run == 1 && t.c_row == 1 && t.rows > kStoreRows;
    int done = 0;  // rows of this register and the next one
    for (size_t n = 0; n < t.used; n += L) {
        const Column column(t, limits, n, multiplied);
        const ptrdiff_t* const columns = t.columns + n;
        const ptrdiff_t* const add_columns = t.add ? t.add_columns + n : nullptr;
        const size_t count = s::min_size(L, t.used - n);
#if HWY_TARGET == HWY_NEON
        if constexpr (held == Held::kSums && (kept == Kept::kSigned || kept == Kept::kPositive))
            if (n % (2 * L) == 0)
                done = !whole  ? 0
                       : t.add ? store_pairs<true, leaky>(t, limits, n)
                               : store_pairs<false, leaky>(t, limits, n);
        if constexpr (held == Held::kSums && kept == Kept::kFloats)
            if (n % (2 * L) == 0)
                done = !whole  ? 0
                       : t.add ? store_float_pairs<true, leaky>(t, limits, n)
                               : store_float_pairs<false, leaky>(t, limits, n);
#endif
        int rows = t.rows;
        for (int m = done; m < t.rows; m += rows) {
            rows = whole || t.rows - m < kStoreRows ? t.rows - m : kStoreRows;
            // Some rows of bytes twice rather than one at a time.
            if (turns && rows < kStoreRows) m = t.rows - kStoreRows, rows = kStoreRows;
            const char* from = (const char*)t.sums + n * 4 + m * step;
            Out* const c = (Out*)t.c + m * t.c_row;
            const float* add = t.add ? t.add + m * t.c_row : nullptr;
            alignas(64) Out part[kStoreRows * L];
            alignas(64) float added[kStoreRows * L];
            if (add && !whole)
                move_columns<false>(added, (float*)add, t.c_row, add_columns, count, rows, t.run);
            if (add) add = whole ? add + add_columns[0] : added;
            Out* const to = whole ? c + columns[0] : part;
            const ptrdiff_t to_row = whole ? t.c_row : (ptrdiff_t)L;
            if (plain)
                store_plain(column, limits, t.top_zero, from, step, to, to_row, rows);
            else
                store_added(column, limits, from, step, add, to_row, to, to_row, rows);
            if (!whole) move_columns<true>(part, c, t.c_row, columns, count, rows, t.run);
        }
    }
}

template <Held held>
void store_tile_s8(const Int8Store& t) {
    const StoreLimits limits(t, held == Held::kValues, true);
    if (t.affine) return store_tile<Kept::kAffine, held>(t, limits);
    if constexpr (held == Held::kSums && kHasSlopes)
        if (t.slope != 0.f) return store_tile<Kept::kSigned, held, true>(t, limits);
    if constexpr (held == Held::kSums)
        if (limits.low >= 0.f) return store_tile<Kept::kPositive, held>(t, limits);
    store_tile<Kept::kSigned, held>(t, limits);
}

void finish_f32(const Int8Store& t) {
    const StoreLimits limits(t, false, false);
    if constexpr (kHasSlopes)
        if (t.slope != 0.f) return store_tile<Kept::kFloats, Held::kSums, true>(t, limits);
    store_tile<Kept::kFloats, Held::kSums>(t, limits);
}
void finish_s8(const Int8Store& t) { store_tile_s8<Held::kSums>(t); }
void store_f32(const Int8Store& t) {
    store_tile<Kept::kFloats, Held::kValues>(t, StoreLimits(t, true, false));
}
void store_s8(const Int8Store& t) { store_tile_s8<Held::kValues>(t); }

}  // namespace
}  // namespace quoll
