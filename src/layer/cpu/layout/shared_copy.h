// Copies of rectangular blocks that threads share.
#ifndef QUOLL_LAYER_CPU_LAYOUT_SHARED_COPY_H
#define QUOLL_LAYER_CPU_LAYOUT_SHARED_COPY_H

#include <algorithm>

#include "layer/common/blocks.h"
#include "layer/cpu/common/packing.h"
#include "runtime/thread_pool.h"

namespace quoll {

// run(axis, begin, end) for parts of the longest of the first three axes, which make up all.
// elements: that are copied.
template <class Run>
void share_copy(const int size[4], double elements, const Option& opt, const Run& run) {
    const int threads = threads_for(opt, elements);
    const int axis = (int)(std::max_element(size, size + 3) - size);
    const int64_t parts = std::min(size[axis], threads > 1 ? 4 * threads : 1);
    run_tasks(parts, threads, [&](int64_t i, int) {
        run(axis, (int)(size[axis] * i / parts), (int)(size[axis] * (i + 1) / parts));
    });
}

// The block of layer/common/blocks.h.
void copy_block(const Mat& src, const Block& block, Mat& dst, const int to[4], const Option& opt);

}  // namespace quoll

#endif
