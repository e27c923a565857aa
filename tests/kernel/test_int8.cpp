// The int8 kernels on every ISA, against sums in int64 and float2int8.
#include <float.h>
#include <gtest/gtest.h>
#include <math.h>
#include <string.h>

#include <algorithm>
#include <random>
#include <vector>

#include "guarded.h"
#include "int8_kernels.h"
#include "layer/common/affine8.h"
#include "layer/cpu/int8/int8_product.h"
#include "layer/cpu/int8/int8_winograd.h"
#include "layer/cpu/int8/small_values.h"
#include "quoll/mat.h"

using namespace quoll;

namespace {

// A k-group of activations, offset included, or of weights.
int32_t word_of(const Int8Kernels& kernels, const std::vector<int>& values, bool activation) {
    int32_t k_group_bits = 0;
    for (int e = 0; e < kernels.k_group; e++) {
        const int v = values[e] + (activation ? kernels.offset : 0);
        if (kernels.k_group == 4) {
            ((uint8_t*)&k_group_bits)[e] = (uint8_t)v;
        } else {
            ((int16_t*)&k_group_bits)[e] = (int16_t)v;
        }
    }
    return k_group_bits;
}

// Extreme values half of the time: their products must not saturate.
int value() { return uniform(0, 1) ? (uniform(0, 1) ? 127 : -128) : uniform(-128, 127); }

// The tile's sums as bytes, of which there are `sums`: vectors of columns in the reverse order, a
// gap between them.
void check_bytes(const Int8Kernels& kernels, Int8TileKernel kernel, Int8Tile tile, size_t vectors,
                 size_t rows, const std::vector<int64_t>& sums, bool at_end) {
    const size_t lanes = kernels.lanes, columns = vectors * lanes, step = rows * lanes + 5;
    Guarded<float> scale(columns, at_end), bias(columns, at_end);
    std::vector<ptrdiff_t> places(columns);
    for (size_t n = 0; n < columns; n++) {
        // Ties, too.
        scale[n] = n % 3 ? ldexpf(1.f, uniform(-12, -2)) : (float)uniform(1, 999) / 1e5f;
        bias[n] = (float)uniform(-20, 20);
        places[n] = (ptrdiff_t)((vectors - 1 - n / lanes) * step + n % lanes);
    }
    Guarded<int8_t> c((vectors - 1) * step + rows * lanes, at_end);
    std::fill_n(c.data(), c.size(), (int8_t)99);
    const int zero = uniform(-128, 127), low = uniform(-128, 0), high = uniform(0, 127);
    const Int8TileBytes bytes = {scale.data(), bias.data(), zero,         low,
                                 high,         c.data(),    places.data()};
    tile.sums = nullptr, tile.bytes = &bytes;
    kernel(tile);
    std::vector<int> want(c.size(), 99);
    for (size_t m = 0; m < rows; m++)
        for (size_t n = 0; n < columns; n++) {
            const float x = (float)sums[m * columns + n] * scale[n] + bias[n];
            want[places[n] + m * lanes] = std::max(low, std::min(high, (int)affine_int8(x, zero)));
        }
    for (size_t i = 0; i < c.size(); i++)
        ASSERT_EQ(want[i], c[i]) << "rows " << rows << " at " << i;
}

// a_pair, small: as of Int8Tile. tiles: so many in one call.
void check_tile(const Int8Kernels& kernels, Int8TileKernel kernel, size_t vectors, size_t tile_rows,
                size_t num_blocks, size_t block_k, bool at_end, size_t a_pair = 0, size_t tiles = 1,
                bool small = false) {
    if (vectors == 1 && !kernels.tile_single[0]) return;  // Int8Kernels::s16
    const size_t columns = vectors * kernels.lanes, k_groups = num_blocks * block_k;
    const size_t beside = kernels.pairs ? 2 : 1;  // k-groups of a row that lie beside each other
    const size_t a_row = a_pair ? beside : k_groups + 3;
    const size_t a_block = a_pair ? block_k / beside * a_pair + 1 : block_k;
    const size_t rows = tiles * tile_rows, a_tile = tile_rows * a_row + 7;
    const auto place = [&](size_t m, size_t k) {
        const size_t i = k % block_k;
        return m / tile_rows * a_tile + m % tile_rows * a_row + k / block_k * a_block +
               (a_pair ? i / beside * a_pair + i % beside : i);
    };
    Guarded<int32_t> a(place(rows - 1, k_groups - 1) + 1, at_end), b(k_groups * columns, at_end);
    Guarded<int32_t> init(columns, at_end), sums(rows * columns, at_end);
    std::vector<int64_t> want(rows * columns, 0);
    std::vector<std::vector<int>> x(a.size()), w(b.size());
    for (auto& k_group_bits : x)
        for (int e = 0; e < kernels.k_group; e++)
            k_group_bits.push_back(small ? (value() - 1) / 2 : value());
    for (auto& k_group_bits : w)
        for (int e = 0; e < kernels.k_group; e++)
            k_group_bits.push_back(std::max(value(), kernels.least_weight));
    for (size_t i = 0; i < a.size(); i++) a[i] = word_of(kernels, x[i], true);
    for (size_t i = 0; i < b.size(); i++) {
        const size_t k = i / columns, n = i % columns;
        b[kernels.pairs ? k / 2 * 2 * columns + 2 * n + k % 2 : i] = word_of(kernels, w[i], false);
    }
    // Blocks of B in another order than those of A.
    std::vector<GemmBlock> blocks;
    for (size_t i = 0; i < num_blocks; i++)
        blocks.push_back({(ptrdiff_t)(i * a_block), (num_blocks - 1 - i) * block_k});
    for (size_t n = 0; n < columns; n++) {
        int64_t total = 0;
        for (size_t k = 0; k < k_groups; k++) {
            const size_t at = (num_blocks - 1 - k / block_k) * block_k + k % block_k;
            for (int e = 0; e < kernels.k_group; e++) {
                const int weight = w[at * columns + n][e];
                total += weight;
                for (size_t m = 0; m < rows; m++)
                    want[m * columns + n] += (int64_t)x[place(m, k)][e] * weight;
            }
        }
        init[n] = (int32_t)(7 - total * kernels.offset);
    }
    const Int8Tile tile = {a.data(),          (ptrdiff_t)a_row,
                           blocks.data(),     num_blocks,
                           block_k,           b.data(),
                           init.data(),       sums.data(),
                           (ptrdiff_t)a_pair, tiles - 1,
                           (ptrdiff_t)a_tile, GemmFetch(),
                           nullptr,           small};
    kernel(tile);
    for (int64_t& sum : want) sum += 7;
    for (size_t i = 0; i < want.size(); i++)
        ASSERT_EQ(want[i], sums[i]) << "row " << i / columns << " column " << i % columns;
    if (kernels.stores_bytes) check_bytes(kernels, kernel, tile, vectors, rows, want, at_end);
}

// Ties, values next to them, what lies outside, and numbers between.
std::vector<float> samples(size_t n) {
    std::vector<float> values = {0.5f,    -0.5f, 0.49999997f, -0.49999997f, 1.5f,      2.5f,
                                 -126.5f, 127.f, 127.5f,      -128.f,       -INFINITY, INFINITY,
                                 NAN,     1e30f, 126.49999f,  -0.f,         254.f,     -255.f};
    while (values.size() < n)
        values.push_back(std::uniform_real_distribution<float>(-140.f, 140.f)(g_rng));
    values.resize(n);
    return values;
}

int element(const Int8Kernels& kernels, const void* p, size_t i) {
    if (kernels.k_group == 2) return ((const int16_t*)p)[i];
    return kernels.offset ? ((const uint8_t*)p)[i] : ((const int8_t*)p)[i];
}

template <class T>
void check_input(const Int8Kernels& kernels, Int8InputKernel kernel, int pack, int channels,
                 int dst_pack, size_t pixels, size_t stride, bool at_end) {
    const size_t blocks = (channels + dst_pack - 1) / dst_pack, bytes = 4 / kernels.k_group;
    const size_t src_block = (pixels - 1) * stride * pack + pack;
    Guarded<T> src(src_block * (channels / pack), at_end);
    const std::vector<float> values = samples(src.size());
    for (size_t i = 0; i < src.size(); i++)
        src[i] = sizeof(T) == 1 ? (T)(i * 37) : (T)values[i * 7 % values.size()];
    const size_t filled = (channels + kernels.k_group - 1) / kernels.k_group * kernels.k_group;
    Guarded<char> dst(bytes * pixels * dst_pack * blocks, at_end);
    const float scale = .7f;
    const Int8Input input = {src.data(),
                             (ptrdiff_t)(stride * pack),
                             (ptrdiff_t)src_block,
                             channels,
                             pixels,
                             scale,
                             dst.data(),
                             dst_pack,
                             (ptrdiff_t)(pixels * dst_pack),
                             dst_pack};
    kernel(input);
    for (size_t p = 0; p < pixels; p++) {
        for (size_t c = 0; c < filled; c++) {
            int want = kernels.offset;
            if (c < (size_t)channels) {
                const T x = src[p * stride * pack + c / pack * src_block + c % pack];
                want += sizeof(T) == 1 ? (int)x : (int)float2int8((float)x * scale);
            }
            const size_t at = c / dst_pack * pixels * dst_pack + p * dst_pack + c % dst_pack;
            ASSERT_EQ(want, element(kernels, dst.data(), at)) << "pixel " << p << " channel " << c;
        }
    }
}

}  // namespace

