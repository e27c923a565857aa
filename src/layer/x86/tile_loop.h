// Common to the kernels on AMX, whatever the values are.
//
// Up to 2 x 2 tiles of sums (tiles 0 to 3) meet two tiles of A (4, 5) and two of B (6, 7). From
// step to step of the products one operand changes, so that six products take 14 loads for 24
// multiplications.
#ifndef QUOLL_LAYER_X86_TILE_LOOP_H
#define QUOLL_LAYER_X86_TILE_LOOP_H

#include "layer/cpu/gemm/tile_operands.h"
#include "layer/x86/fetcher.h"
#include "layer/x86/tile_unit.h"

namespace quoll {
namespace {

constexpr int kTileBytes = 1024;  // of B: 64 bytes of k by 16 columns

// k_bytes: those of a row of A that count, a multiple of 4. The last b_tiles tiles are B's.
void begin_tiles(int tile_rows, int k_bytes, int b_tiles) {
    TileConfig config = {};
    config.palette = 1;
    for (int i = 0; i < 8; i++) {
        const bool is_a = i == 4 || i == 5, is_b = i >= 8 - b_tiles;
        config.row_bytes[i] = (uint16_t)(is_a ? k_bytes : 64);
        config.rows[i] = (uint8_t)(is_b ? k_bytes / 4 : tile_rows);
    }
    tile_configure(config);
}

void end_tiles() { tile_release(); }

// Sums that are in the tiles when a step begins: before the step adds to it, each tile is stored
// and begins anew. Rows of both columns follow each other.
struct StoreBefore {
    char* to;
    ptrdiff_t second;  // from the first tile of rows to the second
    const char* from;  // what the tiles begin with; null: zeros

    template <int sum>
    QUOLL_TILE_INLINE void turn() const {
        const ptrdiff_t place = (sum < 2 ? 0 : second) + sum % 2 * 64;
        tile_store<sum>(to + place, 128);
        if (from)
            tile_load<sum>(from + place, 128);
        else
            tile_zero<sum>();
    }
};
struct KeepSums {
    template <int sum>
    QUOLL_TILE_INLINE void turn() const {}
};
struct NoWork {
    QUOLL_TILE_INLINE void operator()() const {}
};

// The operands of one step of k. Loads stand directly before their first use, and multiplications
// in an order that is done first with the tile that is loaded next.
// Values: how B lies, and how it is multiplied.
template <class Values, int tiles, int vectors>
struct Step {
    const char *a, *b;
    ptrdiff_t a_row_bytes, a_tile;

    template <int tile, int term>
    QUOLL_TILE_INLINE void load_a() const {
        if constexpr (tile < tiles)
            tile_load<4 + tile>(a + tile * a_tile + term * kUnitRowBytes, a_row_bytes);
    }
    template <int vector, int term>
    QUOLL_TILE_INLINE void load_b() const {
        if constexpr (vector < vectors) {
            tile_load<6 + vector>(b + Values::template b_place<vectors>(term, vector),
                                  Values::template kRowBytesOfB<vectors>);
        }
    }
    template <int tile, int vector>
    QUOLL_TILE_INLINE void dot() const {
        if constexpr (tile < tiles && vector < vectors)
            Values::template dot<tile * 2 + vector, 4 + tile, 6 + vector>();
    }
    // New tiles of one operand; the name says what changes next.
    template <int term>
    QUOLL_TILE_INLINE void a_before_b() const {
        load_a<0, term>(), dot<0, 0>(), load_a<1, term>(), dot<1, 0>(), dot<0, 1>(), dot<1, 1>();
    }
    template <int term>
    QUOLL_TILE_INLINE void b_before_a() const {
        load_b<0, term>(), dot<0, 0>(), load_b<1, term>(), dot<0, 1>(), dot<1, 0>(), dot<1, 1>();
    }
    template <int term>
    QUOLL_TILE_INLINE void b_before_b() const {
        load_b<0, term>(), dot<0, 0>(), dot<1, 0>(), load_b<1, term>(), dot<0, 1>(), dot<1, 1>();
    }
    template <int a_term, class Before, class Work>
    QUOLL_TILE_INLINE void first(const Before& before, const Work& work) const {
        before.template turn<0>();
        load_b<0, 0>(), load_a<0, a_term>(), dot<0, 0>();
        before.template turn<1>();
        load_b<1, 0>(), dot<0, 1>();
        work();
        before.template turn<2>();
        load_a<1, a_term>(), dot<1, 0>();
        before.template turn<3>();
        dot<1, 1>();
    }
    // work: what is done between the multiplications.
    template <int products, class Before = KeepSums, class Work = NoWork>
    QUOLL_TILE_INLINE void run(const Before& before = Before(), const Work& work = Work()) const {
        if constexpr (products == 6) {
            first<2>(before, work), a_before_b<1>(), b_before_a<1>(), a_before_b<0>(),
                b_before_b<0>(), b_before_b<2>();
        } else if constexpr (products == 3) {
            first<1>(before, work), a_before_b<0>(), b_before_b<1>();
        } else if constexpr (products == 2) {
            first<1>(before, work), a_before_b<0>();
        } else {
            first<0>(before, work);
        }
    }
};

// From a row that all rows begin with.
template <int tiles, int vectors>
QUOLL_TILE_INLINE void start_sums(const void* row) {
    const char* from = (const char*)row;
    tile_load<0>(from, 0);
    if constexpr (vectors == 2) tile_load<1>(from + 64, 0);
    if constexpr (tiles == 2) tile_load<2>(from, 0);
    if constexpr (tiles == 2 && vectors == 2) tile_load<3>(from + 64, 0);
}

QUOLL_TILE_INLINE void clear_sums() {
    tile_zero<0>(), tile_zero<1>(), tile_zero<2>(), tile_zero<3>();
}

// From where store_sums has left them.
template <int tiles, int vectors>
QUOLL_TILE_INLINE void load_sums(const void* sums, int tile_rows) {
    constexpr ptrdiff_t row = vectors * 64;
    const char *from = (const char*)sums, *second = from + tile_rows * row;
    tile_load<0>(from, row);
    if constexpr (vectors == 2) tile_load<1>(from + 64, row);
    if constexpr (tiles == 2) tile_load<2>(second, row);
    if constexpr (tiles == 2 && vectors == 2) tile_load<3>(second + 64, row);
}

template <int tiles, int vectors>
QUOLL_TILE_INLINE void store_sums(void* sums, int tile_rows) {
    constexpr ptrdiff_t row = vectors * 64;
    char *to = (char*)sums, *second = to + tile_rows * row;
    // The order in which they are complete.
    tile_store<0>(to, row);
    if constexpr (tiles == 2) tile_store<2>(second, row);
    if constexpr (vectors == 2) tile_store<1>(to + 64, row);
    if constexpr (tiles == 2 && vectors == 2) tile_store<3>(second + 64, row);
}

}  // namespace
}  // namespace quoll

#endif
