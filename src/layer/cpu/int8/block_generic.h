// Of the int8 family: products with weights in blocks (BlockTile), and with weights of 16 bits,
// which come in the same panels.
#pragma once

#include "layer/cpu/int8/generic.h"

namespace quoll {
namespace {

// k-groups from what is read to what is fetched.
constexpr size_t kAhead = 1024;

// Of the columns, for the block before which so many values of the scales are.
QUOLL_INLINE s::vecf<s::kLanes> scales_at(const BlockTile& t, size_t at) {
    return t.half_scale ? s::load_f16<s::kLanes>(t.half_scale + at)
                        : s::vecf<s::kLanes>::load(t.scale + at);
}

// From a k-group, or the scales of a block, to the next: panels lie in pairs.
constexpr size_t kPair = 2 * s::kLanes;

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
    const float *offset = t.offset, *a_sum = t.a_sum;
    const int32_t* b = (const int32_t*)t.b;
    size_t scale = 0;
    for (size_t left = t.k; left > 0; scale += kPair) {
        size_t k_groups = s::min_size(left, t.block) / values;
        left -= k_groups * values;
        V sum[rows * chains];
        s::unroll<rows * chains>([&](auto i) QUOLL_INLINE_LAMBDA { sum[i] = V::zero(); });
        do {
            const I k_group_bits = I::load(b);
            // One stream does not saturate the memory; a prefetch does no harm behind the end.
            if (rows == 1) __builtin_prefetch(b + kAhead);
            s::unroll<values>([&](auto i) QUOLL_INLINE_LAMBDA {
                const V x = s::signed_part<bits, (int)decltype(i)::value>(k_group_bits);
                s::unroll<rows>([&](auto m) QUOLL_INLINE_LAMBDA {
                    const V y = V::set(a[m][i]);
                    sum[m * chains + i % chains] = fma(y, x, sum[m * chains + i % chains]);
                });
            });
            b += kPair;
            s::unroll<rows>([&](auto m) QUOLL_INLINE_LAMBDA { a[m] += values; });
        } while (--k_groups);
        const V factor = scales_at(t, scale);
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
            offset += kPair, a_sum++;
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
    for (size_t k = 0; k < t.k; k += values, b += kPair) {
        using V = s::vecf<s::kLanes>;
        const size_t at = k / t.block * kPair;
        const V factor = scales_at(t, at);
        const V offset = t.offset ? V::load(t.offset + at) : V::zero();
        const auto k_group_bits = s::veci<s::kLanes>::load(b);
        s::unroll<values>([&](auto i) QUOLL_INLINE_LAMBDA {
            fma(s::signed_part<bits, (int)decltype(i)::value>(k_group_bits), factor, offset)
                .store(out);
            out += t.out_row;
        });
    }
}

// What is added to the weights of a k-group, so that none has a sign, for processors that multiply
// bytes with a sign by such without (or by either sort, below 128).
template <int bits>
constexpr int kWeightOffset = bits == 4 ? 8 : kOffset;

// As block_tile, by integers (BlockDigits): three products of bytes stand for one of f32.
template <int bits, size_t rows>
void block_dot_tile(const BlockTile& t) {
    using V = s::vecf<s::kLanes>;
    using I = s::veci<s::kLanes>;
    constexpr size_t words = bits == 4 ? 2 : 1, values = 32 / bits, digits = 3;
    constexpr int kEach = 0x01010101;
    constexpr unsigned kTurned = (bits == 4 ? 0x88u : kWeightOffset<bits>)*kEach;
    V total[rows];
    s::unroll<rows>([&](auto m) QUOLL_INLINE_LAMBDA { total[m] = V::zero(); });
    const int8_t* a[rows];
    s::unroll<rows>([&](auto m) QUOLL_INLINE_LAMBDA { a[m] = t.digits[m].digits; });
    const float* offset = t.offset;
    const int32_t* b = (const int32_t*)t.b;
    size_t scale = 0, at = 0;  // block
    for (size_t left = t.k; left > 0; scale += kPair, at++) {
        size_t k_groups = s::min_size(left, t.block) / values;
        left -= k_groups * values;
        I sum[rows * digits];
        s::unroll<rows * digits>([&](auto i) QUOLL_INLINE_LAMBDA {
            sum[i] = I::set(t.digits[i() / digits].blocks[at].start[i() % digits]);
        });
        do {
            const I bytes = I::load(b) ^ I::set((int)kTurned);
            I w[2] = {bytes, bytes};
            if constexpr (bits == 4) {
                w[0] = bytes & I::set(15 * kEach);
                w[1] = bytes.template shift_right<4>() & I::set(15 * kEach);
            }
            s::unroll<rows * digits * words>([&](auto i) QUOLL_INLINE_LAMBDA {
                constexpr size_t m = i() / (digits * words), d = i() / words % digits;
                constexpr size_t word = i() % words;
                int32_t x;
                __builtin_memcpy(&x, a[m] + d * t.k + word * 4, sizeof(x));
                I& to = sum[m * digits + d];
                to = s::dot_of_four(to, w[word], I::set(x));
            });
            b += kPair;
            s::unroll<rows>([&](auto m) QUOLL_INLINE_LAMBDA { a[m] += values; });
        } while (--k_groups);
        const V factor = scales_at(t, scale);
        s::unroll<rows>([&](auto m) QUOLL_INLINE_LAMBDA {
            V part[digits];
            s::unroll<digits>(
                [&](auto d) QUOLL_INLINE_LAMBDA { part[d] = s::to_float(sum[m * digits + d]); });
            const V all = fma(part[0], V::set(65536.f), fma(part[1], V::set(256.f), part[2]));
            total[m] = fma(all * V::set(t.digits[m].blocks[at].unit), factor, total[m]);
        });
        if (offset) {
            const V more = V::load(offset);
            s::unroll<rows>([&](auto m) QUOLL_INLINE_LAMBDA {
                const float a_sum = t.a_sum[(ptrdiff_t)m() * t.a_sum_row + (ptrdiff_t)at];
                total[m] = fma(V::set(a_sum), more, total[m]);
            });
            offset += kPair;
        }
    }
    s::unroll<rows>(
        [&](auto m) QUOLL_INLINE_LAMBDA { total[m].store(t.out + (ptrdiff_t)m() * t.out_row); });
}

// Without dot products of four bytes, those of weights of 4 bits, 0 to 15, are added up in 16 bits:
// as many as fit, those of kPairGroups k-groups.
template <int bits>
constexpr bool kSumsPairs = !s::kHasDotOfFour && s::kHasBytePairs && bits == 4;
constexpr size_t kPairGroups = 4;

// first: `sum` has nothing yet where pairs are added up.
template <int bits, bool first>
QUOLL_INLINE void add_dot(s::veci<s::kLanes>& sum, s::veci<s::kLanes> w, s::veci<s::kLanes> x) {
    if constexpr (!kSumsPairs<bits>) {
        sum = s::dot_of_four(sum, w, x);
    } else if constexpr (first) {
        sum = s::multiply_byte_pairs(w, x);
    } else {
        sum = s::add_byte_pairs(sum, w, x);
    }
}

// sum[i] = start(i) and what f(to, first), called for each of so many k-groups, adds to to[i]: to
// the sum, or to sums of pairs that go to it before they overflow and are set by the first. once:
// the first k-groups have code of their own, which is faster where the sums fill the registers.
template <int bits, size_t count, bool once, class S, class F>
QUOLL_INLINE void add_all(size_t k_groups, const S& start, s::veci<s::kLanes>* sum, const F& f) {
    using I = s::veci<s::kLanes>;
    const auto begin = [&]() QUOLL_INLINE_LAMBDA {
        s::unroll<count>([&](auto i) QUOLL_INLINE_LAMBDA { sum[i] = start(i()); });
    };
    if constexpr (!kSumsPairs<bits>) {
        begin();
        do f(sum, std::false_type());
        while (--k_groups);
        return;
    }
    const auto add_pairs = [&](const auto& to) QUOLL_INLINE_LAMBDA {
        I pairs[count];
        size_t some = s::min_size(k_groups, kPairGroups);
        k_groups -= some;
        f(pairs, std::true_type());
        while (--some) f(pairs, std::false_type());
        s::unroll<count>([&](auto i) QUOLL_INLINE_LAMBDA {
            sum[i] = s::dot_s16(to(i()), pairs[i], I::set(0x10001));
        });
    };
    const auto so_far = [&](size_t i) QUOLL_INLINE_LAMBDA { return sum[i]; };
    if constexpr (once) {
        add_pairs(start);
        while (k_groups) add_pairs(so_far);
    } else {
        begin();
        do add_pairs(so_far);
        while (k_groups);
    }
}

// As block_dot_tile for one row and two panels, which take every value that was loaded twice, with
// so many of its digits.
template <int bits, size_t digits>
void block_row_tile(const BlockTile& t) {
    using V = s::vecf<s::kLanes>;
    using I = s::veci<s::kLanes>;
    constexpr size_t words = bits == 4 ? 2 : 1, values = 32 / bits, panels = 2;
    constexpr int kEach = 0x01010101;
    constexpr unsigned kTurned = (bits == 4 ? 0x88u : kWeightOffset<bits>)*kEach;
    V total[panels] = {V::zero(), V::zero()};
    const int8_t* a = t.digits->digits;
    const BlockDigits::Block* block = t.digits->blocks;
    const float *offset = t.offset, *a_sum = t.a_sum;
    const int32_t* b = (const int32_t*)t.b;
    size_t scale = 0;
    for (size_t left = t.k; left > 0; scale += kPair, block++) {
        size_t k_groups = s::min_size(left, t.block) / values;
        left -= k_groups * values;
        I sum[panels * digits];
        const auto start = [&](size_t i)
                               QUOLL_INLINE_LAMBDA { return I::set(block->start[i / panels]); };
        const auto add = [&](I* to, auto first) QUOLL_INLINE_LAMBDA {
            I w[panels * words];
            s::unroll<panels>([&](auto p) QUOLL_INLINE_LAMBDA {
                const int32_t* from = b + p() * s::kLanes;
                const I bytes = I::load(from) ^ I::set((int)kTurned);
                if (p() * s::kLanes % 16 == 0) __builtin_prefetch(from + kAhead);
                if constexpr (bits == 4) {
                    w[p * words] = bytes & I::set(15 * kEach);
                    w[p * words + 1] = bytes.template shift_right<4>() & I::set(15 * kEach);
                } else {
                    w[p] = bytes;
                }
            });
            s::unroll<digits * words>([&](auto i) QUOLL_INLINE_LAMBDA {
                constexpr size_t d = i() / words, word = i() % words;
                int32_t x;
                __builtin_memcpy(&x, a + d * t.k + word * 4, sizeof(x));
                const I values_of_a = I::set(x);
                s::unroll<panels>([&](auto p) QUOLL_INLINE_LAMBDA {
                    add_dot<bits, decltype(first)::value && word == 0>(
                        to[d * panels + p], w[p * words + word], values_of_a);
                });
            });
            b += kPair, a += values;
        };
        add_all<bits, panels * digits, false>(k_groups, start, sum, add);
        const V unit = V::set(block->unit);
        s::unroll<panels>([&](auto p) QUOLL_INLINE_LAMBDA {
            V all = s::to_float(sum[p]);
            s::unroll<digits - 1>([&](auto d) QUOLL_INLINE_LAMBDA {
                all = fma(all, V::set(256.f), s::to_float(sum[(d + 1) * panels + p]));
            });
            const V factor = scales_at(t, scale + p() * s::kLanes);
            total[p] = fma(all * unit, factor, total[p]);
            if (offset) total[p] = fma(V::set(*a_sum), V::load(offset + p() * s::kLanes), total[p]);
        });
        if (offset) offset += kPair, a_sum++;
    }
    s::unroll<panels>([&](auto p) QUOLL_INLINE_LAMBDA { total[p].store(t.out + p() * s::kLanes); });
}

template <int bits, size_t digits>
constexpr BlockTileKernel block_row() {
    if constexpr (s::kHasDotOfFour || kSumsPairs<bits>) {
        return &block_row_tile<bits, digits>;
    } else {
        return nullptr;
    }
}

// As block_dot_tile for kByteRows rows of bytes (ByteRows): their sums all stay in registers.
constexpr size_t kByteRows = QUOLL_ISA_REGISTERS >= 32 ? 12 : 4;

template <int bits>
void block_bytes_tile(const BlockTile& t) {
    using V = s::vecf<s::kLanes>;
    using I = s::veci<s::kLanes>;
    constexpr size_t words = bits == 4 ? 2 : 1, values = 32 / bits;
    constexpr int kEach = 0x01010101;
    constexpr unsigned kTurned = (bits == 4 ? 0x88u : kWeightOffset<bits>)*kEach;
    V total[kByteRows];
    s::unroll<kByteRows>([&](auto m) QUOLL_INLINE_LAMBDA { total[m] = V::zero(); });
    const int8_t* a = t.bytes->values;
    const ByteRows::Block* block = t.bytes->blocks;
    const float *offset = t.offset, *a_sum = t.a_sum;
    const int32_t* b = (const int32_t*)t.b;
    size_t scale = 0;
    for (size_t left = t.k; left > 0; scale += kPair, block += kByteRows) {
        size_t k_groups = s::min_size(left, t.block) / values;
        left -= k_groups * values;
        I sum[kByteRows];
        const auto start = [&](size_t m) QUOLL_INLINE_LAMBDA { return I::set(block[m].start); };
        const auto add = [&](I* to, auto first) QUOLL_INLINE_LAMBDA {
            const I bytes = I::load(b) ^ I::set((int)kTurned);
            I w[2] = {bytes, bytes};
            if constexpr (bits == 4) {
                w[0] = bytes & I::set(15 * kEach);
                w[1] = bytes.template shift_right<4>() & I::set(15 * kEach);
            }
            s::unroll<words * kByteRows>([&](auto i) QUOLL_INLINE_LAMBDA {
                int32_t x;
                __builtin_memcpy(&x, a + i() * sizeof(x), sizeof(x));
                add_dot<bits, decltype(first)::value && i() / kByteRows == 0>(
                    to[i % kByteRows], w[i / kByteRows], I::set(x));
            });
            b += kPair, a += words * kByteRows * 4;
        };
        add_all<bits, kByteRows, true>(k_groups, start, sum, add);
        const V factor = scales_at(t, scale);
        s::unroll<kByteRows>([&](auto m) QUOLL_INLINE_LAMBDA {
            total[m] = fma(s::to_float(sum[m]) * V::set(block[m()].unit), factor, total[m]);
        });
        if (offset) {
            const V more = V::load(offset);
            s::unroll<kByteRows>([&](auto m) QUOLL_INLINE_LAMBDA {
                total[m] = fma(V::set(a_sum[(ptrdiff_t)m() * t.a_sum_row]), more, total[m]);
            });
            offset += kPair, a_sum++;
        }
    }
    s::unroll<kByteRows>(
        [&](auto m) QUOLL_INLINE_LAMBDA { total[m].store(t.out + (ptrdiff_t)m() * t.out_row); });
}

template <int bits>
constexpr BlockTileKernel block_bytes() {
    if constexpr (s::kHasDotOfFour || kSumsPairs<bits>) {
        return &block_bytes_tile<bits>;
    } else {
        return nullptr;
    }
}

template <int bits, size_t rows>
constexpr BlockTileKernel block_dot() {
    if constexpr (s::kHasDotOfFour) {
        return &block_dot_tile<bits, rows>;
    } else {
        return nullptr;
    }
}

// Plain loops, which the compiler vectorises.
QUOLL_INLINE float float_of_bits(uint32_t bits) {
    float x;
    __builtin_memcpy(&x, &bits, sizeof(x));
    return x;
}
QUOLL_INLINE uint32_t bits_of_float(float x) {
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof(bits));
    return bits;
}

// Numbers up to 2^22 in size stand in the lower bits of what 1.5 * 2^23 is added to.
QUOLL_INLINE int32_t rounded(float x) {
    return (int32_t)(bits_of_float(x + 12582912.f) - 0x4b400000u);
}

// The digits of count values, of up to 23 bits; their sums at sums[3].
QUOLL_INLINE void split_digits(const float* a, size_t count, float factor, int8_t* high,
                               int8_t* middle, int8_t* low, int32_t* sums) {
    int32_t sum0 = 0, sum1 = 0, sum2 = 0;
    for (size_t i = 0; i < count; i++) {
        const int32_t x = rounded(a[i] * factor);
        const int32_t last = (int8_t)(uint8_t)x, rest = (x - last) >> 8;
        const int32_t mid = (int8_t)(uint8_t)rest, first = (rest - mid) >> 8;
        low[i] = (int8_t)last, middle[i] = (int8_t)mid, high[i] = (int8_t)first;
        sum0 += first, sum1 += mid, sum2 += last;
    }
    sums[0] = sum0, sums[1] = sum1, sums[2] = sum2;
}

// Of up to 15 bits.
QUOLL_INLINE void split_two_digits(const float* a, size_t count, float factor, int8_t* high,
                                   int8_t* low, int32_t* sums) {
    int32_t sum0 = 0, sum1 = 0;
    for (size_t i = 0; i < count; i++) {
        const int32_t x = rounded(a[i] * factor);
        const int32_t last = (int8_t)(uint8_t)x, first = (x - last) >> 8;
        low[i] = (int8_t)last, high[i] = (int8_t)first;
        sum0 += first, sum1 += last;
    }
    sums[0] = sum0, sums[1] = sum1;
}

// The bits of the largest size.
QUOLL_INLINE uint32_t largest_bits(const float* a, size_t count) {
    uint32_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t size = bits_of_float(a[i]) & 0x7fffffffu;
        largest = size > largest ? size : largest;
    }
    return largest;
}