TEST(Int8Kernels, tiles_are_exact) {
    for_all([](const Int8Kernels& kernels) {
        const size_t kTileVectors = kernels.vectors;
        for (size_t rows = 1; rows <= (size_t)kernels.max_rows; rows++) {
            const size_t shapes[][2] = {
                {1, 1}, {3, 5}, {1, 200}, {2, 8}, {5, 3}};  // blocks, k-groups of each
            for (const size_t(&k)[2] : shapes) {
                SCOPED_TRACE(rows);
#define QUOLL_INT8_TILES(name, vectors)                                                     \
    check_tile(kernels, kernels.name[rows - 1], vectors, rows, k[0], k[1] << kernels.pairs, \
               rows % 2);                                                                   \
    check_tile(kernels, kernels.name[rows - 1], vectors, rows, k[0], k[1] << kernels.pairs, \
               rows % 2 == 0);                                                              \
    if (kernels.small_is_faster)                                                            \
        check_tile(kernels, kernels.name[rows - 1], vectors, rows, k[0], k[1], true, 0, 1, true);
#define QUOLL_INT8_S16(name, vectors)
#define QUOLL_INT8_INPUT(name, type)
#define QUOLL_BLOCK_TILES(name)
#define QUOLL_BLOCK_DOTS(name)
#define QUOLL_BLOCK_BYTES(name)
#define QUOLL_BLOCK_ROWS(name)
#define QUOLL_BLOCK_UNPACK(name)
#define QUOLL_INT8(type, name)
#include "layer/cpu/int8/kernels.inc"
#undef QUOLL_INT8_TILES
#undef QUOLL_INT8_INPUT
#undef QUOLL_BLOCK_TILES
#undef QUOLL_BLOCK_DOTS
#undef QUOLL_BLOCK_BYTES
#undef QUOLL_BLOCK_ROWS
#undef QUOLL_BLOCK_UNPACK
#undef QUOLL_INT8
                if (testing::Test::HasFatalFailure()) return;
            }
        }
    });
}

