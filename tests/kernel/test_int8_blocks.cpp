// The int8 kernels of weights in blocks and of 16 bits on every ISA, against sums in double.
#include <gtest/gtest.h>
#include <math.h>
#include <string.h>

#include <string>
#include <vector>

#include "guarded.h"
#include "int8_kernels.h"
#include "quoll/mat.h"

using namespace quoll;

namespace {

// Two panels side by side, with scales as f32 or f16 and maybe offsets.
struct BlockWeights {
    size_t bits, k, block, lanes, pair, blocks;
    std::vector<int> values;  // [k][pair]
    Guarded<int32_t> k_groups;
    Guarded<float> scale, offset;
    Guarded<uint16_t> halves;
    bool zeros, half;

    BlockWeights(size_t bits, size_t k, size_t block, size_t lanes, bool zeros, bool half)
        : bits(bits),
          k(k),
          block(block),
          lanes(lanes),
          pair(2 * lanes),
          blocks((k + block - 1) / block),
          k_groups(k * bits / 32 * pair),
          scale(blocks * pair),
          offset(blocks * pair),
          halves(blocks * pair),
          zeros(zeros),
          half(half) {
        for (int32_t& word : k_groups) word = 0;
        for (size_t i = 0; i < k * pair; i++) {
            values.push_back(uniform(-(1 << (bits - 1)), (1 << (bits - 1)) - 1));
            const size_t kk = i / pair, n = i % pair;
            const uint32_t part = (uint32_t)values[i] & ((1u << bits) - 1);
            const size_t at = bits == 8 ? kk % 4 * 8 : kk % 4 * 8 + kk % 8 / 4 * 4;
            k_groups[kk * bits / 32 * pair + n] |= (int32_t)(part << at);
        }
        for (size_t i = 0; i < scale.size(); i++) {
            scale[i] = (float)uniform(1, 64) / 256;
            halves[i] = float32_to_float16(scale[i]);
            offset[i] = zeros ? (float)uniform(-64, 64) / 16 : 0.f;
        }
    }

    double value(size_t kk, size_t n) const {
        const size_t at = kk / block * pair + n;
        return values[kk * pair + n] * (double)scale[at] + offset[at];
    }

    BlockTile tile(size_t panel) const {
        const size_t first = panel * lanes;
        BlockTile tile = {};
        tile.b = &k_groups[first];
        tile.scale = half ? nullptr : &scale[first];
        tile.half_scale = half ? &halves[first] : nullptr;
        tile.offset = zeros ? &offset[first] : nullptr;
        tile.k = k, tile.block = block;
        return tile;
    }
};

// Rows of inputs, as they are, and as digits.
struct BlockInputs {
    size_t k, row, blocks;
    Guarded<float> a, sums;
    Guarded<int8_t> digits;  // [rows][count][k]
    std::vector<BlockDigits::Block> units;
    std::vector<BlockDigits> rows;

    BlockInputs(const Int8Kernels& kernels, const BlockWeights& w, int count)
        : k(w.k),
          row(k + 5),
          blocks(w.blocks),
          a((kBlockRows - 1) * row + k),
          sums(kBlockRows * blocks),
          digits(kBlockRows * count * k),
          units(kBlockRows * blocks) {
        // So many bits that no digit is zero, and sums are rounded.
        for (float& x : a) x = (float)uniform(-0x3fffff, 0x3fffff) * 0x1p-22f;
        for (float& x : sums) x = 0.f;
        for (size_t i = 0; i < kBlockRows * k; i++)
            sums[i / k * blocks + i % k / w.block] += a[i / k * row + i % k];
        for (size_t m = 0; m < kBlockRows; m++) {
            rows.push_back({&digits[m * count * k], &units[m * blocks]});
            EXPECT_TRUE(kernels.block_digits(&a[m * row], k, w.block, (int)w.bits, count, rows[m]));
        }
    }

