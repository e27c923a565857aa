// Convolutions of few channels on AMX.
#ifndef QUOLL_LAYER_X86_SPLIT_TAPS_H
#define QUOLL_LAYER_X86_SPLIT_TAPS_H

#include "layer/cpu/gemm/split_gemm.h"
#include "layer/x86/tile_loop.h"

namespace quoll {
namespace {

// Tiles 0 to 3 are the sums, 4 and 5 A's, 6 and 7 B's.
void begin_taps(int step_bytes) { begin_tiles(kUnitRows, step_bytes, 2); }

template <int b>
QUOLL_TILE_INLINE void add_step(const SplitTaps& t, ptrdiff_t at, const char* weights) {
    tile_load<b>(weights, 64);
    tile_load<4>(t.a[0] + at, t.a_row), tile_dot_bf16<0, 4, b>();
    tile_load<5>(t.a[1] + at, t.a_row), tile_dot_bf16<1, 5, b>();
    tile_load<4>(t.a[2] + at, t.a_row), tile_dot_bf16<2, 4, b>();
    tile_load<5>(t.a[3] + at, t.a_row), tile_dot_bf16<3, 5, b>();
}

void split_taps(const SplitTaps& t) {
    clear_sums();
    const char* b = t.b;
    for (int y = 0, odd = 0; y < t.tap_rows; y++) {
        const ptrdiff_t row = y * t.a_tap_row;
        for (int i = 0; i < t.steps; i++, odd ^= 1, b += t.step_bytes / 4 * 64) {
            const ptrdiff_t at = row + i * t.step_bytes;
            odd ? add_step<7>(t, at, b) : add_step<6>(t, at, b);
        }
    }
    tile_store<0>(t.sums, 64);
    tile_store<1>(t.sums + 256, 64);
    tile_store<2>(t.sums + 512, 64);
    tile_store<3>(t.sums + 768, 64);
}

const SplitTapKernels kSplitTaps = {&begin_taps, &split_taps};

}  // namespace
}  // namespace quoll

#endif
