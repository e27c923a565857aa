// Drivers of the gemm kernels: packing of B, cache blocking, threads, bias and activation.
#ifndef QUOLL_LAYER_CPU_GEMM_GEMM_RUN_H
#define QUOLL_LAYER_CPU_GEMM_GEMM_RUN_H

#include "layer/cpu/common/packing.h"
#include "layer/cpu/gemm/gemm.h"
#include "layer/cpu/unary/fused_activation.h"
#include "quoll/mat.h"

namespace quoll {

// ---------------------------------------------------------------- B

// B in panels: panel p begins p * k * lanes * vectors values into it. The last panel is only as
// wide as its columns need; this gives the width for the last `left` columns.
size_t gemm_panel_width(const GemmKernels& kernels, size_t left);
size_t gemm_packed_size(const GemmKernels& kernels, size_t n, size_t k);  // floats
// The number of floats that this many values of B take.
inline size_t gemm_b_size(const GemmKernels& kernels, size_t values) {
    return values * kernels.halves / 2;
}
// Packs B; value (k, n) is at src[k * ld + n] (row-major) or src[n * ld + k].
void gemm_pack(const GemmKernels& kernels, const float* src, size_t ld, bool row_major, size_t n,
               size_t k, float* packed);
// Packs B; value (k, n) is at src[n * ld + order[k]].
void gemm_pack_ordered(const GemmKernels& kernels, const float* src, size_t ld, const int* order,
                       size_t n, size_t k, float* packed);
// The inverse of gemm_pack for floats: value (k, n) goes to dst[n * ld + k] with ld = k.
void gemm_unpack(const GemmKernels& kernels, const float* packed, size_t n, size_t k, float* dst);
// The number of floats that GemmProblem::bias must have: n rounded up to whole panels.
size_t gemm_bias_size(const GemmKernels& kernels, size_t n);

// The same into new Mats, empty if memory runs out: all panels; and a bias, zeros if `bias` is
// null.
Mat gemm_packed(const GemmKernels& kernels, const float* src, size_t ld, bool row_major, size_t n,
                size_t k, Allocator* allocator = nullptr);
Mat gemm_bias(const GemmKernels& kernels, const float* bias, size_t n,
              Allocator* allocator = nullptr);

// ---------------------------------------------------------------- the product

// A part of k whose panel rows stay in cache while many rows of A are multiplied by them. block_k
// is the same for all its blocks; without blocks it adds nothing.
struct GemmSection {
    const GemmBlock* blocks;
    size_t num_blocks, block_k;
    ptrdiff_t block_step;  // as of GemmTile
};

// `rows` rows of C (at most max_rows): row m reads A at a + m * a_row through the sections of
// `table`, and is written to c + m * c_row.
struct GemmRows {
    ptrdiff_t a, c;  // floats from GemmProblem::a and ::c
    ptrdiff_t a_row, c_row;
    int rows, table;
    int alike;  // so many from here on, this one included, differ in equal steps of a and c alone
};
// Sets `alike`.
void gemm_find_alike(GemmRows* rows, size_t count);

// Column n of C lies at c + n / c_pack * c_block + n % c_pack: a row-major C has c_pack = n, a
// channel-blocked one the elempack and the step from block to block.
struct GemmProblem {
    const KernelSet* kernels;
    const float* a;
    ptrdiff_t a_k;
    const GemmSection* sections;  // [table][num_sections]
    size_t num_sections;
    const GemmRows* rows;
    size_t num_rows;
    const float* b;
    size_t n, k;
    const float* bias;  // gemm_bias_size floats, zero where there is none
    float* c;
    size_t c_pack;
    ptrdiff_t c_block;
    const float*
        residual;  // added before the activation: laid out as C but for the step; null; or c
    ptrdiff_t residual_block;
    FusedActivation activation;
    // The matrix that is multiplied after B, of the same size and not in the cache; or null.
    const float* next_b;
    bool whole_panels;  // C's rows have room behind column n for what panels have there: anything
    size_t chunk;       // entries of `rows` whose A and C together should stay in cache; 0: all
};
void gemm_run(const GemmProblem& problem, int threads);

// A value for GemmProblem::chunk if a row takes a_floats of A and c_floats of C (0 if C is written
// only once): as many rows as half of a typical second-level cache holds; half of this processor's
// where B, of b_floats, does not stay there from one chunk to the next.
size_t gemm_chunk(const GemmKernels& kernels, size_t a_floats, size_t c_floats, size_t b_floats);

// ---------------------------------------------------------------- fetching

// The first tile of rows reads a panel of B faster than memory delivers it. If B does not stay in
// the second-level cache, each tile that is multiplied by a panel therefore prefetches a part of
// the next panel.
inline bool is_fetched(size_t bytes_of_b) { return bytes_of_b >= 1024 * 1024; }
// The part of the k rows of a panel that tile `index` prefetches, of so many tiles. A single tile
// prefetches nothing: the processor does it as well.
GemmFetch fetch_part(const void* rows, size_t k, size_t row_bytes, size_t index, size_t tiles);
// At most this many tiles, the first ones, have a part.
enum { kFetchTiles = 16 };

// ---------------------------------------------------------------- plain matrices

// C = activation(A B + bias) for A of m rows at a + i * a_row + k * a_k, C as in GemmProblem with
// rows c_row apart. m = 1 reads B at the speed of the memory.
struct GemmMatrix {
    const KernelSet* kernels;
    const float* a;
    ptrdiff_t a_row, a_k;
    size_t m, n, k;
    const float* b;
    const float* bias;
    float* c;
    ptrdiff_t c_row;
    size_t c_pack;
    ptrdiff_t c_block;
    FusedActivation activation;
    const float* next_b;  // as of GemmProblem
    bool whole_panels;    // as of GemmProblem
    // Not 0: A is in blocks of `lanes` values of k, this many values apart; k is a multiple of
    // lanes, at most kGemmMaxBlocks times.
    ptrdiff_t a_block;
    // Whether the values of A, and of C, are bf16. Tile units of one product take them
    // (product_plan.h), vectors do not.
    bool reduced_a, reduced_c;
};
enum { kGemmMaxBlocks = 512 };
void gemm_matrix(const GemmMatrix& matrix, int threads);

// The length of partition i if `length` is divided into `partitions` nearly equal ones, and where
// it begins.
inline size_t partition_length(size_t length, size_t partitions, size_t i) {
    return length / partitions + (i < length % partitions);
}
inline size_t partition_begin(size_t length, size_t partitions, size_t i) {
    return length / partitions * i + (i < length % partitions ? i : length % partitions);
}

// The largest k of a section: as many panel rows as stay close to the core.
enum { kGemmSectionK = 512 };

}  // namespace quoll

#endif
