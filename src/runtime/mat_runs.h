// The values of a Mat as runs of consecutive ones.
#ifndef QUOLL_MAT_RUNS_H
#define QUOLL_MAT_RUNS_H

#include "quoll/mat.h"

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

}  // namespace quoll

#endif
