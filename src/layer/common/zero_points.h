// Common to ConvInteger and MatMulInteger: signed and unsigned 8-bit values, and their zero points.
#ifndef QUOLL_LAYER_ZERO_POINTS_H
#define QUOLL_LAYER_ZERO_POINTS_H

#include "layer/common/schema.h"

namespace quoll {

// s8 and u8 blobs; is_unsigned: the bytes of an s8 one are u8 (weights are stored as s8).
struct Bytes {
    const unsigned char* data;
    bool is_signed;

    Bytes(const Mat& m, bool is_unsigned)
        : data((const unsigned char*)m.data), is_signed(m.dtype == DType::s8 && !is_unsigned) {}
    int operator[](size_t i) const { return is_signed ? (signed char)data[i] : data[i]; }
};

inline bool is_byte(DType dtype) { return dtype == DType::s8 || dtype == DType::u8; }

// Value i of a blob of s8, u8, s32 or f32 without gaps. Zero points are those of bytes; other
// numbers are clamped, so that sums do not overflow.
inline int integer_at(const Mat& m, size_t i) {
    const double value = m.dtype == DType::s8    ? ((const signed char*)m.data)[i]
                         : m.dtype == DType::u8  ? ((const unsigned char*)m.data)[i]
                         : m.dtype == DType::s32 ? ((const int*)m.data)[i]
                                                 : ((const float*)m.data)[i];
    return (int)(value >= -32768 ? value <= 32767 ? value : 32767 : -32768);
}

// Sums of products wrap around as 32-bit integers do.
inline int wrapped(int64_t sum) { return (int)(uint32_t)(uint64_t)sum; }

}  // namespace quoll

#endif