TEST(Int8Kernels, tiles_of_rows_beside_each_other_are_exact) {
    for_all([](const Int8Kernels& kernels) {
        for (size_t rows = 1; rows <= (size_t)kernels.neighbour_rows; rows++) {
            const size_t shapes[][2] = {{1, 1}, {3, 5}, {1, 200}, {2, 8}, {5, 3}, {1, 6}, {2, 7}};
            const size_t beside = kernels.pairs ? 2 : 1;
            if (!kernels.tile[rows - 1]) continue;  // between max_rows and neighbour_rows
            for (const size_t(&k)[2] : shapes) {
                for (size_t a_pair : {beside, beside * rows, beside * rows + 5}) {
                    SCOPED_TRACE(rows);
                    check_tile(kernels, kernels.tile[rows - 1], kernels.vectors, rows, k[0],
                               k[1] * beside, rows % 2, a_pair);
                    check_tile(kernels, kernels.tile[rows - 1], kernels.vectors, rows, k[0],
                               k[1] * beside, true, a_pair);
                    check_tile(kernels, kernels.tile[rows - 1], kernels.vectors, rows, k[0],
                               k[1] * beside, rows % 2, a_pair, 3);
                    if (kernels.pairs)
                        check_tile(kernels, kernels.tile_single[rows - 1], 1, rows, k[0],
                                   k[1] * beside, true, a_pair, 2);
                    if (kernels.pairs)
                        check_tile(kernels, kernels.tile_single[rows - 1], 1, rows, k[0],
                                   k[1] * beside, rows % 2, a_pair);
                    if (testing::Test::HasFatalFailure()) return;
                }
            }
        }
    });
}

TEST(Int8Kernels, take_weights_of_minus_128) {
    Mat weights(3, (size_t)1u);
    signed char* const w = weights;
    w[0] = 127, w[1] = -127, w[2] = 5;
    EXPECT_LE(int8_product_kernels(weights).least_weight, -127);
    w[2] = -128;
    EXPECT_EQ(int8_product_kernels(weights).least_weight, -128);
}

TEST(Int8Kernels, inputs_are_rounded_and_laid_out) {
    const int packs[] = {1, 4, 8, 16};
    for_all([&](const Int8Kernels& kernels) {
        for (int i = 0; i < 4; i++) {
            const int pack = packs[i], unit = pack < 4 ? 4 : pack;
            for (size_t pixels : {1, 3, 37}) {
                for (size_t stride : {1, 2}) {
                    for (int channels : {pack, 3 * pack, 7 * pack, 26 * pack}) {
#define QUOLL_INT8_TILES(name, vectors)
#define QUOLL_INT8_INPUT(name, type)                                                              \
    check_input<type>(kernels, kernels.name[i], pack, channels, unit, pixels, stride, true);      \
    check_input<type>(kernels, kernels.name[i], pack, channels, 2 * unit, pixels, stride, true);  \
    check_input<type>(kernels, kernels.name[i], pack, channels, 4 * unit, pixels, stride, false); \
    check_input<type>(kernels, kernels.name[i], pack, channels, 7 * unit, pixels, stride, true);
#define QUOLL_BLOCK_TILES(name)
#define QUOLL_BLOCK_DOTS(name)
#define QUOLL_BLOCK_BYTES(name)
#define QUOLL_BLOCK_ROWS(name)
#define QUOLL_BLOCK_UNPACK(name)
#define QUOLL_INT8(type, name)
#include "layer/cpu/int8/kernels.inc"
#undef QUOLL_INT8_TILES
#undef QUOLL_INT8_INPUT
#undef QUOLL_BLOCK_TILES
#undef QUOLL_BLOCK_DOTS
#undef QUOLL_BLOCK_BYTES
#undef QUOLL_BLOCK_ROWS
#undef QUOLL_BLOCK_UNPACK
#undef QUOLL_INT8
                        if (testing::Test::HasFatalFailure()) return;
                    }
                }
            }
        }
    });
}

