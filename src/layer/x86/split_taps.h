// Convolutions of 16 channels on AMX.
#ifndef QUOLL_LAYER_X86_SPLIT_TAPS_H
#define QUOLL_LAYER_X86_SPLIT_TAPS_H

#include "layer/cpu/gemm/split_gemm.h"
#include "layer/x86/tile_loop.h"

namespace quoll {
namespace {

// Tiles 0 to 3 are the sums, 4 and 6 the operands of two taps, 5 and 7 those of one: with zeros for
// the other tap infinite values beside the window would make NaN of its sums.
void begin_taps() {
    TileConfig config = {};
    config.palette = 1;
    for (int i = 0; i < 8; i++) config.row_bytes[i] = kUnitRowBytes, config.rows[i] = kUnitRows;
    config.row_bytes[5] = kUnitRowBytes / 2, config.rows[7] = kUnitRows / 2;
    tile_configure(config);
}

template <int a, int b>
QUOLL_TILE_INLINE void add_taps(const SplitTaps& t, ptrdiff_t tap, const char* weights) {
    tile_load<b>(weights, 64);
    tile_load<a>(t.a[0] + tap, t.a_row), tile_dot_bf16<0, a, b>();
    tile_load<a>(t.a[1] + tap, t.a_row), tile_dot_bf16<1, a, b>();
    tile_load<a>(t.a[2] + tap, t.a_row), tile_dot_bf16<2, a, b>();
    tile_load<a>(t.a[3] + tap, t.a_row), tile_dot_bf16<3, a, b>();
}

void split_taps(const SplitTaps& t) {
    clear_sums();
    const char* b = t.b;
    for (int y = 0; y < t.kernel_h; y++) {
        const ptrdiff_t row = y * t.a_tap_row;
        for (int x = 0; x < t.kernel_w / 2; x++, b += kTileBytes)
            add_taps<4, 6>(t, row + x * kUnitRowBytes, b);
        if (t.kernel_w % 2 == 0) continue;
        add_taps<5, 7>(t, row + t.kernel_w / 2 * kUnitRowBytes, b);
        b += kTileBytes / 2;
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
