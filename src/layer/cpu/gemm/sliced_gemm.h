// Matrix products of f32 values on units that multiply 8-bit integers and add 32-bit ones (AMX).
//
// Values that share a scale are fixed-point numbers of 24 bits: value = scale * (65536 hi + 256 mid
// + lo), three signed slices of eight bits each. Of the nine products of two such numbers six (hi
// hi, hi mid, mid hi, mid mid, hi lo, lo hi) are added up, exactly, in three sums, one for each
// weight; the units multiply twice as many 8-bit integers as bf16 values in a time.
//
// A column of B has a scale of its own, and so has a row of A or all of them. With x and y the
// largest magnitudes of both, a product is off by at most 2^-24 (|a| y + |b| x) for the rounding to
// 24 bits and 2^-22 of x y for the products left out, which are of random sign: the root mean
// square of the latter is 2^-25 of x y. So it is as good as f32 where values are not far below the
// largest of their row; a scale for rows that differ much is not.
//
// A row whose scale is no number gives NaN; single values that are not finite count as zero. Those
// who use the kernels then multiply on vectors.
//
// Operands are laid out as tile_operands.h says.
#ifndef QUOLL_LAYER_CPU_GEMM_SLICED_GEMM_H
#define QUOLL_LAYER_CPU_GEMM_SLICED_GEMM_H

#include "layer/cpu/gemm/split_gemm.h"

namespace quoll {

enum {
    kSlicedK = 64,       // k of one step
    kSlicedTerms = 3,    // bytes of a value
    kSlicedColumns = 16  // of a panel
};
// With a larger k a sum might overflow.
enum { kSlicedMaxK = 43000 };
// The largest number, which leaves room for the rounding of a scale: its slices are at most 127.
constexpr float kSlicedOne = 0x7f7f00;
// Largest values below this have its scale, so that the inverse is finite.
constexpr float kSlicedMinPeak = 0x1p-100f;

// The scale for values up to `peak`, which is not negative; NaN if that is not finite.
inline float slice_scale(float peak) {
    return (peak > kSlicedMinPeak ? peak : kSlicedMinPeak) / kSlicedOne + (peak - peak);
}

// A's bytes of a step are 64 hi slices, 64 mid and 64 lo ones. Sums of the pair of tiles before, on
// their way to C: row m of them has the scale rows[m] * columns[n].
struct SlicedEpilogue {
    SplitStore store;  // of 16 columns, f32, in groups of 16
    const float *row_scales, *column_scales;
    int32_t* sums;         // [2][3][16][16]: tile, weight, row, column; aligned to 64 bytes
    int tiles, tile_rows;  // tiles: 0 where there are no sums
};
// Sums of the tiles and a panel [step][term][k / 4][column][k % 4] are left in the units; those of
// the call before go to epilogue.sums and from there to C between the multiplications.
typedef void (*SlicedChainKernel)(const TileOperands& tile, const SlicedEpilogue& epilogue);

// Channel c of pixel p is src[p * src_pixel + c / pack * src_block + c % pack]. Its slices go to
// dst[p * dst_pixel + term * 64 + the place of c among 64], which is the same in all kernels;
// channels from `channels` to 63 are zero. scales[p * scale_step]: of pixel p. dst is aligned to 64
// bytes and dst_pixel a multiple of 64.
struct SlicedInput {
    const float* src;
    ptrdiff_t src_pixel, src_block;
    int channels;
    size_t pixels;
    const float* scales;
    int scale_step;     // 0 or 1
    float least, most;  // kernels of parts: only magnitudes above least, up to most count
    int8_t* dst;
    ptrdiff_t dst_pixel;
};
typedef void (*SlicedInputKernel)(const SlicedInput& input);
// Where byte i of 64 lies that are laid out in order: slices of value slice_position(i) of a step.
inline int slice_position(int i) { return i % 16 / 4 * 16 + i / 16 * 4 + i % 4; }

// Windows x to x + count of kSlicedWindowPixel planar channels, some rows of the input high: byte
// (i * row.kernel + p) * kSlicedWindowPixel + c of a term is the slice of channel c of pixel p of
// row i, zero beyond the channels and where rows[i] is null, and beyond all that up to 64. Channel
// c of pixel p is rows[i][p + c * src_block]. Windows are 192 bytes apart.
enum { kSlicedWindowPixel = 4, kSlicedWindowRows = 16 };
struct SlicedWindows {
    const float* rows[kSlicedWindowRows];
    int num_rows;
    ptrdiff_t src_block;
    int channels;
    WindowRow row;
    ptrdiff_t x;
    size_t count;
    float scale;
    float least, most;  // as of SlicedInput, for all kernels
    int8_t* dst;
};

// The scale of each pixel, by all its channels.
struct SlicedPeaks {
    const float* src;
    ptrdiff_t src_pixel, src_block;
    int channels;
    size_t pixels;
    float* scales;
};
typedef void (*SlicedPeakKernel)(const SlicedPeaks& peaks);

// The crest factor of values, counting only finite ones of at most `most` in magnitude.
struct CrestFactor {
    float peak = 0;      // the largest magnitude
    double squares = 0;  // their sum
    double count = 0;    // of those other than zero
    bool finite = true;  // whether all are, beyond `most` too
    // The largest magnitude over the root mean square.
    double ratio() const;
    void add(const CrestFactor& other);
    // Becomes the larger of the two; finite if both are.
    void widen(const CrestFactor& other);
};

// Packs a panel from column n's values src[n * ld + order[k]], zero where the order is negative and
// from `columns` on. No other value becomes zero: infinity times it is not NaN; `order` has 64
// entries per step. Gives the crest factor of the column that has the largest.
struct SlicedPanel {
    const float* src;
    size_t ld;
    const int* order;
    size_t steps;
    int columns;
    int8_t* dst;    // steps * kSlicedTerms * 1024 bytes, aligned to 64
    float* scales;  // 16, times the least weight of the products, 65536
};

// Multiplies one row of A by consecutive panels, on vectors: a row leaves tiles mostly empty, and
// reading B takes longer than all else.
enum { kSlicedRowPanels = 4 };
struct SlicedRow {
    const int8_t* a;  // its slices, 192 bytes per step
    size_t steps;
    const int8_t* b;
    int panels;  // kSlicedRowPanels at most
    float row_scale;
    const float* column_scales;
    float* results;  // [panels][16]
};

struct SlicedGemmKernels {
    void (*begin)(int tile_rows);
    void (*end)();
    SlicedChainKernel chain[kUnitTiles];                // [tiles - 1]
    void (*end_chain)(const SlicedEpilogue& epilogue);  // the last sums of a chain; there are some
    SlicedInputKernel input[2][3];                      // [of parts][pack 4, 8, 16]
    void (*windows)(const SlicedWindows& windows);
    SlicedPeakKernel peaks[3];
    CrestFactor (*crest)(const float* values, size_t count, float most);
    CrestFactor (*pack)(const SlicedPanel& panel);
    void (*row)(const SlicedRow& row);
    const SplitStoreKernels* to_c;
};

}  // namespace quoll

#endif