namespace {

// What a kernel of an Int8Store is to make of one value, as a float; round: to int8.
struct StoreCase {
    Int8StoreKernel kernel;
    bool sums, scaled, round;
    bool affine = false;
    float slope = 0.f;
};

void check_store(const Int8Kernels& kernels, const StoreCase& t, size_t used, size_t run,
                 float top_scale, bool adds) {
    const size_t lanes = kernels.lanes, width = (used + lanes - 1) / lanes * lanes;
    // As many as go at once on any vectors, and some.
    const bool many = !adds && run == 4 && top_scale == 1.3f;
    const int rows = run == 1 && !adds ? 17 : many ? 37 : 5, top_zero = t.affine ? -17 : 0;
    const float low = t.slope ? -INFINITY : -60.f, high = t.slope ? INFINITY : 90.f;
    Guarded<float> in(rows * width), scale(width), bias(width);
    std::vector<float> values = samples(in.size());
    for (size_t i = 0; i < width; i++) scale[i] = .01f * (i + 1), bias[i] = .5f * i - 3;
    for (size_t i = 0; i < in.size(); i++) {
        const int32_t sum = uniform(-9000, 9000);
        if (t.sums) memcpy(&in[i], &sum, 4);
        if (!t.sums) in[i] = t.scaled ? (float)sum : values[i];
    }
    // Runs of columns lie apart.
    std::vector<ptrdiff_t> columns(used);
    const size_t c_row = run;
    for (size_t n = 0; n < used; n++) columns[n] = (ptrdiff_t)(n / run * rows * run + n % run);
    const size_t size = t.round ? 1 : 4;
    Guarded<char> c(size * used * rows);
    std::vector<ptrdiff_t> add_columns(used);  // those of other blocks
    const size_t add_block = (rows + 1) * run;
    for (size_t n = 0; n < used; n++) add_columns[n] = (ptrdiff_t)(n / run * add_block + n % run);
    Guarded<float> add(used / run * add_block);
    for (float& x : add) x = (float)uniform(-99, 99) / 8;
    const Int8Store store = {in.data(),
                             rows,
                             width,
                             used,
                             scale.data(),
                             bias.data(),
                             low,
                             high,
                             top_scale,
                             t.slope,
                             t.affine,
                             top_zero,
                             c.data(),
                             (ptrdiff_t)c_row,
                             columns.data(),
                             run,
                             adds ? add.data() : nullptr,
                             add_columns.data()};
    t.kernel(store);
    for (size_t m = 0; m < (size_t)rows; m++) {
        for (size_t n = 0; n < used; n++) {
            float y = in[m * width + n];
            int32_t sum;
            memcpy(&sum, &in[m * width + n], 4);
            const size_t at = m * c_row + (size_t)columns[n];
            if (t.sums) y = (float)sum;
            // Before the limits rather than behind them.
            const bool before = t.affine && t.sums && !adds && top_scale > 0 && isfinite(top_scale);
            const float first = before ? top_scale : 1.f, last = before ? 1.f : top_scale;
            if (t.scaled) {
                volatile float factor = scale[n] * first, term = bias[n] * first;
                volatile float product = y * factor;
                y = product + term;
            }
            if (adds) y += add[m * c_row + (size_t)add_columns[n]];
            if (t.slope) y = std::max(y, t.slope * y);
            if (t.scaled && y == y) y = std::min(high * first, std::max(low * first, y));
            if (t.round) {
                const signed char want =
                    t.affine ? affine_int8(y * last, top_zero) : float2int8(y * last);
                ASSERT_EQ(want, (signed char)c[at]) << y << " by " << last;
            } else {
                float got;
                memcpy(&got, c.data() + 4 * at, 4);
                ASSERT_TRUE(got == y || (isnan(got) && isnan(y))) << got << " for " << y;
            }
        }
    }
}

}  // namespace

TEST(Int8Kernels, results_are_scaled_and_stored) {
    for_all([](const Int8Kernels& kernels) {
        std::vector<StoreCase> cases = {{kernels.finish_f32, true, true, false},
                                        {kernels.finish_s8, true, true, true},
                                        {kernels.store_f32, false, false, false},
                                        {kernels.store_s8, false, false, true},
                                        {kernels.finish_s8, true, true, true, true},
                                        {kernels.store_s8, false, false, true, true}};
        if (kernels.takes_slopes) {
            cases.push_back({kernels.finish_f32, true, true, false, false, .1f});
            cases.push_back({kernels.finish_s8, true, true, true, false, .1f});
        }
        for (const StoreCase& t : cases) {
            for (size_t used : {1, 2, 5, 8, 12, 16, 21, 24, 32}) {
                for (size_t run : {1, 4, 8, 16}) {
                    if (kernels.lanes % run != 0 || used % run != 0) continue;
                    SCOPED_TRACE(used);
                    for (bool adds : {false, true})
                        for (float top_scale : {1.3f, 0.f, -2.f, INFINITY})
                            check_store(kernels, t, used, run, top_scale, adds);
                    if (testing::Test::HasFatalFailure()) return;
                }
            }
        }
    });
}

