#include "layer/cpu/channel/apply.h"

#include "layer/cpu/packing.h"

namespace quoll {

void apply_to_channels(ChannelKernel kernel, Mat& blob, const float* a, const float* b,
                       bool one_for_all, const Option& opt) {
    const int pack = blob.elempack;
    const int blocks = blob.dims == 1 ? 1 : blob.dims == 2 ? blob.h : blob.c;
    const size_t elements = blob.dims < 3 ? (size_t)blob.w : (size_t)blob.w * blob.h * blob.d;
    const size_t step = blob.dims < 3 ? (size_t)blob.w : blob.cstep;
    // Each value of a 1-D blob is a channel of its own.
    const size_t period = one_for_all ? 1 : blob.dims == 1 ? elements * pack : (size_t)pack;
    const size_t advance = one_for_all ? 0 : (size_t)pack;
    const int threads = threads_for(opt, (double)elements * blocks * pack);
#pragma omp parallel for num_threads(threads)
    for (int q = 0; q < blocks; q++)
        kernel((float*)blob.data + q * step * pack, elements * pack, period,
               a ? a + q * advance : nullptr, b ? b + q * advance : nullptr);
}

}  // namespace quoll
