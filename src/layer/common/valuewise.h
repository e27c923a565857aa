// Common to tensor operators that map each value by itself, of any type.
#ifndef QUOLL_LAYER_VALUEWISE_H
#define QUOLL_LAYER_VALUEWISE_H

#include "layer/common/tensor.h"

namespace quoll {

// Value by value, whatever the packing and batch.
inline void set_valuewise(Layer& layer) {
    layer.one_blob_only = true;
    layer.support_packing = layer.support_batch = true;
}

// A blob like m, of another type.
inline int create_like(const Mat& m, DType dtype, Mat* top, const Option& opt) {
    Shape shape = m.logical_shape();
    shape.dtype = dtype;
    if (shape.total() == 0) return create_tensor(shape, top, opt);
    top->create(shape, m.elempack, opt.blob_allocator);
    return top->empty() ? (int)kOutOfMemory : (int)kOk;
}

// Calls run(from, to, count) for runs of values of blobs that share no memory.
template <class T, class R, class Run>
void map_runs(const Mat& bottom, Mat& top, Run run) {
    const size_t count = (size_t)bottom.w * bottom.h * bottom.d * bottom.elempack;
    for (int b = 0; b < bottom.n && count; b++) {
        for (int q = 0; q < bottom.c; q++) {
            const T* from =
                (const T*)bottom.data + (b * bottom.nstep + q * bottom.cstep) * bottom.elempack;
            R* to = (R*)top.data + (b * top.nstep + q * top.cstep) * top.elempack;
            run(from, to, count);
        }
    }
}

// to[i] = f(from[i]); a function of its own, so that compilers vectorise the loop.
template <class T, class R, class F>
void map_run(const T* __restrict from, R* __restrict to, size_t count, F f) {
    for (size_t i = 0; i < count; i++) to[i] = f(from[i]);
}

// top[i] = f(bottom[i]) for all values of blobs that share no memory.
template <class T, class R, class F>
void map_values(const Mat& bottom, Mat& top, F f) {
    map_runs<T, R>(bottom, top,
                   [f](const T* from, R* to, size_t count) { map_run(from, to, count, f); });
}

}  // namespace quoll

#endif