TEST(Int8Kernels, rounding) {
    for_all([](const Int8Kernels& kernels) {
        for (size_t n = 0; n <= 70; n++) {
            for (float scale : {1.f, 0.5f, 3.7f}) {
                Guarded<float> in(n, n % 2);
                Guarded<int8_t> out(n, n % 2);
                const std::vector<float> values = samples(n);
                std::copy(values.begin(), values.end(), in.begin());
                kernels.round_s8(in.data(), n, scale, out.data());
                for (size_t i = 0; i < n; i++)
                    ASSERT_EQ(float2int8(values[i] * scale), out[i]) << values[i];
            }
        }
    });
}

namespace {

// Windows of kernel_h x kernel_w on rows of s8, `pack` channels in a pixel.
void check_windows(const Int8Kernels& kernels, int pack, int kernel_h, int kernel_w, int stride,
                   int count, bool at_end) {
    const int columns = (count - 1) * stride + kernel_w, joined = kernels.k_group;
    const int groups = (kernel_h + joined - 1) / joined;
    const size_t row = (size_t)columns * pack;
    Guarded<int8_t> in(row * kernel_h, at_end);
    Guarded<int32_t> k_groups(row * groups, at_end), sums((size_t)count * pack, at_end);
    Guarded<int32_t> weight((size_t)groups * kernel_w * pack, at_end), init(pack, at_end);
    for (int8_t& x : in) x = (int8_t)value();
    std::vector<int> w((size_t)kernel_h * kernel_w * pack);  // [kernel_h][kernel_w][pack]
    for (int& x : w) x = value();
    for (int c = 0; c < pack; c++) init[c] = 7;
    std::vector<ptrdiff_t> taps;
    for (int g = 0; g < groups; g++) {
        Int8Rows rows = {};
        rows.count = std::min(joined, kernel_h - g * joined);
        for (int e = 0; e < rows.count; e++) rows.rows[e] = in.data() + (g * joined + e) * row;
        rows.n = row, rows.k_groups = k_groups.data() + g * row;
        kernels.k_groups(rows);
        for (int kx = 0; kx < kernel_w; kx++) {
            taps.push_back((ptrdiff_t)(g * row + (size_t)kx * pack));
            for (int c = 0; c < pack; c++) {
                std::vector<int> of_word(joined, 0);
                for (int e = 0; e < rows.count; e++) {
                    of_word[e] = w[((size_t)(g * joined + e) * kernel_w + kx) * pack + c];
                    init[c] -= of_word[e] * kernels.offset;
                }
                weight[((size_t)g * kernel_w + kx) * pack + c] = word_of(kernels, of_word, false);
            }
        }
    }
    const Int8Windows windows = {
        k_groups.data(), (size_t)stride * pack, taps.data(), (int)taps.size(), pack, weight.data(),
        init.data(),     sums.data(),           count};
    kernels.windows(windows);
    for (int i = 0; i < count * pack; i++) {
        int want = 7;
        for (int k = 0; k < kernel_h * kernel_w; k++)
            want += w[(size_t)k * pack + i % pack] *
                    in[k / kernel_w * row + (i / pack * stride + k % kernel_w) * pack + i % pack];
        ASSERT_EQ(want, sums[i]) << "output " << i / pack << " channel " << i % pack;
    }
}

}  // namespace

TEST(Int8Kernels, windows_of_single_channels_are_exact) {
    for_all([](const Int8Kernels& kernels) {
        for (int pack : {1, 4, 8, 16}) {
            if (pack > kernels.lanes || (pack == 1 && kernels.lanes > 1) || !kernels.windows)
                continue;
            for (int kernel : {1, 2, 3, 5, 7}) {
                for (int stride : {1, 2, 3}) {
                    for (int count : {1, 3, 4, 7, 8, 9, 21}) {
                        SCOPED_TRACE(kernel);
                        check_windows(kernels, pack, kernel, 3, stride, count, count % 2);
                        check_windows(kernels, pack, 3, kernel, stride, count, !(count % 2));
                        if (testing::Test::HasFatalFailure()) return;
                    }
                }
            }
        }
    });
}

// All of them are lowered, or none where one is negative.
TEST(Int8Kernels, values_are_made_small) {
    for (size_t count : {1, 7, 8, 9, 127, 128, 5000}) {
        std::vector<int8_t> values(count);
        for (size_t i = 0; i < count; i++) values[i] = (int8_t)(i % 128);
        std::vector<int8_t> got = values;
        ASSERT_TRUE(int8_make_small(got.data(), count, 2));
        for (size_t i = 0; i < count; i++) ASSERT_EQ(got[i], values[i] - kInt8SmallStep) << i;
        for (size_t at = 0; at < count; at += count / 7 + 1) {
            got = values;
            got[at] = -1;
            const std::vector<int8_t> kept = got;
            ASSERT_FALSE(int8_make_small(got.data(), count, 2)) << at << " of " << count;
            ASSERT_EQ(got, kept);
        }
    }
}

