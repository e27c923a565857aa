// Compiled once per ISA, and once more for each that has dot products of 8-bit values.
#include "layer/cpu/common/isa_table.h"
#include "layer/cpu/int8/block_generic.h"
#include "layer/cpu/int8/generic.h"
#include "layer/cpu/int8/winograd_generic.h"

namespace quoll {

#define QUOLL_INT8_TEXT_1(name) #name
#define QUOLL_INT8_TEXT(name) QUOLL_INT8_TEXT_1(name)

// The inputs of Int8Kernels::bytes.
#if HWY_TARGET == HWY_NEON
#define QUOLL_INT8_BYTES(type)                                                \
    {                                                                         \
        &input_planar<type, uint8_t>, &input_packed<type, 4, uint8_t>,        \
            &input_packed<type, 8, uint8_t>, &input_packed<type, 16, uint8_t> \
    }
#else
#define QUOLL_INT8_BYTES(type) \
    {}
#endif

extern const Int8Kernels QUOLL_ISA_TABLE(int8_kernels);
const Int8Kernels QUOLL_ISA_TABLE(int8_kernels) = {
    QUOLL_INT8_TEXT(QUOLL_ISA_NAME),
    s::kLanes,
    kTileVectors,
    kTileRows,
    kWordK,
    kOffset,
    -128,
    kByteRows,
    4,
    false,
    0,
    s::kHasSaturatedBytes,
    kHasSlopes,
    false,
    nullptr,
    QUOLL_INT8_BYTES(float),
    QUOLL_INT8_BYTES(int8_t),
    nullptr,
    {},
#define QUOLL_INT8_EACH(tile, vectors)                                                   \
    {tile<vectors, 1>(),  tile<vectors, 2>(),  tile<vectors, 3>(),  tile<vectors, 4>(),  \
     tile<vectors, 5>(),  tile<vectors, 6>(),  tile<vectors, 7>(),  tile<vectors, 8>(),  \
     tile<vectors, 9>(),  tile<vectors, 10>(), tile<vectors, 11>(), tile<vectors, 12>(), \
     tile<vectors, 13>(), tile<vectors, 14>(), tile<vectors, 15>(), tile<vectors, 16>()},
#define QUOLL_INT8_TILES(name, vectors) QUOLL_INT8_EACH(tile_or_null, vectors)
#define QUOLL_INT8_S16(name, vectors) QUOLL_INT8_EACH(s16_tile_or_null, vectors)
#define QUOLL_INT8_INPUT(name, type) \
    {&input_planar<type>, &input_packed<type, 4>, &input_packed<type, 8>, &input_packed<type, 16>},
#define QUOLL_BLOCK_TILES(name)  \
    {{&name<4, 1>, &name<8, 1>}, \
     {&name<4, 2>, &name<8, 2>}, \
     {&name<4, 3>, &name<8, 3>}, \
     {&name<4, 4>, &name<8, 4>}},
#define QUOLL_BLOCK_DOTS(name)     \
    {{name<4, 1>(), name<8, 1>()}, \
     {name<4, 2>(), name<8, 2>()}, \
     {name<4, 3>(), name<8, 3>()}, \
     {name<4, 4>(), name<8, 4>()}},
#define QUOLL_BLOCK_BYTES(name) {name<4>(), name<8>()},
#define QUOLL_BLOCK_ROWS(name) {{name<4, 2>(), name<8, 2>()}, {name<4, 3>(), name<8, 3>()}},
#define QUOLL_BLOCK_UNPACK(name) {&name<4>, &name<8>},
#define QUOLL_INT8(type, name) &name,
#include "layer/cpu/int8/kernels.inc"
#undef QUOLL_INT8_EACH
#undef QUOLL_INT8_TILES
#undef QUOLL_INT8_S16
#undef QUOLL_INT8_INPUT
#undef QUOLL_BLOCK_TILES
#undef QUOLL_BLOCK_DOTS
#undef QUOLL_BLOCK_BYTES
#undef QUOLL_BLOCK_ROWS
#undef QUOLL_BLOCK_UNPACK
#undef QUOLL_INT8
};

}  // namespace quoll
