// Tiles of two and three rows by those of one, for a small library: most products have few of them.
#include "layer/cpu/gemm/gemm.h"

#if defined(QUOLL_BUILT_neon_assembly) && defined(QUOLL_FEW_KERNELS)

namespace quoll {

static void run_one_by_one(const GemmTile& tile, int rows, GemmTileKernel row) {
    GemmTile one = tile;
    for (int m = 0; m < rows; m++) {
        row(one);
        one.a += one.a_row, one.init += one.init_row, one.c += one.c_row;
    }
}

#define QUOLL_ONE_BY_ONE(columns, rows)                                                   \
    extern "C" void quoll_gemm_f32_1x##columns##_neon(const GemmTile& tile);              \
    extern "C" void quoll_gemm_f32_##rows##x##columns##_one_by_one(const GemmTile& tile); \
    void quoll_gemm_f32_##rows##x##columns##_one_by_one(const GemmTile& tile) {           \
        run_one_by_one(tile, rows, quoll_gemm_f32_1x##columns##_neon);                    \
    }
QUOLL_ONE_BY_ONE(8, 2)
QUOLL_ONE_BY_ONE(8, 3)
QUOLL_ONE_BY_ONE(16, 2)
QUOLL_ONE_BY_ONE(16, 3)

}  // namespace quoll

#endif
