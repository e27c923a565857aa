// Micro-kernels of the gemm family: an outer-product tile held in registers.
#pragma once

#include "layer/cpu/common/few_kernels.h"
#include "layer/cpu/common/panel.h"
#include "layer/cpu/gemm/gemm.h"
#include "simd/vec.h"

namespace quoll {
namespace {

namespace s = simd;

// The tile's accumulators, one row of B and one value of A share the registers: 14 x 2 vectors on
// AVX-512, 6 x 2 on AVX2 and SSE4, 6 x 4 on NEON.
constexpr size_t kTileRows = (QUOLL_ISA_REGISTERS - kTileVectors - 1) / kTileVectors;
static_assert(kTileRows <= kGemmMaxRows, "GemmKernels has no room for such a tile");

// Rows of A are addressed as one pointer for three rows, which on x86 are p, p + row, p + 2 row.
constexpr size_t kRowsPerPointer = 3;

// Channels of a 1x1 convolution come in blocks far apart, a few lines of the cache each for a tile,
// which no processor foresees. Two rows of a block are a line.
constexpr bool kFetchesNextTile = s::kLanes == 8 && QUOLL_ISA_REGISTERS == 16;

// A section of a panel does not fit in the first-level cache: its rows are fetched some rows ahead.
// So are the rows of A's next block, where there are so many blocks at equal distances; fewer stay
// in that cache from panel to panel.
constexpr bool kFetchesPanel = s::kLanes == 16;
constexpr size_t kRowsAhead = 12, kFetchedBlocks = 8;

// p: of every kRowsPerPointer rows.
template <size_t rows>
QUOLL_INLINE void fetch_block(const float* const* p, ptrdiff_t row, ptrdiff_t next) {
    s::unroll<rows>([&](auto m) QUOLL_INLINE_LAMBDA {
        __builtin_prefetch(p[m / kRowsPerPointer] + (ptrdiff_t)(m % kRowsPerPointer) * row + next,
                           0, 3);
    });
}

// Not inlined: in the loop over tiles it takes 1.4 times as long (gcc 12, AVX-512).
template <size_t vectors, size_t rows>
__attribute__((noinline)) void gemm_one_tile(const GemmTile& t) {
    using V = s::vecf<s::kLanes>;
    constexpr size_t columns = vectors * s::kLanes;
    constexpr size_t pointers = (rows + kRowsPerPointer - 1) / kRowsPerPointer;
    V sum[rows * vectors];
    {
        const float* init = t.init;
        const ptrdiff_t row = t.init_row, vector = t.init_vector;
        s::unroll<rows>([&](auto m) QUOLL_INLINE_LAMBDA {
            s::unroll<vectors>([&](auto v) QUOLL_INLINE_LAMBDA {
                sum[m * vectors + v] =
                    V::load(init + (ptrdiff_t)m() * row + (ptrdiff_t)v() * vector);
            });
        });
    }
    const ptrdiff_t row = t.a_row, step = t.a_k;
    const float* const a = t.a;
    const float* const panel = t.b;
    const ptrdiff_t next_tile = t.a_tile;
    const size_t block_k = t.block_k;
    const ptrdiff_t next_block = t.num_blocks >= kFetchedBlocks ? t.block_step : 0;
    const char* fetched = t.fetch.from ? t.fetch.from : (const char*)t.b;  // no branch in the loop
    const size_t fetched_step = t.fetch.from ? t.fetch.step : 0;
    const GemmBlock* block = t.blocks;
    const GemmBlock* const end = block + t.num_blocks;
    // do-while: with a test before the loops gcc moves the accumulators at their borders.
    do {
        const float* p[pointers];
        p[0] = a + block->a;
        s::unroll<pointers - 1>([&](auto i) QUOLL_INLINE_LAMBDA {
            p[i + 1] = p[i] + (ptrdiff_t)kRowsPerPointer * row;
        });
        if constexpr (kFetchesNextTile && vectors > 1 && rows == kTileRows) {
            s::unroll<rows / 2>([&](auto m) QUOLL_INLINE_LAMBDA {
                __builtin_prefetch(p[0] + next_tile + (ptrdiff_t)(2 * m()) * row, 0, 2);
            });
        }
        if constexpr (kFetchesPanel && vectors > 1 && rows > kTileRows / 2) {
            if (next_block) fetch_block<rows>(p, row, next_block);
        }
        const float* b = panel + block->k * columns;
        size_t k = block_k;
        do {
            V column[vectors];
            s::unroll<vectors>(
                [&](auto v) QUOLL_INLINE_LAMBDA { column[v] = V::load(b + v() * s::kLanes); });
            s::unroll<rows>([&](auto m) QUOLL_INLINE_LAMBDA {
                const V x = V::set(p[m / kRowsPerPointer][(ptrdiff_t)(m % kRowsPerPointer) * row]);
                s::unroll<vectors>([&](auto v) QUOLL_INLINE_LAMBDA {
                    sum[m * vectors + v] = fma(x, column[v], sum[m * vectors + v]);
                });
            });
            s::unroll<pointers>([&](auto i) QUOLL_INLINE_LAMBDA { p[i] += step; });
            b += columns;
            if constexpr (vectors > 1) {
                __builtin_prefetch(fetched, 0, 2);
                fetched += fetched_step;
                if constexpr (kFetchesPanel && rows > kTileRows / 2) {
                    s::unroll<vectors>([&](auto v) QUOLL_INLINE_LAMBDA {
                        __builtin_prefetch(b + kRowsAhead * columns + v() * s::kLanes, 0, 3);
                    });
                }
            }
        } while (--k);
    } while (++block != end);
    const V low = V::set(t.low), high = V::set(t.high);
    float* const c = t.c;
    const ptrdiff_t c_row = t.c_row, c_vector = t.c_vector;
    s::unroll<rows>([&](auto m) QUOLL_INLINE_LAMBDA {
        s::unroll<vectors>([&](auto v) QUOLL_INLINE_LAMBDA {
            min(high, max(low, sum[m * vectors + v]))
                .store(c + (ptrdiff_t)m() * c_row + (ptrdiff_t)v() * c_vector);
        });
    });
}

template <size_t vectors, size_t rows>
void gemm_tile(const GemmTile& t) {
    if (t.more == 0) return gemm_one_tile<vectors, rows>(t);
    GemmTile tile = t;
    for (;; tile.more--) {
        gemm_one_tile<vectors, rows>(tile);
        if (tile.more == 0) break;
        tile.a += t.a_tile, tile.init += t.init_tile, tile.c += t.c_tile;
        if (t.fetch.from) tile.fetch.from += t.fetch.step * t.num_blocks * t.block_k;
    }
}

// On aarch64 assembly (kernel_rows.inc) takes the place of these tiles, which tests compare with
// it.
#if defined(__aarch64__)
constexpr bool kTilesByHand = kFewKernels && s::kLanes > 1;
#else
constexpr bool kTilesByHand = false;
#endif

template <size_t vectors, size_t rows>
constexpr GemmTileKernel tile_or_null() {
    if constexpr (vectors <= kTileVectors && rows <= kTileRows && !kTilesByHand) {
        return &gemm_tile<vectors, rows>;
    } else {
        return nullptr;
    }
}

void pack_row_major(const float* src, size_t ld, size_t k, size_t count, size_t columns,
                    float* panel) {
    using V = s::vecf<s::kLanes>;
    for (; k; k--, src += ld) {
        size_t n = 0;
        for (; n + s::kLanes <= count; n += s::kLanes, panel += s::kLanes)
            V::load(src + n).store(panel);
        for (; n < columns; n += s::kLanes, panel += s::kLanes)
            V::load_n(src + n, n < count ? count - n : 0).store(panel);
    }
}

// L columns of L values each, from src[n * ld + k] to dst[k * columns + n]; columns from `count` on
// are zero.
QUOLL_INLINE void pack_square(const float* src, size_t ld, size_t k, size_t count, size_t columns,
                              float* dst) {
    constexpr size_t L = s::kLanes;
    using V = s::vecf<L>;
    V r[L];
    for (size_t n = 0; n < L; n++) r[n] = n < count ? V::load_n(src + n * ld, k) : V::zero();
    s::transpose(r);
    for (size_t i = 0; i < s::min_size(k, L); i++) r[i].store(dst + i * columns);
}

void pack_column_major(const float* src, size_t ld, size_t k, size_t count, size_t columns,
                       float* panel) {
    constexpr size_t L = s::kLanes;
    for (size_t k0 = 0; k0 < k; k0 += L) {
        for (size_t n = 0; n < columns; n += L) {
            const size_t left = n < count ? count - n : 0;
            pack_square(left ? src + n * ld + k0 : src, ld, k - k0, left, columns,
                        panel + k0 * columns + n);
        }
    }
}

// `group` panels at once, each with two running sums per vector to hide the latency of fma.
template <size_t group>
QUOLL_INLINE void row_times_group(const float* a, ptrdiff_t a_k, size_t k, const float* b,
                                  size_t count, const float* init, float* out, float low,
                                  float high) {
    using V = s::vecf<s::kLanes>;
    constexpr size_t columns = kTileVectors * s::kLanes;
    constexpr size_t vectors = group * kTileVectors;
    const size_t panel = k * columns;
    V even[vectors], odd[vectors];
    s::unroll<vectors>([&](auto v) QUOLL_INLINE_LAMBDA {
        const size_t n = v() * s::kLanes;
        even[v] = V::load_n(init + n, n < count ? count - n : 0);
        odd[v] = V::zero();
    });
    const auto add = [&](V* sum, float x, const float* row) QUOLL_INLINE_LAMBDA {
        s::unroll<vectors>([&](auto v) QUOLL_INLINE_LAMBDA {
            const float* p = row + v() / kTileVectors * panel + v() % kTileVectors * s::kLanes;
            // Two kilobytes ahead: weights that are read once come 1.5 times as fast. It does no
            // harm behind the end.
            if (v() % kTileVectors * s::kLanes % 16 == 0) __builtin_prefetch(p + 512);
            sum[v] = fma(V::set(x), V::load(p), sum[v]);
        });
    };
    size_t i = 0;
    for (; i + 2 <= k; i += 2, b += 2 * columns) {
        add(even, a[(ptrdiff_t)i * a_k], b);
        add(odd, a[(ptrdiff_t)(i + 1) * a_k], b + columns);
    }
    if (i < k) add(even, a[(ptrdiff_t)i * a_k], b);
    s::unroll<vectors>([&](auto v) QUOLL_INLINE_LAMBDA {
        const size_t n = v() * s::kLanes;
        const V y = min(V::set(high), max(V::set(low), even[v] + odd[v]));
        y.store_n(out + n, n < count ? count - n : 0);
    });
}

void row_times_panels(const float* a, ptrdiff_t a_k, size_t k, const float* b, size_t count,
                      const float* init, float* out, float low, float high) {
    constexpr size_t columns = kTileVectors * s::kLanes;
    // Two sums per vector, in half of the registers.
    constexpr size_t group = kFewKernels ? 1 : QUOLL_ISA_REGISTERS / 4 / kTileVectors;
    while (count > 0) {
        const bool full = count > (group - 1) * columns;
        const size_t width = (full ? group : 1) * columns;
        if (full) {
            row_times_group<group>(a, a_k, k, b, count, init, out, low, high);
        } else {
            row_times_group<1>(a, a_k, k, b, count, init, out, low, high);
        }
        if (count <= width) return;
        count -= width;
        b += width * k;
        init += width;
        out += width;
    }
}

// `some` rows, at most the lanes, of so many columns.
QUOLL_INLINE void store_few_columns(const float* tile, size_t width, size_t some, size_t columns,
                                    float* out, ptrdiff_t out_column) {
    using V = s::vecf<s::kLanes>;
    V r[V::kSize];
    for (size_t i = 0; i < V::kSize; i++) r[i] = i < some ? V::load(tile + i * width) : V::zero();
    s::transpose(r);
    for (size_t i = 0; i < V::kSize && i < columns; i++, out += out_column) r[i].store_n(out, some);
}

// A square of whole registers.
QUOLL_INLINE void store_square(const float* tile, size_t width, float* out, ptrdiff_t out_column) {
    using V = s::vecf<s::kLanes>;
    V r[V::kSize];
    s::unroll<V::kSize>([&](auto i) QUOLL_INLINE_LAMBDA { r[i] = V::load(tile + i() * width); });
    s::transpose(r);
    s::unroll<V::kSize>([&](auto i)
                            QUOLL_INLINE_LAMBDA { r[i].store(out + (ptrdiff_t)i() * out_column); });
}

void gemm_store_columns(const float* tile, size_t width, int rows, size_t columns, float* out,
                        ptrdiff_t out_column) {
    constexpr size_t L = s::kLanes;
    const size_t count = (size_t)rows;
    for (size_t m = 0; m < count; m += L, tile += L * width, out += L) {
        const size_t some = count - m < L ? count - m : L;
        for (size_t j = 0; j < columns; j += L) {
            float* to = out + (ptrdiff_t)j * out_column;
            if (some == L && j + L <= columns)
                store_square(tile + j, width, to, out_column);
            else
                store_few_columns(tile + j, width, some, columns - j, to, out_column);
        }
    }
}

}  // namespace
}  // namespace quoll