bool block_digits(const float* a, size_t k, size_t block, int bits, int digits,
                  const BlockDigits& out) {
    BlockDigits::Block* to = out.blocks;
    const int offset = bits == 4 ? kWeightOffset<4> : kWeightOffset<8>;
    for (size_t at = 0; at < k; at += block, to++) {
        const size_t count = s::min_size(k - at, block);
        const uint32_t largest = largest_bits(a + at, count);
        if (largest >= 0x7f800000u) return false;
        // 2^(22 - e) or 2^(14 - e), where 2^e is above the largest; smaller numbers than 2^-104
        // lose digits.
        const uint32_t least = 23, places = digits == 3 ? 21 : 13;
        const uint32_t exponent = largest >> 23 > least ? largest >> 23 : least;  // 127 + e - 1
        const float factor = float_of_bits((127 + 127 + places - exponent) << 23);
        to->unit = float_of_bits(exponent << 23) * (digits == 3 ? 0x1p-21f : 0x1p-13f);
        int8_t* const high = out.digits + at;
        if (digits == 3)
            split_digits(a + at, count, factor, high, high + k, high + 2 * k, to->start);
        else
            split_two_digits(a + at, count, factor, high, high + k, to->start);
        for (int i = 0; i < digits; i++) to->start[i] *= -offset;
    }
    return true;
}

