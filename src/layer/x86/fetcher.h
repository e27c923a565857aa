// Fetching what a product reads next, beside its multiplications.
#ifndef QUOLL_LAYER_X86_FETCHER_H
#define QUOLL_LAYER_X86_FETCHER_H

#include <immintrin.h>

#include "layer/cpu/gemm/tile_operands.h"

namespace quoll {
namespace {

// Fetches a range into the second-level cache in equal parts, from four places at once: a single
// stream does not saturate the memory.
struct Fetcher {
    const char* at;
    size_t quarter, left, part;  // lines
    size_t line, apart;          // bytes

    explicit Fetcher(const TileOperands& t) : Fetcher(t, t.num_steps) {}
    Fetcher(const TileOperands& t, size_t steps)
        : at(t.next), quarter(t.next ? t.next_bytes / 256 : 0), left(quarter) {
        part = quarter ? (quarter + steps - 1) / steps : 0;
        line = t.next_in_order ? 256 : 64;
        apart = t.next_in_order ? 64 : quarter * 64;
    }
    __attribute__((always_inline)) inline void fetch() {
        for (size_t i = 0; i < part && left; i++, left--, at += line) {
            _mm_prefetch(at, _MM_HINT_T1);
            _mm_prefetch(at + apart, _MM_HINT_T1);
            _mm_prefetch(at + apart * 2, _MM_HINT_T1);
            _mm_prefetch(at + apart * 3, _MM_HINT_T1);
        }
    }
};

}  // namespace
}  // namespace quoll

#endif
