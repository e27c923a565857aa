// The values of a Mat as runs of consecutive ones.
#ifndef QUOLL_MAT_RUNS_H
#define QUOLL_MAT_RUNS_H

#include <algorithm>

#include "quoll/mat.h"
#include "runtime/thread_pool.h"

namespace quoll {

// Calls f(bytes in the Mat, bytes of a copy without gaps, count) for each run of values. `shape` is
// that of the Mat, whose elempack is 1.
template <class F>
void for_each_run(const Mat& m, const Shape& shape, unsigned char* copy, F f) {
    const size_t run = (size_t)shape.w * shape.h * shape.d * m.elemsize;
    for (int b = 0; b < shape.n; b++) {
        for (int q = 0; q < shape.c; q++) {
            f((unsigned char*)m.data + (b * m.nstep + q * m.cstep) * m.elemsize, copy, run);
            copy += run;
        }
    }
}

// The same in pieces by up to `threads` threads, if there is enough for workers to be in time.
template <class F>
void for_each_piece(const Mat& m, const Shape& shape, unsigned char* copy, int threads, F f) {
    const int64_t kPiece = 64 << 10, kOfThread = 512 << 10;  // bytes
    const int64_t run = (int64_t)shape.w * shape.h * shape.d * m.elemsize;
    const int64_t runs = (int64_t)shape.n * shape.c, pieces = (run + kPiece - 1) / kPiece;
    const int64_t most = std::max<int64_t>(run * runs / kOfThread, 1);
    parallel_for(runs * pieces, (int)std::min<int64_t>(threads, most), [&](int64_t i) {
        const int64_t at = i / pieces, first = i % pieces * kPiece;
        const int64_t item = at / shape.c, q = at % shape.c;
        f((unsigned char*)m.data + (item * m.nstep + q * m.cstep) * m.elemsize + first,
          copy + at * run + first, (size_t)std::min(kPiece, run - first));
    });
}

}  // namespace quoll

#endif
