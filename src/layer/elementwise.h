// What the scalar references of elementwise operators share.
#ifndef QUOLL_LAYER_ELEMENTWISE_H
#define QUOLL_LAYER_ELEMENTWISE_H

#include "schema.h"

namespace quoll {

// One input, one output of the same shape, in place, whatever the packing and batch.
inline void set_elementwise(Layer& layer) {
    layer.one_blob_only = true;
    layer.support_inplace = true;
    layer.support_packing = true;
    layer.support_batch = true;
}

// blob[i] = f(blob[i]) for every f32 value, gaps between channels left out.
template <class F>
void for_each_value(Mat& blob, F f) {
    const size_t count = (size_t)blob.w * blob.h * blob.d * blob.elempack;
    for (int b = 0; b < blob.n; b++) {
        for (int q = 0; q < blob.c; q++) {
            float* p = (float*)blob.data + (b * blob.nstep + q * blob.cstep) * blob.elempack;
            for (size_t i = 0; i < count; i++) p[i] = f(p[i]);
        }
    }
}

}  // namespace quoll

#endif
