// The functions of the int8 family.
#pragma once

#include "layer/cpu/int8/int8.h"
#include "simd/convert.h"
#include "simd/dot.h"

namespace quoll {
namespace {

namespace s = simd;

constexpr size_t kWordK = s::kHasDotU8S8 ? 4 : 2;
constexpr int kOffset = s::kHasDotU8S8 ? 128 : 0;
// A value of A among the words.
using Element = std::conditional_t<s::kHasDotU8S8, uint8_t, int16_t>;

// ---------------------------------------------------------------- products

// As the tiles of the gemm family; without a dot product of four, the product needs a register.
constexpr size_t kTileVectors = s::kLanes == 1 ? 4 : 2;
constexpr size_t kTileRows =
    (QUOLL_ISA_REGISTERS - kTileVectors - (s::kHasDotU8S8 ? 1 : 2)) / kTileVectors;
static_assert(kTileRows <= kGemmMaxRows, "Int8Kernels has no room for such a tile");
constexpr size_t kRowsPerPointer = 3;

QUOLL_INLINE s::veci<s::kLanes> dot(s::veci<s::kLanes> sum, s::veci<s::kLanes> a,
                                    s::veci<s::kLanes> b) {
    if constexpr (s::kHasDotU8S8) {
        return s::dot_u8s8(sum, a, b);
    } else {
        return s::dot_s16(sum, a, b);
    }
}

template <size_t vectors, size_t rows>
void int8_tile(const Int8Tile& t) {
    using V = s::veci<s::kLanes>;
    constexpr size_t columns = vectors * s::kLanes;
    constexpr size_t pointers = (rows + kRowsPerPointer - 1) / kRowsPerPointer;
    V sum[rows * vectors];
    s::unroll<rows * vectors>(
        [&](auto i) QUOLL_INLINE_LAMBDA { sum[i] = V::load(t.init + i % vectors * s::kLanes); });
    const ptrdiff_t row = t.a_row;
    const int32_t *const a = t.a, *const panel = t.b;
    const size_t block_k = t.block_k;
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
        do {
            V column[vectors];
            s::unroll<vectors>(
                [&](auto v) QUOLL_INLINE_LAMBDA { column[v] = V::load(b + v() * s::kLanes); });
            s::unroll<rows>([&](auto m) QUOLL_INLINE_LAMBDA {
                const V x = V::set(p[m / kRowsPerPointer][(ptrdiff_t)(m % kRowsPerPointer) * row]);
                s::unroll<vectors>([&](auto v) QUOLL_INLINE_LAMBDA {
                    sum[m * vectors + v] = dot(sum[m * vectors + v], x, column[v]);
                });
            });
            s::unroll<pointers>([&](auto i) QUOLL_INLINE_LAMBDA { p[i]++; });
            b += columns;
        } while (--k);
    } while (++block != end);
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

// ---------------------------------------------------------------- rounding

// Half away from zero, within [-127, 127]; NaN gives 0. Half less one ulp: a sum with it reaches
// the next whole number from one half on, and not from the number before that.
template <size_t N>
QUOLL_INLINE s::veci<N> round_limited(s::vecf<N> x) {
    using V = s::vecf<N>;
    const V finite = select(x == x, x, V::zero());
    const V limited = min(V::set(127.f), max(V::set(-127.f), finite));
    return trunc_int(limited + copysign(V::set(0.49999997f), limited));
}

// affine_int8().
template <size_t N>
QUOLL_INLINE s::veci<N> round_affine(s::vecf<N> x, int zero) {
    using V = s::vecf<N>;
    const V finite = select(x == x, x, V::zero());
    const V low = V::set((float)(-128 - zero)), high = V::set((float)(127 - zero));
    return to_int(min(high, max(low, finite))) + s::veci<N>::set(zero);
}

// f(std::integral_constant<size_t, N>(), i) for steps of a register, then for single values.
template <class F>
QUOLL_INLINE void for_steps(size_t n, F f) {
    size_t i = 0;
    for (; i + s::kLanes <= n; i += s::kLanes) f(std::integral_constant<size_t, s::kLanes>(), i);
    for (; i < n; i++) f(std::integral_constant<size_t, 1>(), i);
}

void whole(const float* in, size_t n, float scale, float* out) {
    for_steps(n, [&](auto lanes, size_t i) QUOLL_INLINE_LAMBDA {
        using V = s::vecf<decltype(lanes)::value>;
        to_float(round_limited(V::load(in + i) * V::set(scale))).store(out + i);
    });
}

void widen(const int8_t* in, size_t n, float* out) {
    for_steps(n, [&](auto lanes, size_t i) QUOLL_INLINE_LAMBDA {
        to_float(s::load_s8<decltype(lanes)::value>(in + i)).store(out + i);
    });
}

// ---------------------------------------------------------------- zero points

template <size_t N>
QUOLL_INLINE s::vecf<N> affine_value(const int8_t* p, s::veci<N> zero, s::vecf<N> scale) {
    return to_float(s::load_s8<N>(p) - zero) * scale;
}

void to_affine(const float* in, size_t n, float scale, int zero, int8_t* out) {
    for_steps(n, [&](auto lanes, size_t i) QUOLL_INLINE_LAMBDA {
        using V = s::vecf<decltype(lanes)::value>;
        s::store_s8(round_affine(V::load(in + i) / V::set(scale), zero), out + i);
    });
}

void from_affine(const int8_t* in, size_t n, float scale, int zero, float* out) {
    for_steps(n, [&](auto lanes, size_t i) QUOLL_INLINE_LAMBDA {
        constexpr size_t N = decltype(lanes)::value;
        affine_value(in + i, s::veci<N>::set(zero), s::vecf<N>::set(scale)).store(out + i);
    });
}

void affine(const Int8Affine& t) {
    for_steps(t.n, [&](auto lanes, size_t i) QUOLL_INLINE_LAMBDA {
        constexpr size_t N = decltype(lanes)::value;
        using V = s::vecf<N>;
        using I = s::veci<N>;
        V x = affine_value(t.a + i, I::set(t.zero_a), V::set(t.scale_a));
        if (t.b) {
            const V y = affine_value(t.b + i, I::set(t.zero_b), V::set(t.scale_b));
            x = t.multiply ? x * y : x + y;
        }
        x = min(V::set(t.high), max(V::set(t.low), x));
        s::store_s8(round_affine(x * V::set(t.top_scale), t.top_zero), t.out + i);
    });
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

void largest(const int8_t* a, const int8_t* b, size_t n, int8_t* out) {
    for (size_t i = 0; i < n; i++) out[i] = a[i] > b[i] ? a[i] : b[i];
}

// ---------------------------------------------------------------- A

template <size_t N>
QUOLL_INLINE s::veci<N> load_whole(const float* p, s::vecf<N> scale) {
    return round_limited(s::vecf<N>::load(p) * scale);
}
template <size_t N>
QUOLL_INLINE s::veci<N> load_whole(const int8_t* p, s::vecf<N>) {
    return s::load_s8<N>(p);
}

template <size_t N>
QUOLL_INLINE void store_elements(s::veci<N> x, Element* p) {
    if constexpr (s::kHasDotU8S8) {
        s::store_u8(x + s::veci<N>::set(kOffset), p);
    } else {
        s::store_small<int16_t>(x, p);
    }
}

template <class T, size_t pack>
void input_packed(const Int8Input& t) {
    const auto scale = s::vecf<pack>::set(t.scale);
    const T* src = (const T*)t.src;
    for (int c = 0; c < t.channels; c += (int)pack, src += t.src_block) {
        Element* dst = (Element*)t.dst + c / t.dst_pack * t.dst_block + c % t.dst_pack;
        for (size_t p = 0; p < t.pixels; p++)
            store_elements<pack>(load_whole<pack>(src + (ptrdiff_t)p * t.src_pixel, scale),
                                 dst + (ptrdiff_t)p * t.dst_pixel);
    }
}

// The words of N pixels from neighbouring channels, `count` of which exist.
template <class T, size_t N>
QUOLL_INLINE s::veci<N> planar_words(const Int8Input& t, const T* src, int count, size_t pixel) {
    using I = s::veci<N>;
    constexpr int bits = 32 / (int)kWordK;
    const auto scale = s::vecf<N>::set(t.scale);
    I word = I::zero();
    s::unroll<kWordK>([&](auto e) QUOLL_INLINE_LAMBDA {
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
        x = (x + I::set(kOffset)) & I::set(s::kHasDotU8S8 ? 0xff : 0xffff);
        word = word | x.template shift_left<(int)e() * bits>();
    });
    return word;
}

template <class T>
void input_planar(const Int8Input& t) {
    for (int c = 0; c < t.channels; c += (int)kWordK) {
        const T* src = (const T*)t.src + c * t.src_block;
        char* dst = (char*)((Element*)t.dst + c / t.dst_pack * t.dst_block + c % t.dst_pack);
        const ptrdiff_t step = t.dst_pixel * (ptrdiff_t)sizeof(Element);
        const int count = t.channels - c;
        for_steps(t.pixels, [&](auto lanes, size_t p) QUOLL_INLINE_LAMBDA {
            constexpr size_t N = decltype(lanes)::value;
            alignas(64) int32_t words[N];
            planar_words<T, N>(t, src, count, p).store(words);
            if (step == (ptrdiff_t)sizeof(int32_t)) {
                memcpy(dst + p * sizeof(int32_t), words, sizeof(words));
            } else {
                for (size_t i = 0; i < N; i++)
                    memcpy(dst + (ptrdiff_t)(p + i) * step, &words[i], sizeof(int32_t));
            }
        });
    }
}

// ---------------------------------------------------------------- C

// What a tile holds: int32 sums, the same as f32, or finished values.
enum class Held { kSums, kWholeSums, kValues };

template <class Out, Held held>
QUOLL_INLINE void store_tile(const Int8Store& t) {
    using V = s::vecf<s::kLanes>;
    constexpr size_t L = s::kLanes;
    const V low = V::set(t.low), high = V::set(t.high), top_scale = V::set(t.top_scale);
    for (size_t n = 0; n < t.used; n += L) {
        const V scale = held != Held::kValues ? V::load(t.scale + n) : V::zero();
        const V bias = held != Held::kValues ? V::load(t.bias + n) : V::zero();
        const char* from = (const char*)t.sums + n * 4;
        const size_t count = s::min_size(L, t.used - n);
        Out* c = (Out*)t.c + t.columns[n];
        for (int m = 0; m < t.rows; m++, from += t.width * 4, c += t.c_row) {
            V y;
            if constexpr (held == Held::kSums) {
                y = to_float(s::veci<L>::load((const int32_t*)from));
            } else {
                y = V::load((const float*)from);
            }
            if constexpr (held != Held::kValues) y = min(high, max(low, y * scale + bias));
            alignas(64) Out part[L];
            Out* to = t.whole ? c : part;
            if constexpr (sizeof(Out) == 1) {
                const V x = y * top_scale;
                s::store_s8(t.affine ? round_affine(x, t.top_zero) : round_limited(x), to);
            } else {
                y.store(to);
            }
            if (!t.whole)
                for (size_t i = 0; i < count; i++) c[t.columns[n + i] - t.columns[n]] = part[i];
        }
    }
}

void finish_f32(const Int8Store& t) { store_tile<float, Held::kSums>(t); }
void finish_s8(const Int8Store& t) { store_tile<int8_t, Held::kSums>(t); }
void scale_f32(const Int8Store& t) { store_tile<float, Held::kWholeSums>(t); }
void scale_s8(const Int8Store& t) { store_tile<int8_t, Held::kWholeSums>(t); }
void store_f32(const Int8Store& t) { store_tile<float, Held::kValues>(t); }
void store_s8(const Int8Store& t) { store_tile<int8_t, Held::kValues>(t); }

// ---------------------------------------------------------------- weights in blocks

// Words from what is read to what is fetched.
constexpr size_t kAhead = 1024;

template <int bits, size_t rows>
void block_tile(const BlockTile& t) {
    using V = s::vecf<s::kLanes>;
    using I = s::veci<s::kLanes>;
    constexpr size_t values = 32 / bits;
    constexpr size_t chains = 4 / rows;  // running sums of a row, for the latency of fma
    V total[rows];
    s::unroll<rows>([&](auto m) QUOLL_INLINE_LAMBDA { total[m] = V::zero(); });
    const float* a[rows];
    s::unroll<rows>([&](auto m) QUOLL_INLINE_LAMBDA { a[m] = t.a + (ptrdiff_t)m() * t.a_row; });
    const float *scale = t.scale, *offset = t.offset, *a_sum = t.a_sum;
    const int32_t* b = (const int32_t*)t.b;
    for (size_t left = t.k; left > 0; scale += s::kLanes) {
        size_t words = s::min_size(left, t.block) / values;
        left -= words * values;
        V sum[rows * chains];
        s::unroll<rows * chains>([&](auto i) QUOLL_INLINE_LAMBDA { sum[i] = V::zero(); });
        do {
            const I word = I::load(b);
            // One stream does not saturate the memory; a prefetch does no harm behind the end.
            if (rows == 1) __builtin_prefetch(b + kAhead);
            s::unroll<values>([&](auto i) QUOLL_INLINE_LAMBDA {
                const V x = s::signed_part<bits, (int)decltype(i)::value>(word);
                s::unroll<rows>([&](auto m) QUOLL_INLINE_LAMBDA {
                    const V y = V::set(a[m][i]);
                    sum[m * chains + i % chains] = fma(y, x, sum[m * chains + i % chains]);
                });
            });
            b += s::kLanes;
            s::unroll<rows>([&](auto m) QUOLL_INLINE_LAMBDA { a[m] += values; });
        } while (--words);
        const V factor = V::load(scale);
        s::unroll<rows>([&](auto m) QUOLL_INLINE_LAMBDA {
            V all = sum[m * chains];
            s::unroll<chains - 1>([&](auto i)
                                      QUOLL_INLINE_LAMBDA { all = all + sum[m * chains + i + 1]; });
            total[m] = fma(all, factor, total[m]);
        });
        if (offset) {
            const V more = V::load(offset);
            s::unroll<rows>([&](auto m) QUOLL_INLINE_LAMBDA {
                total[m] = fma(V::set(a_sum[(ptrdiff_t)m() * t.a_sum_row]), more, total[m]);
            });
            offset += s::kLanes, a_sum++;
        }
    }
    s::unroll<rows>(
        [&](auto m) QUOLL_INLINE_LAMBDA { total[m].store(t.out + (ptrdiff_t)m() * t.out_row); });
}

template <int bits>
void block_unpack(const BlockTile& t) {
    constexpr size_t values = 32 / bits;
    const int32_t* b = (const int32_t*)t.b;
    float* out = t.out;
    for (size_t k = 0; k < t.k; k += values, b += s::kLanes) {
        using V = s::vecf<s::kLanes>;
        const size_t at = k / t.block * s::kLanes;
        const V factor = V::load(t.scale + at);
        const V offset = t.offset ? V::load(t.offset + at) : V::zero();
        const auto word = s::veci<s::kLanes>::load(b);
        s::unroll<values>([&](auto i) QUOLL_INLINE_LAMBDA {
            fma(s::signed_part<bits, (int)decltype(i)::value>(word), factor, offset).store(out);
            out += t.out_row;
        });
    }
}

// kind: 4 for f16, 8 for bf16, the places of these in the table.
template <int kind>
QUOLL_INLINE s::vecf<s::kLanes> load_half(const uint16_t* p) {
    if constexpr (kind == 4) {
        return s::load_f16<s::kLanes>(p);
    } else {
        return s::load_bf16<s::kLanes>(p);
    }
}

template <int kind, size_t rows>
void half_tile(const BlockTile& t) {
    using V = s::vecf<s::kLanes>;
    constexpr size_t step = 8, chains = 4 / rows;
    const float* a[rows];
    s::unroll<rows>([&](auto m) QUOLL_INLINE_LAMBDA { a[m] = t.a + (ptrdiff_t)m() * t.a_row; });
    const uint16_t* b = (const uint16_t*)t.b;
    V sum[rows * chains];
    s::unroll<rows * chains>([&](auto i) QUOLL_INLINE_LAMBDA { sum[i] = V::zero(); });
    for (size_t k = 0; k < t.k; k += step, b += step * s::kLanes) {
        s::unroll<step>([&](auto i) QUOLL_INLINE_LAMBDA {
            if (rows == 1 && i() * s::kLanes % 32 == 0)
                __builtin_prefetch(b + i() * s::kLanes + 2 * kAhead);
            const V x = load_half<kind>(b + i() * s::kLanes);
            s::unroll<rows>([&](auto m) QUOLL_INLINE_LAMBDA {
                sum[m * chains + i % chains] =
                    fma(V::set(a[m][i]), x, sum[m * chains + i % chains]);
            });
        });
        s::unroll<rows>([&](auto m) QUOLL_INLINE_LAMBDA { a[m] += step; });
    }
    s::unroll<rows>([&](auto m) QUOLL_INLINE_LAMBDA {
        V all = sum[m * chains];
        s::unroll<chains - 1>([&](auto i)
                                  QUOLL_INLINE_LAMBDA { all = all + sum[m * chains + i + 1]; });
        all.store(t.out + (ptrdiff_t)m() * t.out_row);
    });
}

template <int kind>
void half_unpack(const BlockTile& t) {
    const uint16_t* b = (const uint16_t*)t.b;
    for (size_t k = 0; k < t.k; k++, b += s::kLanes)
        load_half<kind>(b).store(t.out + (ptrdiff_t)k * t.out_row);
}

}  // namespace
}  // namespace quoll
