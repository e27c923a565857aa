#include "layer/common/stored.h"

#include <stdint.h>

namespace quoll {

namespace {

// Bits of the exponent, and the word without the sign.
template <class T>
NotFinite count_words(const Mat& m, T exponent, T magnitude) {
    NotFinite found;
    const size_t plane = (size_t)m.w * m.h * m.d * m.elempack;
    for (int b = 0; b < m.n; b++) {
        for (int q = 0; q < m.c; q++) {
            const T* p = (const T*)((const char*)m.data + (b * m.nstep + q * m.cstep) * m.elemsize);
            T odd = 0;  // of their width, so that a vector holds many
            for (size_t i = 0; i < plane; i++) odd |= (T)((p[i] & exponent) == exponent);
            for (size_t i = 0; i < plane && odd; i++) {
                found.infinite += (p[i] & magnitude) == exponent;
                found.nans += (p[i] & magnitude) > exponent;
            }
        }
    }
    return found;
}

// The largest bf16, with the sign, where rounding made finite values infinite.
void keep_finite(const Mat& f32, Mat* bf16) {
    const size_t plane = (size_t)f32.w * f32.h * f32.d * f32.elempack;
    for (int b = 0; b < f32.n; b++) {
        for (int q = 0; q < f32.c; q++) {
            const uint32_t* from =
                (const uint32_t*)((const char*)f32.data +
                                  (b * f32.nstep + q * f32.cstep) * f32.elemsize);
            uint16_t* to = (uint16_t*)((char*)bf16->data +
                                       (b * bf16->nstep + q * bf16->cstep) * bf16->elemsize);
            for (size_t i = 0; i < plane; i++) {
                const bool finite = (from[i] & 0x7f800000u) != 0x7f800000u;
                if (finite && (to[i] & 0x7fff) == 0x7f80) to[i]--;
            }
        }
    }
}

}  // namespace

NotFinite count_not_finite(const Mat& m) {
    if (m.empty()) return NotFinite();
    if (m.dtype == DType::f32) return count_words<uint32_t>(m, 0x7f800000u, 0x7fffffffu);
    if (m.dtype == DType::f16) return count_words<uint16_t>(m, 0x7c00, 0x7fff);
    if (m.dtype == DType::bf16) return count_words<uint16_t>(m, 0x7f80, 0x7fff);
    return NotFinite();
}

void narrow(const Mat& in, DType dtype, Mat* out, const Option& opt) {
    if (dtype == DType::f16) {
        cast_float32_to_float16(in, *out, opt);
        return;
    }
    cast_float32_to_bfloat16(in, *out, opt);
    if (has_overflown(in, *out)) keep_finite(in, out);
}

bool has_overflown(const Mat& f32, const Mat& narrowed) {
    const size_t infinite = count_not_finite(narrowed).infinite;
    return infinite > 0 && infinite != count_not_finite(f32).infinite;
}

}  // namespace quoll