namespace {

// Rows of windows of kernel x kernel taps, with `gap` bytes between the rows of the input.
void check_window_rows(Int8WindowRowsKernel run, int kernel, int stride, int step, int width,
                       int rows, bool at_end) {
    const size_t pixels = (size_t)(width + 3) / 4 * 4 * stride + kernel - 1, gap = 4 * (width % 3);
    const size_t in_row = 4 * pixels + gap, in_rows = (size_t)(rows - 1) * step + kernel;
    Guarded<int8_t> in(in_rows * in_row - gap, at_end),
        weight((size_t)kernel * kernel * 16, at_end);
    Guarded<int32_t> init(4, at_end), sums((size_t)rows * width * 4 + 12, at_end);
    for (int8_t& x : in) x = (int8_t)value();
    for (int k = 0; k < kernel * kernel; k++)
        for (int c = 0; c < 16; c++) {
            const int w = c < 4 ? value() : weight[k * 16 + c % 4];
            weight[k * 16 + c] = (int8_t)(k % 2 && w == -128 ? 127 : w);
        }
    for (int c = 0; c < 4; c++) init[c] = 1000 * c - 7;
    Int8WindowRows t = {};
    t.in = in.data(), t.in_row = (ptrdiff_t)in_row, t.in_step = (ptrdiff_t)in_row * step;
    t.weight = weight.data(), t.init = init.data(), t.sums = sums.data();
    t.width = width, t.rows = rows;
    run(t);
    for (int i = 0; i < rows * width * 4; i++) {
        const int c = i % 4, x = i / 4 % width, y = i / 4 / width;
        int want = init[c];
        for (int k = 0; k < kernel * kernel; k++)
            want += weight[k * 16 + c] * in[(size_t)(y * step + k / kernel) * in_row +
                                            (size_t)(x * stride + k % kernel) * 4 + c];
        ASSERT_EQ(want, sums[i]) << "row " << y << " pixel " << x << " channel " << c;
    }
}

}  // namespace

TEST(Int8Kernels, rows_of_windows_are_exact) {
    for_all([](const Int8Kernels& kernels) {
        for (int size = 0; size < 2; size++) {
            for (int stride = 1; stride <= 2; stride++) {
                const Int8WindowRowsKernel run = kernels.window_rows[size][stride - 1];
                if (!run) continue;
                for (int width : {1, 2, 4, 7, 12, 29}) {
                    for (int rows : {1, 2, 5}) {
                        SCOPED_TRACE(3 + 2 * size);
                        check_window_rows(run, 3 + 2 * size, stride, 1, width, rows, rows % 2);
                        check_window_rows(run, 3 + 2 * size, stride, 2, width, rows, rows % 2 == 0);
                        if (testing::Test::HasFatalFailure()) return;
                    }
                }
            }
        }
    });
}

// 36 multiplications of a tile against 9 of each output that the map has.
TEST(Int8Kernels, winograd_is_for_maps_that_fill_tiles) {
    for (auto size : {std::pair<int, int>(1, 1), {2, 2}, {1, 4}, {17, 1}, {5, 1}})
        EXPECT_FALSE(Int8Winograd::pays(size.first, size.second)) << size.first;
    for (auto size : {std::pair<int, int>(3, 3), {7, 7}, {4, 2}, {56, 56}})
        EXPECT_TRUE(Int8Winograd::pays(size.first, size.second)) << size.first;
    // Beside dot products of bytes weights have to meet more tiles, and these more outputs.
    for (auto size : {std::pair<int, int>(7, 7), {10, 10}, {4, 2}, {64, 1}})
        EXPECT_FALSE(Int8Winograd::beats_bytes(size.first, size.second, 256, 256)) << size.first;
    for (auto size : {std::pair<int, int>(12, 12), {14, 14}, {56, 56}, {64, 4}})
        EXPECT_TRUE(Int8Winograd::beats_bytes(size.first, size.second, 256, 256)) << size.first;
    EXPECT_TRUE(Int8Winograd::beats_bytes(128, 128, 48, 48));
    EXPECT_FALSE(Int8Winograd::beats_bytes(256, 256, 24, 24));
}

// Of 4 outputs along an axis, and of 3, which do without point 3 and a sixth value.
int winograd_input_factor(int outputs, int point, int value) {
    static const int four[6][6] = {{2, 3, -4, -3, 2, 0}, {0, -2, -5, -1, 2, 0},
                                   {0, 2, 1, -5, 2, 0},  {0, -1, -2, 1, 2, 0},
                                   {0, 2, -1, -2, 1, 0}, {0, 2, 3, -4, -3, 2}};
    static const int three[6][6] = {{2, 4, -2, -4, 0}, {0, -1, -3, -2, 0}, {0, 3, 3, -6, 0}, {},
                                    {0, 5, 0, -5, 0},  {0, -1, -2, 1, 2}};
    return (outputs == 4 ? four : three)[point][value];
}
int winograd_output_factor(int outputs, int output, int point) {
    static const int four[4][6] = {
        {1, 1, 1, 1, 8, 0}, {0, 1, -1, 2, -4, 0}, {0, 1, 1, 4, 2, 0}, {0, 1, -1, 8, -1, 1}};
    static const int three[3][6] = {{1, 1, 1, 0, 4, 0}, {0, 1, -1, 0, -2, 0}, {0, 1, 1, 0, 1, 1}};
    return (outputs == 4 ? four[output] : three[output])[point];
}