    void set(BlockTile* tile) const {
        tile->a = a.data(), tile->a_row = (ptrdiff_t)row;
        tile->a_sum = sums.data(), tile->a_sum_row = (ptrdiff_t)blocks;
        tile->digits = rows.data();
    }
};

// `out` of so many columns from `first` on; an input is off by `error` of the largest value, 1.
void expect_rows(const BlockWeights& w, const BlockInputs& in, size_t rows, size_t first,
                 size_t columns, double error, const Guarded<float>& out) {
    for (size_t i = 0; i < rows * columns; i++) {
        double want = 0, magnitude = 0;
        for (size_t kk = 0; kk < w.k; kk++) {
            const double x = in.a[i / columns * in.row + kk];
            const double weight = w.value(kk, first + i % columns);
            want += x * weight;
            magnitude += fabs(x) * 40 * 0x1p-20 + error * fabs(weight);
        }
        ASSERT_NEAR(want, out[i], magnitude) << rows << " rows, value " << i;
    }
}

void check_few_rows(const Int8Kernels& kernels, const BlockWeights& w) {
    const BlockInputs in(kernels, w, 3);
    for (size_t panel = 0; panel < 2; panel++) {
        BlockTile tile = w.tile(panel);
        in.set(&tile);
        for (size_t j = 0; j < 2 * kBlockRows; j++) {
            const size_t rows = j / 2 + 1;
            const auto& of_form = j % 2 ? kernels.block_dot : kernels.block_tile;
            if (!of_form[rows - 1][w.bits / 8]) continue;
            SCOPED_TRACE(j % 2 ? "bytes" : "floats");
            Guarded<float> out(rows * w.lanes);
            tile.out = out.data(), tile.out_row = (ptrdiff_t)w.lanes;
            of_form[rows - 1][w.bits / 8](tile);
            expect_rows(w, in, rows, panel * w.lanes, w.lanes, 0, out);
        }
        Guarded<float> unpacked(w.k * w.lanes);
        tile.out = unpacked.data(), tile.out_row = (ptrdiff_t)w.lanes;
        kernels.block_unpack[w.bits / 8](tile);
        for (size_t i = 0; i < unpacked.size(); i++)
            ASSERT_EQ((float)w.value(i / w.lanes, panel * w.lanes + i % w.lanes), unpacked[i]);
    }
}

void check_one_row(const Int8Kernels& kernels, const BlockWeights& w) {
    for (int count = 2; count <= 3; count++) {
        if (!kernels.block_row[count - 2][w.bits / 8]) continue;
        SCOPED_TRACE(count);
        const BlockInputs in(kernels, w, count);
        Guarded<float> out(w.pair);
        BlockTile tile = w.tile(0);
        in.set(&tile);
        tile.out = out.data();
        kernels.block_row[count - 2][w.bits / 8](tile);
        expect_rows(w, in, 1, 0, w.pair, count == 2 ? 0x1p-15 : 0, out);
    }
}

// block_byte_rows and block_bytes against the bytes' meaning, value(k, n) a weight.
void check_byte_rows(const Int8Kernels& kernels, const BlockWeights& w, size_t panel) {
    const size_t lanes = w.lanes, k = w.k, block = w.block, blocks = w.blocks;
    const size_t all = kernels.byte_rows, bits = w.bits;
    for (size_t rows : {all, (size_t)1, all - 1}) {
        Guarded<float> a((rows - 1) * (k + 3) + k), sums(all * blocks);
        for (float& x : a) x = (float)uniform(-1000, 1000) / 300;
        a[k - 1] = 0.f;
        for (float& x : sums) x = (float)uniform(-9, 9);
        Guarded<int8_t> values(all * k);
        Guarded<ByteRows::Block> units(all * blocks);
        const size_t beside = kernels.bytes_beside;
        const ByteRows bytes = {values.data(), units.data(), beside};
        ASSERT_TRUE(
            kernels.block_byte_rows(a.data(), (ptrdiff_t)k + 3, rows, k, block, (int)bits, bytes));
        const auto rounded = [&](size_t m, size_t kk) {
            return (double)values[(kk / beside * all + m) * beside + kk % beside] *
                   units[kk / block * all + m].unit;
        };
        for (size_t m = 0; m < all; m++) {
            for (size_t kk = 0; kk < k; kk++) {
                const double x = m < rows ? a[m * (k + 3) + kk] : 0;
                ASSERT_NEAR(x, rounded(m, kk), units[kk / block * all + m].unit * 0.5001);
            }
        }
        if (kernels.block_bytes[bits / 8]) {
            Guarded<float> out(all * lanes);
            BlockTile tile = w.tile(panel);
            tile.bytes = &bytes, tile.a_sum = sums.data(), tile.a_sum_row = (ptrdiff_t)blocks;
            tile.out = out.data(), tile.out_row = (ptrdiff_t)lanes;
            kernels.block_bytes[bits / 8](tile);
            for (size_t i = 0; i < out.size(); i++) {
                const size_t m = i / lanes, n = panel * lanes + i % lanes;
                double want = 0, magnitude = 1;
                for (size_t kk = 0; kk < k; kk++) {
                    const double offset = w.offset[kk / block * w.pair + n];
                    const double x = rounded(m, kk) * (w.value(kk, n) - offset);
                    want += x, magnitude += fabs(x);
                    if (kk % block == 0) want += offset * sums[m * blocks + kk / block];
                }
                ASSERT_NEAR(want, out[i], magnitude * 1e-5) << m << " of " << rows << " rows";
            }
        }
        for (float bad : {INFINITY, NAN}) {
            a[(rows - 1) * (k + 3) + 1] = bad;
            ASSERT_FALSE(kernels.block_byte_rows(a.data(), (ptrdiff_t)k + 3, rows, k, block,
                                                 (int)bits, bytes));
        }
    }
}

}  // namespace

