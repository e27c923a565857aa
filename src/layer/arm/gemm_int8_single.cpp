// Tiles of 5 to 8 rows of a single-vector panel of bytes, beside full panels that take so many by
// SVE: those of gemm_s8_neon.inc twice. No network spends its time there.
#include "layer/cpu/int8/int8.h"

#if defined(QUOLL_BUILT_sve_assembly) && !defined(QUOLL_NO_INT8)

namespace quoll {

extern "C" void quoll_gemm_s8_1x4_neon(const Int8Tile& tile);
extern "C" void quoll_gemm_s8_2x4_neon(const Int8Tile& tile);
extern "C" void quoll_gemm_s8_3x4_neon(const Int8Tile& tile);
extern "C" void quoll_gemm_s8_4x4_neon(const Int8Tile& tile);

static void run_twice(Int8Tile tile, Int8TileKernel rest) {
    enum { kRows = 4, kColumns = 4 };
    quoll_gemm_s8_4x4_neon(tile);
    tile.a += kRows * tile.a_row;
    tile.sums += kRows * kColumns;
    rest(tile);
}

extern "C" void quoll_gemm_s8_5x4_neon(const Int8Tile& tile) {
    run_twice(tile, quoll_gemm_s8_1x4_neon);
}
extern "C" void quoll_gemm_s8_6x4_neon(const Int8Tile& tile) {
    run_twice(tile, quoll_gemm_s8_2x4_neon);
}
extern "C" void quoll_gemm_s8_7x4_neon(const Int8Tile& tile) {
    run_twice(tile, quoll_gemm_s8_3x4_neon);
}
extern "C" void quoll_gemm_s8_8x4_neon(const Int8Tile& tile) {
    run_twice(tile, quoll_gemm_s8_4x4_neon);
}

}  // namespace quoll
#endif