// Points of tiles against the products of matrices; gaps between rows, pixels and tiles.
void check_winograd_input(const Int8Kernels& kernels, int channels, int tiles, int height,
                          int width) {
    const int pixel = channels + 3, row = (width * tiles + 2) * pixel + 1;
    const int tile = channels + 2, point = tiles * tile + 5;
    const bool at_end = tiles % 2;
    Guarded<int16_t> in((size_t)(height + 1) * row + (width * tiles + 1) * pixel + channels,
                        at_end);
    Guarded<int16_t> out((size_t)35 * point + (tiles - 1) * tile + channels, at_end);
    for (int16_t& x : in) x = (int16_t)value();
    std::fill_n(out.data(), out.size(), (int16_t)77);
    Int8WinogradInput t = {};
    t.in = in.data(), t.in_row = row, t.in_pixel = pixel;
    t.channels = channels, t.tiles = tiles, t.height = height, t.width = width;
    t.out = out.data(), t.out_tile = tile, t.out_point = point;
    kernels.winograd_input(t);
    for (int i = 0; i < 36 * tiles * channels; i++) {
        const int p = i % 36, n = i / 36 % tiles, c = i / 36 / tiles;
        const bool exists = (p / 6 != 3 || height == 4) && (p % 6 != 3 || width == 4);
        int want = exists ? 0 : 77;
        for (int y = 0; y < height + 2 && exists; y++)
            for (int x = 0; x < width + 2; x++)
                want += winograd_input_factor(height, p / 6, y) *
                        winograd_input_factor(width, p % 6, x) *
                        in[(size_t)y * row + (width * n + x) * pixel + c];
        ASSERT_EQ(want, out[(size_t)p * point + n * tile + c]) << "point " << p;
    }
}

// Sums of points against the products of matrices, also those that wrap.
void check_winograd_output(const Int8Kernels& kernels, size_t columns, size_t tiles, size_t height,
                           size_t width) {
    const size_t n = tiles * columns, point = n + 3;
    Guarded<int32_t> sums(35 * point + n, tiles == 1), out(height * width * n, tiles == 1);
    for (int32_t& x : sums) x = 900 * uniform(-1000000, 1000000);
    Int8WinogradOutput t = {};
    t.sums = sums.data(), t.point = point, t.n = n, t.columns = columns;
    t.height = (int)height, t.width = (int)width, t.out = out.data();
    kernels.winograd_output(t);
    for (size_t i = 0; i < out.size(); i++) {
        const size_t y = i / (width * n), x = i / columns % width, v = i % columns;
        const size_t from = i % (width * n) / (width * columns) * columns + v;
        int64_t want = 0;
        for (size_t k = 0; k < 36; k++)
            want += (int64_t)winograd_output_factor((int)height, (int)y, (int)k / 6) *
                    winograd_output_factor((int)width, (int)x, (int)k % 6) * sums[k * point + from];
        ASSERT_EQ(want / 900, out[i]) << "value " << i;
    }
}

TEST(Int8Kernels, winograd_transforms) {
    for_all([&](const Int8Kernels& kernels) {
        if (kernels.k_group != 2 || kernels.lanes < 4) return;
        for (int size = 0; size < 4; size++) {
            const int height = 3 + size / 2, width = 3 + size % 2;
            SCOPED_TRACE(10 * height + width);
            for (int channels : {1, 4, 8, 20, 32})
                for (int tiles : {1, 3, 8})
                    check_winograd_input(kernels, channels, tiles, height, width);
            const size_t lanes = kernels.lanes;
            for (size_t columns : {lanes, 2 * lanes})
                for (size_t tiles : {1, 5})
                    check_winograd_output(kernels, columns, tiles, height, width);
            if (testing::Test::HasFatalFailure()) return;
        }
    });
}

TEST(Int8Kernels, zero_points) {
    for_all([](const Int8Kernels& kernels) {
        for (size_t n = 0; n <= 70; n++) {
            for (int zero : {0, -128, 127, 9}) {
                Guarded<float> x(n, n % 2);
                Guarded<int8_t> a(n, n % 2), b(n, n % 2), out(n, n % 2);
                const std::vector<float> values = samples(n);
                std::copy(values.begin(), values.end(), x.begin());
                kernels.to_affine(x.data(), n, 0.7f, zero, out.data());
                for (size_t i = 0; i < n; i++)
                    ASSERT_EQ(affine_int8(values[i] / 0.7f, zero), out[i]) << values[i];
                for (size_t i = 0; i < n; i++) a[i] = (int8_t)(i * 37), b[i] = (int8_t)(i * 53 - 9);
                kernels.from_affine(a.data(), n, 0.7f, zero, x.data());
                for (size_t i = 0; i < n; i++) ASSERT_EQ((float)(a[i] - zero) * 0.7f, x[i]);
                kernels.largest(a.data(), b.data(), n, out.data());
                for (size_t i = 0; i < n; i++) ASSERT_EQ(std::max(a[i], b[i]), out[i]);
                std::copy(values.begin(), values.end(), x.begin());
                float want[2] = {-1.f, 2.f}, limits[2] = {-1.f, 2.f};
                for (float v : values)
                    want[0] = std::min(want[0], v), want[1] = std::max(want[1], v);
                kernels.range(x.data(), n, limits);
                ASSERT_TRUE(want[0] == limits[0] && want[1] == limits[1]);
            }
        }
    });
}