TEST(Int8Kernels, weights_in_blocks) {
    for_all([](const Int8Kernels& kernels) {
        for (size_t k : {8, 32, 104, 256}) {
            for (size_t block : {16, 32, 128}) {
                for (int form = 0; form < 8; form++) {
                    const BlockWeights w(form % 2 ? 8 : 4, k, block, kernels.lanes, form / 2 % 2,
                                         form / 4);
                    SCOPED_TRACE(std::to_string(k) + " values, blocks of " + std::to_string(block) +
                                 ", form " + std::to_string(form));
                    check_few_rows(kernels, w);
                    check_one_row(kernels, w);
                    for (size_t panel = 0; panel < 2; panel++) check_byte_rows(kernels, w, panel);
                    if (testing::Test::HasFatalFailure()) return;
                }
            }
        }
    });
}

namespace {

// The kernels of these features that the compiler made.
const Int8Kernels& compiled_kernels() {
    const Int8Kernels* compiled = vector_kernels(best_isa(host_cpu_features())).int8;
    for_kernel_rows<Int8Kernels>(
        KernelSlot::int8, host_cpu_features(),
        [&](const KernelRow&, const Int8Kernels& kernels) { compiled = &kernels; });
    return *compiled;
}

void expect_same_bits(BlockTileKernel one, BlockTileKernel other, BlockTile tile, size_t count) {
    std::vector<float> a(count), b(count);
    tile.out = a.data();
    one(tile);
    tile.out = b.data();
    other(tile);
    ASSERT_EQ(0, memcmp(a.data(), b.data(), count * sizeof(float)));
}

void expect_compiled_bits(const Int8Kernels& kernels, const BlockWeights& w) {
    const Int8Kernels& compiled = compiled_kernels();
    const size_t form = w.bits / 8, all = kernels.byte_rows;
    BlockTile tile = w.tile(1);
    tile.out_row = (ptrdiff_t)w.lanes;
    const BlockInputs in(kernels, w, 3);
    in.set(&tile);
    for (size_t i = 0; i < kBlockRows; i++) {
        const size_t count = (i + 1) * w.lanes;
        expect_same_bits(kernels.block_tile[i][form], compiled.block_tile[i][form], tile, count);
        if (kernels.block_dot[i][form])
            expect_same_bits(kernels.block_dot[i][form], compiled.block_dot[i][form], tile, count);
    }
    if (kernels.block_bytes[form]) {
        std::vector<float> out[2];
        for (int e = 0; e < 2; e++) {
            const Int8Kernels* const each = e ? &compiled : &kernels;
            std::vector<int8_t> values(all * w.k);
            std::vector<ByteRows::Block> units(all * w.blocks);
            std::vector<float> sums(all * w.blocks);
            for (size_t i = 0; i < sums.size(); i++) sums[i] = 0.3f * (float)(i % 19);
            const ByteRows bytes = {values.data(), units.data(), (size_t)each->bytes_beside};
            each->block_byte_rows(in.a.data(), (ptrdiff_t)in.row, kBlockRows, w.k, w.block,
                                  (int)w.bits, bytes);
            std::vector<float>& to = out[e];
            to.resize(all * w.lanes);
            tile.bytes = &bytes, tile.a_sum = sums.data(), tile.out = to.data();
            each->block_bytes[form](tile);
        }
        ASSERT_EQ(0, memcmp(out[0].data(), out[1].data(), all * w.lanes * sizeof(float)));
    }
    for (int count = 2; count <= 3 && kernels.block_row[count - 2][form]; count++) {
        BlockTile row = w.tile(0);
        const BlockInputs digits(kernels, w, count);
        digits.set(&row);
        expect_same_bits(kernels.block_row[count - 2][form], compiled.block_row[count - 2][form],
                         row, w.pair);
    }
}

}  // namespace

