// The kernels of int8_units.h on AMX.
#include "layer/cpu/int8/int8_units.h"
#include "layer/x86/tile_loop.h"

namespace quoll {

namespace {

// The panels of int8.h: the vectors of a k-group of k one after another.
struct U8S8 {
    template <int vectors>
    static constexpr ptrdiff_t kRowBytesOfB = vectors * 64;
    template <int vectors>
    static constexpr ptrdiff_t b_place(int, int vector) {
        return vector * 64;
    }
    template <int sum, int a, int b>
    QUOLL_TILE_INLINE static void dot() {
        tile_dot_u8s8<sum, a, b>();
    }
};

template <int tiles, int vectors>
void int8_sums(const Int8UnitTile& t) {
    Step<U8S8, tiles, vectors> step = {nullptr, t.b, t.a_row, t.a_tile};
    Fetcher fetcher(t);
    start_sums<tiles, vectors>(t.init);
    for (size_t s = 0; s < t.num_steps; s++) {
        step.a = t.a + t.steps[s];
        step.template run<1>();
        step.b += t.step_k_groups * vectors * 64;
        fetcher.fetch();
    }
    store_sums<tiles, vectors>(t.sums, t.tile_rows);
}

// As StoreBefore, but the new sums begin with a row.
struct StoreBeforeInit {
    char *first, *second;
    const char* init;

    template <int sum>
    QUOLL_TILE_INLINE void turn() const {
        tile_store<sum>((sum < 2 ? first : second) + sum % 2 * 64, 128);
        tile_load<sum>(init + sum % 2 * 64, 0);
    }
};

void int8_chain(const Int8UnitTile& t, const Int8Epilogue& epilogue) {
    Step<U8S8, 2, 2> step = {t.a + t.steps[0], t.b, t.a_row, t.a_tile};
    Fetcher fetcher(t);
    if (epilogue.rows > 0) {
        char* to = (char*)epilogue.sums;
        step.template run<1>(StoreBeforeInit{to, to + t.tile_rows * 128, (const char*)t.init});
        epilogue.finish(epilogue);
    } else {
        start_sums<2, 2>(t.init);
        step.template run<1>();
    }
    fetcher.fetch();
    for (size_t s = 1; s < t.num_steps; s++) {
        step.a = t.a + t.steps[s];
        step.b += t.step_k_groups * 2 * 64;
        step.template run<1>();
        fetcher.fetch();
    }
}

void int8_end_chain(const Int8Epilogue& epilogue) {
    store_sums<2, 2>(epilogue.sums, epilogue.rows / 2);
    epilogue.finish(epilogue);
}

void begin_int8(int tile_rows, int k_bytes) { begin_tiles(tile_rows, k_bytes, 2); }

constexpr Int8UnitKernels kKernels = {
    "amx",
    &begin_int8,
    &end_tiles,
    {{&int8_sums<1, 1>, &int8_sums<1, 2>}, {&int8_sums<2, 1>, &int8_sums<2, 2>}},
    &int8_chain,
    &int8_end_chain,
    nullptr,
    nullptr};

}  // namespace

extern const Int8UnitKernels QUOLL_TILE_NAME(gemm_int8_32x32);
const Int8UnitKernels QUOLL_TILE_NAME(gemm_int8_32x32) = kKernels;

}  // namespace quoll
