// Arithmetic on integers that is defined for all operands: overflow wraps, a division by 0 gives 0.
#ifndef QUOLL_LAYER_INTEGER_H
#define QUOLL_LAYER_INTEGER_H

#include <stdint.h>

namespace quoll {

inline int32_t int_power(int32_t x, int32_t n) {
    if (n < 0) return x == 1 ? 1 : x == -1 ? (n % 2 ? -1 : 1) : 0;
    uint32_t result = 1;
    for (uint32_t base = (uint32_t)x; n > 0; n >>= 1, base *= base)
        if (n & 1) result *= base;
    return (int32_t)result;
}

// The truncated quotient; the only one that does not fit (the least int by -1) wraps.
inline int32_t int_quotient(int32_t x, int32_t y) {
    return y == 0 ? 0 : y == -1 ? (int32_t)(0u - (uint32_t)x) : x / y;
}
// The remainder has the sign of x.
inline int32_t int_modulo(int32_t x, int32_t y) { return y == 0 || y == -1 ? 0 : x % y; }
inline int32_t int_floor_quotient(int32_t x, int32_t y) {
    return int_quotient(x, y) - (int_modulo(x, y) != 0 && (x < 0) != (y < 0));
}
// The remainder has the sign of y.
inline int32_t int_floor_modulo(int32_t x, int32_t y) {
    const int32_t m = int_modulo(x, y);
    return m != 0 && (m < 0) != (y < 0) ? m + y : m;
}

// Sums and products of any number type; those of ints wrap, as the narrowing casts do.
inline float wrapping_add(float x, float y) { return x + y; }
inline float wrapping_sub(float x, float y) { return x - y; }
inline float wrapping_mul(float x, float y) { return x * y; }
template <class T>
T wrapping_add(T x, T y) {
    return (T)((uint32_t)x + (uint32_t)y);
}
template <class T>
T wrapping_sub(T x, T y) {
    return (T)((uint32_t)x - (uint32_t)y);
}
template <class T>
T wrapping_mul(T x, T y) {
    return (T)((uint32_t)x * (uint32_t)y);
}

}  // namespace quoll

#endif
