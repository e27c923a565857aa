// Inputs of int8 layers that are rounded to 16 bits: int8_affine is kInt16Input. q = x * scale
// rounded half to even, without a zero point. q = 256 high + low with signed bytes, so that a
// product with q is two products of bytes; hence the limit.
#ifndef QUOLL_LAYER_INT16_INPUT_H
#define QUOLL_LAYER_INT16_INPUT_H

namespace quoll {

enum { kInt16Input = 3 };
const int kInt16Limit = 127 * 256 + 127;

// q; NaN gives 0. Written as one selection after another, which compilers vectorise.
inline int int16_value(float x, float scale) {
    const float limit = (float)kInt16Limit;
    float v = x * scale;
    v = v == v ? v : 0.f;
    v = v > -limit ? v : -limit;
    v = v < limit ? v : limit;
    const float magic = 12582912.f;  // 1.5 * 2^23: adding a value to it rounds that to an integer
    return (int)((v + magic) - magic);
}
inline int int16_high(int q) { return (q + 128) >> 8; }
inline int int16_low(int q) { return q - int16_high(q) * 256; }

}  // namespace quoll

#endif
