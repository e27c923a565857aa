// Operands of the kernels for tile units: the part of their contracts that does not depend on the
// type of the values.
//
// A unit multiplies rows of 64 bytes of A by as many bytes of each of 16 columns of B. B is packed
// into panels. A is read through a list of places, one for each such step of k, so that the taps of
// a convolution's window are places in one copy of its input.
#ifndef QUOLL_LAYER_CPU_GEMM_TILE_OPERANDS_H
#define QUOLL_LAYER_CPU_GEMM_TILE_OPERANDS_H

#include <stddef.h>

namespace quoll {

// Whether products take them: a library without has no kernels for them, and nothing that drives
// these.
#if defined(QUOLL_NO_TILE_UNITS)
constexpr bool kHasTileUnits = false;
#else
constexpr bool kHasTileUnits = true;
#endif

enum {
    kUnitRowBytes = 64,
    kUnitRows = 16,     // rows of a tile at most
    kUnitColumns = 32,  // of a full panel; a single-vector one has 16
    kUnitTiles = 2      // tiles of rows that a kernel takes at most
};

// Row m of tile i has for step s the bytes from a + i * a_tile + m * a_row + steps[s] on, or, where
// the unit takes neighbouring rows side by side, every a_word bytes a word of a_row from there on.
struct TileOperands {
    const char* a;
    ptrdiff_t a_row, a_tile;  // bytes, as the steps
    int tile_rows;
    const ptrdiff_t* steps;
    size_t num_steps;  // at least 1
    const char* b;     // a panel
    // What is fetched into the second-level cache meanwhile, a part of the next panel; or null. In
    // order: what is soon read by this product itself.
    const char* next;
    size_t next_bytes;
    bool next_in_order;
    ptrdiff_t a_word;  // 0 where a row's bytes lie together; else a_row is 4 or 8
};

// Windows along a row of `width` pixels; window 0 begins `before` pixels ahead of the first one.
struct WindowRow {
    int kernel, stride, before, width;
};
// A run of neighbouring windows: they cover this many pixels from `first` on, of which those from
// `left` to `right` exist.
struct WindowRun {
    size_t windows;
    ptrdiff_t first, pixels, left, right;
};
// Calls f(done, run) for windows x to x + count, in runs; `done` windows were in earlier runs. A
// run covers at most `room` pixels, which must be at least those of one window.
template <class F>
void for_windows(const WindowRow& row, ptrdiff_t x, size_t count, size_t room, F f) {
    const size_t most = (room - row.kernel) / row.stride + 1;
    for (size_t done = 0; done < count; done += most) {
        WindowRun run;
        run.windows = count - done < most ? count - done : most;
        run.first = (ptrdiff_t)(x + done) * row.stride - row.before;
        run.pixels = (ptrdiff_t)(run.windows - 1) * row.stride + row.kernel;
        const auto inside = [&](ptrdiff_t p) {
            return p < 0 ? 0 : p < run.pixels ? p : run.pixels;
        };
        run.left = inside(-run.first);
        run.right = inside(row.width - run.first);
        if (run.right < run.left) run.right = run.left;
        f(done, run);
    }
}

}  // namespace quoll

#endif
