// The kernels of int8_units.h on SME.
#include "layer/cpu/int8/int8_units.h"

#if defined(QUOLL_BUILT_sme_assembly) && !defined(QUOLL_NO_INT8)
#include <algorithm>

#include "layer/arm/int8_unit_offsets.h"
#include "layer/arm/split_tile_offsets.h"

extern "C" unsigned quoll_vector_bytes_sme();
extern "C" void quoll_gemm_s8_32x32_sme(const quoll::Int8UnitTile* list, size_t count, size_t last,
                                        size_t width);

namespace quoll {

namespace {

// Its fields follow those of TileOperands.
static_assert(sizeof(TileOperands) == INT8_UNIT_STEP_K_GROUPS &&
                  INT8_UNIT_INIT == INT8_UNIT_STEP_K_GROUPS + sizeof(size_t) &&
                  INT8_UNIT_SUMS == INT8_UNIT_INIT + sizeof(int32_t*) &&
                  INT8_UNIT_B_PAIR == INT8_UNIT_SUMS + sizeof(int32_t*) &&
                  INT8_UNIT_B_COLUMNS == INT8_UNIT_B_PAIR + sizeof(ptrdiff_t) &&
                  INT8_UNIT_SIZE == sizeof(Int8UnitTile),
              "Int8UnitTile's fields are not where INT8_UNIT_INIT and the like say");

// Whether sums are right: emulators exist whose SMOPA is not (qemu 7.2; 10.0 is right).
bool multiplies() {
    enum { kRows = 2, kColumns = 8, kGroups = 2 };
    int8_t a[kGroups][kRows][4], b[kColumns][kGroups][4];
    int32_t sums[kRows][kColumns], init[kColumns] = {};
    for (size_t i = 0; i < sizeof(a); i++) ((int8_t*)a)[i] = (int8_t)(i + 1);
    for (size_t i = 0; i < sizeof(b); i++) ((int8_t*)b)[i] = (int8_t)(3 * i - 100);
    const ptrdiff_t step = 0;
    Int8UnitTile tile = {};
    tile.a = (const char*)a, tile.b = (const char*)b;
    tile.a_row = 4, tile.a_word = sizeof(a[0]), tile.tile_rows = kRows;
    tile.steps = &step, tile.num_steps = 1, tile.step_k_groups = kGroups;
    tile.init = init, tile.sums = sums[0];
    tile.b_pair = sizeof(b);
    quoll_gemm_s8_32x32_sme(&tile, 1, 1, kColumns);
    for (int m = 0; m < kRows; m++)
        for (int n = 0; n < kColumns; n++)
            for (int k = 0; k < 4 * kGroups; k++)
                sums[m][n] -= a[k / 4][m][k % 4] * b[n][k / 4][k % 4];
    const int32_t* const all = sums[0];
    return std::all_of(all, all + kRows * kColumns, [](int32_t x) { return x == 0; });
}

int lanes() {
    static const int words = (int)quoll_vector_bytes_sme() / 4;
    static const bool usable = words <= kUnitRows && multiplies();
    return usable ? words : 0;
}

constexpr Int8UnitKernels kernels_of_lists() {
    Int8UnitKernels kernels = {};
    kernels.name = "sme";
    kernels.list = &quoll_gemm_s8_32x32_sme;
    kernels.lanes = &lanes;
    return kernels;
}

}  // namespace

extern const Int8UnitKernels gemm_s8_32x32_sme;
const Int8UnitKernels gemm_s8_32x32_sme = kernels_of_lists();

}  // namespace quoll
#endif
