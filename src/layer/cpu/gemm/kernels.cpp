// Compiled once per ISA.
#include "layer/cpu/common/few_kernels.h"
#include "layer/cpu/common/isa_table.h"
#include "layer/cpu/gemm/generic.h"
#include "layer/cpu/gemm/narrow_generic.h"
#include "layer/cpu/gemm/planar_generic.h"
#include "layer/cpu/gemm/tile_init.h"

namespace quoll {

#define QUOLL_GEMM_TILES(vectors)                                                                  \
    {                                                                                              \
        tile_or_null<vectors, 1>(), tile_or_null<vectors, 2>(), tile_or_null<vectors, 3>(),        \
            tile_or_null<vectors, 4>(), tile_or_null<vectors, 5>(), tile_or_null<vectors, 6>(),    \
            tile_or_null<vectors, 7>(), tile_or_null<vectors, 8>(), tile_or_null<vectors, 9>(),    \
            tile_or_null<vectors, 10>(), tile_or_null<vectors, 11>(), tile_or_null<vectors, 12>(), \
            tile_or_null<vectors, 13>(), tile_or_null<vectors, 14>(), tile_or_null<vectors, 15>(), \
            tile_or_null<vectors, 16>()                                                            \
    }

static constexpr GemmNarrowKernels kNarrow = kFewKernels ? GemmNarrowKernels() : narrow_kernels();

// In builds with few kernels, the one for single values also handles blocks of several vectors.
template <size_t pack>
static constexpr GemmInitKernel init_kernel() {
    return kFewKernels && pack > s::kLanes ? nullptr : &gemm_init<pack>;
}

extern const GemmKernels QUOLL_ISA_TABLE(gemm_kernels);
const GemmKernels QUOLL_ISA_TABLE(gemm_kernels) = {
    s::kLanes,
    kTileVectors,
    kTileRows,
    s::kLanes,
    2,
    false,
    {QUOLL_GEMM_TILES(1), QUOLL_GEMM_TILES(2), QUOLL_GEMM_TILES(3), QUOLL_GEMM_TILES(4)},
#define QUOLL_GEMM_PACK(name) &name,
#define QUOLL_GEMM_VECTOR(name) &name,
#define QUOLL_GEMM_INIT(name, pack) init_kernel<pack>(),
#include "layer/cpu/gemm/kernels.inc"
#undef QUOLL_GEMM_PACK
#undef QUOLL_GEMM_VECTOR
#undef QUOLL_GEMM_INIT
    &gemm_store_columns,
    &kNarrow,
    {planar_or_null<kPlanarColumns>(), planar_or_null<2 * kPlanarColumns>()},
};
#undef QUOLL_GEMM_TILES

}  // namespace quoll