// Of value k of the first row in ByteRows::values. `beside` is a power of two: no division.
QUOLL_INLINE size_t place_of_bytes(size_t k, size_t beside) {
    const size_t part = k & (beside - 1);
    return (k - part) * kByteRows + part;
}

// Bytes of count values from `first` on, `beside` of them of kByteRows rows. Returns their sum.
QUOLL_INLINE int32_t round_to_bytes(const float* a, size_t first, size_t count, float factor,
                                    int8_t* out, size_t beside) {
    int32_t sum = 0;
    for (size_t i = 0; i < count; i += 4) {
        uint32_t word = 0;
        for (size_t j = 0; j < 4; j++) {
            const int32_t x = rounded(a[first + i + j] * factor);
            word |= (uint32_t)(uint8_t)x << 8 * j;
            sum += x;
        }
        __builtin_memcpy(out + place_of_bytes(first + i, beside), &word, sizeof(word));
    }
    return sum;
}

bool block_byte_rows(const float* a, ptrdiff_t a_row, size_t rows, size_t k, size_t block, int bits,
                     const ByteRows& out) {
    const int offset = bits == 4 ? kWeightOffset<4> : kWeightOffset<8>;
    for (size_t m = 0; m < kByteRows; m++) {
        ByteRows::Block* to = out.blocks + m;
        int8_t* values = out.values + m * out.beside;
        const float* row = a + (ptrdiff_t)m * a_row;
        for (size_t at = 0; at < k; at += block, to += kByteRows) {
            const size_t count = s::min_size(k - at, block);
            *to = {0.f, 0};
            const uint32_t largest = m < rows ? largest_bits(row + at, count) : 0;
            if (largest >= 0x7f800000u) return false;
            // The unit of smaller ones has no inverse in f32.
            const float most = float_of_bits(largest);
            if (most < 0x1p-100f) {
                for (size_t i = 0; i < count; i += 4)
                    __builtin_memset(values + place_of_bytes(at + i, out.beside), 0, 4);
                continue;
            }
            const int32_t sum = round_to_bytes(row, at, count, 127.f / most, values, out.beside);
            *to = {most / 127.f, -offset * sum};
        }
    }
    return true;
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