TEST(Int8Kernels, weights_in_blocks_have_the_same_bits_by_hand) {
    const Int8Kernels& kernels = *host_kernel_set().int8;
    for (size_t k : {8, 72, 256, 896})
        for (size_t block : {16, 32, 128})
            for (int form = 0; form < 8; form++)
                expect_compiled_bits(kernels, BlockWeights(form % 2 ? 8 : 4, k, block,
                                                           kernels.lanes, form / 2 % 2, form / 4));
}

// Each value is what the digits say, as well as f32 holds the block's largest.
TEST(Int8Kernels, digits_of_rows) {
    for_all([](const Int8Kernels& kernels) {
        const size_t k = 96, block = 32;
        Guarded<float> a(k);
        Guarded<int8_t> digits(3 * k);
        BlockDigits::Block units[3];
        const BlockDigits out = {digits.data(), units};
        for (int count = 2; count <= 3; count++) {
            for (float size : {1.f, 3e38f, 1e-30f, 1e-44f, 0.f}) {
                for (float& x : a) x = (float)uniform(-1000, 1000) / 1000 * size;
                a[40] = -size, a[41] = size;
                ASSERT_TRUE(kernels.block_digits(a.data(), k, block, 4, count, out));
                for (size_t i = 0; i < k; i++) {
                    double value = digits[i] * 256. + digits[k + i];
                    if (count == 3) value = value * 256. + digits[2 * k + i];
                    const double got = value * units[i / block].unit;
                    const double step = count == 3 ? 0x1p-22 : 0x1p-14;
                    ASSERT_NEAR(a[i], got, size * step + 1e-38) << size;
                }
            }
            for (float bad : {INFINITY, -INFINITY, NAN}) {
                a[70] = bad;
                ASSERT_FALSE(kernels.block_digits(a.data(), k, block, 8, count, out));
                a[70] = 0.f;
            }
        }
    });
}

TEST(Int8Kernels, weights_of_16_bits) {
    for_all([](const Int8Kernels& kernels) {
        const size_t lanes = kernels.lanes;
        for (size_t k : {8, 104}) {
            for (int form = 0; form < 2; form++) {  // f16, bf16
                Guarded<float> a(3 * k + k), unpacked(k * lanes);
                Guarded<uint16_t> b(k * lanes);
                for (float& x : a) x = (float)uniform(-100, 100) / 128;
                for (uint16_t& w : b) {
                    const float x = (float)uniform(-100, 100) / 64;
                    w = form ? float32_to_bfloat16(x) : float32_to_float16(x);
                }
                BlockTile tile = {};
                tile.a = a.data(), tile.a_row = (ptrdiff_t)k, tile.b = b.data();
                tile.k = tile.block = k;
                tile.out = unpacked.data(), tile.out_row = (ptrdiff_t)lanes;
                kernels.half_unpack[form](tile);
                for (size_t i = 0; i < k * lanes; i++)
                    ASSERT_EQ(form ? bfloat16_to_float32(b[i]) : float16_to_float32(b[i]),
                              unpacked[i]);
                for (size_t rows = 1; rows <= kBlockRows; rows++) {
                    Guarded<float> out(rows * lanes);
                    tile.out = out.data();
                    kernels.half_tile[rows - 1][form](tile);
                    for (size_t i = 0; i < out.size(); i++) {
                        double want = 0;
                        for (size_t kk = 0; kk < k; kk++)
                            want +=
                                (double)a[i / lanes * k + kk] * unpacked[kk * lanes + i % lanes];
                        ASSERT_NEAR(want, out[i], (double)k * 0x1p-20) << rows;
                    }
                }
            }
        }
    });
}
