// Compiled once per ISA.
#include "layer/cpu/common/isa_table.h"
#include "layer/cpu/resize/generic.h"
#include "layer/cpu/resize/resize.h"

namespace quoll {
namespace {

template <int kTaps, int kPack>
void resize_row(const float* row, const int* index, const float* factor, float* out, int n) {
    using V = simd::vecf<kPack>;
    for (int i = 0; i < n; i++, index += kTaps, factor += kTaps, out += kPack) {
        V sum = V::load(row + (size_t)index[0] * kPack) * V::set(factor[0]);
        for (int k = 1; k < kTaps; k++)
            sum = fma(V::load(row + (size_t)index[k] * kPack), V::set(factor[k]), sum);
        sum.store(out);
    }
}

template <int kTaps>
void resize_column(const float* const* rows, const float* factor, float* out, size_t n) {
    using V = simd::vecf<simd::kLanes>;
    V factors[kTaps];
    for (int k = 0; k < kTaps; k++) factors[k] = V::set(factor[k]);
    for (size_t i = 0; i < n; i += simd::kLanes) {
        V sum = V::load_n(rows[0] + i, n - i) * factors[0];
        for (int k = 1; k < kTaps; k++) sum = fma(V::load_n(rows[k] + i, n - i), factors[k], sum);
        sum.store_n(out + i, n - i);
    }
}

}  // namespace

extern const ResizeKernels QUOLL_ISA_TABLE(resize_kernels);
const ResizeKernels QUOLL_ISA_TABLE(resize_kernels) = {
    &sample_points,
#define QUOLL_RESIZE(name, taps)                                                                \
    {{&resize_row<taps, 1>, &resize_row<taps, 4>, &resize_row<taps, 8>, &resize_row<taps, 16>}, \
     &resize_column<taps>},
#include "layer/cpu/resize/kernels.inc"
#undef QUOLL_RESIZE
};

}  // namespace quoll
