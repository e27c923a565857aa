// Blobs in the 16-bit types that a net may store them in.
#ifndef QUOLL_LAYER_STORED_H
#define QUOLL_LAYER_STORED_H

#include <stddef.h>

#include "quoll/mat.h"
#include "quoll/option.h"
#include "runtime/parts.h"

namespace quoll {

// The type in which f32 blobs are stored between layers: f16, bf16 or f32 itself.
inline DType storage_type(const Option& opt) {
    if (!kHasHalfStorage) return DType::f32;
    return opt.use_fp16_storage ? DType::f16 : opt.use_bf16_storage ? DType::bf16 : DType::f32;
}

// Makes *out from an f32 blob as f16 or bf16; empty if memory runs out. Finite values stay finite
// in bf16: masks of attention hold the smallest float, which would round to -infinity, and a row of
// only such values has no softmax.
void narrow(const Mat& in, DType dtype, Mat* out, const Option& opt);

// How many values of a blob are NaN, and how many infinite; 0 for integers.
struct NotFinite {
    size_t nans = 0, infinite = 0;
};
NotFinite count_not_finite(const Mat& m);

// Whether values of an f32 blob have become infinite in 16 bits.
bool has_overflown(const Mat& f32, const Mat& narrowed);

}  // namespace quoll

#endif
