// Choices that the fast layers share: elempack, division of work.
#ifndef QUOLL_LAYER_CPU_PACKING_H
#define QUOLL_LAYER_CPU_PACKING_H

#include <stdint.h>

#include <algorithm>
#include <vector>

#include "layer/cpu/common/kernel_set.h"
#include "quoll/mat.h"
#include "quoll/option.h"
#include "quoll/status.h"

namespace quoll {

// The widest elempack that fits a register and divides `channels`; 1 if the option forbids packing.
inline int best_elempack(const KernelSet& kernels, int channels, const Option& opt) {
    int pack = 1;
    for (int p = 4; opt.use_packing_layout && p <= kernels.lanes; p *= 2)
        if (channels % p == 0) pack = p;
    return pack;
}

// `blob` with the given elempack, which must divide its outermost axis; in temporary memory if it
// has another one. A negative code if memory runs out.
inline int with_elempack(const Mat& blob, int pack, const Option& opt, Mat* packed) {
    *packed = blob;
    if (blob.elempack == pack) return kOk;
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    convert_packing(blob, *packed, pack, temporary);
    return packed->empty() ? (int)kOutOfMemory : (int)kOk;
}

// All blobs with elempack 1, for the operators' reference implementations.
inline int all_planar(const std::vector<Mat>& blobs, const Option& opt, std::vector<Mat>* planar) {
    planar->resize(blobs.size());
    for (size_t i = 0; i < blobs.size(); i++)
        QUOLL_RETURN_IF_ERROR(with_elempack(blobs[i], 1, opt, &(*planar)[i]));
    return kOk;
}

// The threads for `work` elementary operations (multiply-adds, loaded floats): as many as save more
// than they cost, of which fetching what the others have made is the larger part.
int threads_for(const Option& opt, double work);

// Divides `items` channels (or blocks of them) into bands of rows, as tasks for run_tasks: several
// per thread, so that the threads end at about the same time.
struct Bands {
    int items, per_item, rows;
    Bands(int items, int rows, int threads);
    int64_t count() const { return (int64_t)items * per_item; }
    int item(int64_t task) const { return (int)(task / per_item); }
    int begin(int64_t task) const { return edge(task % per_item); }
    int end(int64_t task) const { return edge(task % per_item + 1); }

private:
    int edge(int64_t band) const { return (int)(rows * band / per_item); }
};

}  // namespace quoll

#endif
