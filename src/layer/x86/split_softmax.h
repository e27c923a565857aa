// The row kernel of split_gemm.h that turns scores into the exponentials of a softmax, as bf16
// terms.
#ifndef QUOLL_LAYER_X86_SPLIT_SOFTMAX_H
#define QUOLL_LAYER_X86_SPLIT_SOFTMAX_H

#include <math.h>

#include "layer/cpu/gemm/split_gemm.h"
#include "layer/x86/split_operands.h"

namespace quoll {
namespace {

// e^x for x <= 0: error 2^-13.7 where one bf16 holds it, 2^-18.5 where two do.
template <int terms>
QUOLL_TILE_INLINE __m512 exp_of_difference(__m512 x) {
    const auto c = [](float value) { return _mm512_set1_ps(value); };
    const __m512 y = _mm512_mul_ps(x, c(0x1.715476p+0f));
    const __m512 r = _mm512_reduce_ps(y, 9);  // y less the next whole number below
    __m512 p;
    if constexpr (terms == 1) {
        p = _mm512_fmadd_ps(c(0x1.3f96a4p-4f), r, c(0x1.cefc4cp-3f));
        p = _mm512_fmadd_ps(p, r, c(0x1.64444cp-1f));
        p = _mm512_fmadd_ps(p, r, c(0x1.fff632p-1f));
    } else {
        p = _mm512_fmadd_ps(c(0x1.bb7cd4p-7f), r, c(0x1.aa13f0p-5f));
        p = _mm512_fmadd_ps(p, r, c(0x1.ee798ap-3f));
        p = _mm512_fmadd_ps(p, r, c(0x1.62d166p-1f));
        p = _mm512_fmadd_ps(p, r, c(0x1.00002cp+0f));
    }
    return _mm512_scalef_ps(p, y);
}

struct NoMask {
    QUOLL_TILE_INLINE __m512 add(__m512 x, size_t, __mmask16) const { return x; }
};
template <class Value>
struct AddedMask {
    const Value* values;
    QUOLL_TILE_INLINE __m512 add(__m512 x, size_t i, __mmask16 lanes) const {
        return _mm512_add_ps(x, load_pixels(values + i, lanes));
    }
};

template <int terms, class Mask>
float softmax_terms(const SplitSoftmax& t, const Mask& mask) {
    const __m512 scale = _mm512_set1_ps(t.scale), none = _mm512_set1_ps(-INFINITY);
    const size_t whole = t.n / kSplitK * kSplitK, left = t.n - whole;
    const __mmask16 some = first_lanes(left), more = left > 16 ? first_lanes(left - 16) : 0;
    // Sums from i on, minus infinity in other lanes.
    const auto value = [&](size_t i, __mmask16 lanes) __attribute__((always_inline)) {
        const __m512 x = _mm512_mul_ps(_mm512_maskz_loadu_ps(lanes, t.row + i), scale);
        return _mm512_mask_mov_ps(none, lanes, mask.add(x, i, lanes));
    };
    __m512 most = none, other = none;
    // NaN that these operations drop comes back with the exponentials.
    for (size_t i = 0; i < whole; i += kSplitK) {
        most = _mm512_max_ps(value(i, 0xffff), most);
        other = _mm512_max_ps(value(i + 16, 0xffff), other);
    }
    most = _mm512_max_ps(value(whole, some), most);
    other = _mm512_max_ps(value(whole + 16, more), other);
    const float top = _mm512_reduce_max_ps(_mm512_max_ps(other, most));
    bool empty = top == -INFINITY;
    for (size_t i = 0; empty && i < t.n; i += 16)
        empty = !_mm512_cmp_ps_mask(value(i, first_lanes(t.n - i)), none, _CMP_NEQ_UQ);
    if (empty) {
        __builtin_memset(t.row, 0, (t.n + kSplitK - 1) / kSplitK * kSplitK * sizeof(float));
        return 1.f;
    }
    const __m512 tops = _mm512_set1_ps(top);
    __m512 total = _mm512_setzero_ps();
    uint16_t* to = (uint16_t*)t.row;
    const auto step = [&](size_t i, __mmask16 first, __mmask16 second)
        __attribute__((always_inline)) {
        __m512 x = exp_of_difference<terms>(_mm512_sub_ps(value(i, first), tops));
        __m512 y = exp_of_difference<terms>(_mm512_sub_ps(value(i + 16, second), tops));
        const __m512i high = to_bf16(x, y);
        const __m512 a = first_of_bf16(high), b = second_of_bf16(high);
        _mm512_storeu_si512(to, high);
        if constexpr (terms == 2)
            _mm512_storeu_si512(to + kSplitK, to_bf16(_mm512_sub_ps(x, a), _mm512_sub_ps(y, b)));
        else
            x = a, y = b;
        to += terms * kSplitK;
        total = _mm512_add_ps(total, _mm512_add_ps(x, y));
    };
    for (size_t i = 0; i < whole; i += kSplitK) step(i, 0xffff, 0xffff);
    if (left) step(whole, some, more);
    return _mm512_reduce_add_ps(total);
}

template <int terms>
float split_softmax(const SplitSoftmax& t) {
    if (!t.mask) return softmax_terms<terms>(t, NoMask());
    if (t.bf16_mask) return softmax_terms<terms>(t, AddedMask<uint16_t>{(const uint16_t*)t.mask});
    return softmax_terms<terms>(t, AddedMask<float>{(const float*)t.mask});
}

}  // namespace
}  // namespace quoll

#endif