// Values around the middle between two whole numbers and beyond all results, by scales of any size.
TEST(Int8Kernels, quotients_are_rounded_as_divisions) {
    for_all([](const Int8Kernels& kernels) {
        for (int i = 0; i < 300; i++) {
            const int exponent = i % 3 == 0 ? uniform(-148, 127) : uniform(-9, 3);
            const float scale =
                ldexpf(1.f + (float)uniform(0, (1 << 23) - 1) / (1 << 23), exponent);
            std::vector<float> values = {INFINITY, -INFINITY, NAN,      0.f,
                                         -0.f,     FLT_MAX,   -FLT_MAX, FLT_MIN / 8};
            while (values.size() < 131) {
                float x = ((float)uniform(-300, 300) + .5f) * scale;
                for (int step = uniform(0, 3); step > 0; step--)
                    x = nextafterf(x, i % 2 ? INFINITY : 0.f);
                values.push_back(x);
            }
            const int zero = uniform(-128, 127);
            std::vector<int8_t> out(values.size());
            kernels.to_affine(values.data(), values.size(), scale, zero, out.data());
            for (size_t n = 0; n < values.size(); n++)
                ASSERT_EQ(affine_int8(values[n] / scale, zero), out[n])
                    << values[n] << " by " << scale;
        }
    });
}

TEST(Int8Kernels, terms) {
    for_all([](const Int8Kernels& kernels) {
        for (size_t n = 0; n <= 70; n++) {
            Guarded<int32_t> sums(n, n % 2), x(n, n % 2), y(n, n % 2), out(n, n % 2);
            Guarded<float> scale(n, n % 2), bias(n, n % 2), values(n, n % 2);
            for (size_t i = 0; i < n; i++) {
                sums[i] = uniform(-(1 << 30), 1 << 30), x[i] = uniform(-(1 << 20), 1 << 20);
                y[i] = uniform(-255, 255);
                scale[i] = 0.5f, bias[i] = (float)uniform(-9, 9);
            }
            for (bool both : {true, false}) {
                Int8Terms t = {};
                t.sums = sums.data(), t.x = x.data(), t.y = both ? y.data() : nullptr;
                t.n = n, t.a = -255, t.b = 100000;
                t.out = out.data();
                kernels.terms(t);
                t.scale = scale.data(), t.bias = bias.data(), t.out = values.data();
                kernels.terms(t);
                for (size_t i = 0; i < n; i++) {
                    const int64_t want =
                        sums[i] - 255 * (int64_t)x[i] + (both ? 100000 * (int64_t)y[i] : 0);
                    ASSERT_EQ((int32_t)(uint32_t)want, out[i]);
                    const float half = (float)(int32_t)(uint32_t)want * 0.5f;
                    ASSERT_EQ(half + bias[i], values[i]);
                }
            }
        }
    });
}

namespace {

// y of a and b, in double, before it is rounded.
double affine_value(const Int8Affine& t, size_t i) {
    double y = (t.a[i] - t.zero_a) * (double)t.scale_a;
    const double b = t.b ? (t.b[i] - t.zero_b) * (double)t.scale_b : 0;
    if (t.b) y = t.multiply ? y * b : y + b;
    return std::min<double>(t.high, std::max<double>(t.low, y)) * t.top_scale;
}

}  // namespace

TEST(Int8Kernels, tables) {
    for_all([](const Int8Kernels& kernels) {
        Guarded<int8_t> table(256);
        for (size_t i = 0; i < table.size(); i++) table[i] = (int8_t)value();
        for (size_t n = 0; n <= 300; n++) {
            Guarded<int8_t> in(n, n % 2), out(n, n % 2);
            for (size_t i = 0; i < n; i++) in[i] = (int8_t)(i * 37 + n);
            kernels.look_up(in.data(), n, table.data(), out.data());
            for (size_t i = 0; i < n; i++)
                ASSERT_EQ(table[in[i] + 128], out[i]) << i << " of " << n;
            kernels.look_up(in.data(), n, table.data(), in.data());
            for (size_t i = 0; i < n; i++) ASSERT_EQ(out[i], in[i]) << i << " in place";
        }
    });
}

TEST(Int8Kernels, sums_and_products_with_zero_points) {
    for_all([](const Int8Kernels& kernels) {
        for (size_t n = 0; n <= 150; n++) {
            for (int kind = 0; kind < 3; kind++) {
                Guarded<int8_t> a(n, n % 2), b(n, n % 2), out(n, n % 2);
                for (size_t i = 0; i < n; i++) a[i] = (int8_t)value(), b[i] = (int8_t)value();
                Int8Affine t = {};
                t.a = a.data(), t.b = kind == 0 ? nullptr : b.data();
                t.n = n, t.multiply = kind == 2;
                t.zero_a = 3, t.zero_b = -128, t.top_zero = 11;
                t.scale_a = 0.37f, t.scale_b = 0.11f, t.top_scale = 1.7f;
                t.low = -60.f, t.high = 50.f;
                t.out = out.data();
                kernels.affine(t);
                for (size_t i = 0; i < n; i++) {
                    const double want = affine_value(t, i) + t.top_zero;
                    const double limited = std::min(127., std::max(-128., want));
                    ASSERT_NEAR(limited, out[i], 0.5001) << i;
                }
            }
        }
    });
}
