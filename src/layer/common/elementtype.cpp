#include "layer/common/elementtype.h"

#include <math.h>

#include <algorithm>

namespace quoll {

float FloatFormat::largest() const {
    if (specials == kInfinity) return decode((((1u << exponent_bits) - 1) << mantissa_bits) - 1);
    return decode(mask() - (specials == kNan ? 1 : 0));
}

float FloatFormat::round(float x, bool saturate, Rounding rounding) const {
    if (x != x || (!is_signed && x < 0)) return specials == kFiniteOnly ? 0.f : copysignf(NAN, x);
    double value = fabs((double)x);
    if (value != 0 && !isinf(x)) {
        const int exponent = std::max(ilogb(value), smallest_exponent());
        const double step = ldexp(1.0, exponent - mantissa_bits), steps = value / step;
        value = step * (rounding == kUp     ? ceil(steps)
                        : rounding == kDown ? floor(steps)
                                            : nearbyint(steps));
    }
    const double most = largest();
    if (value > most)
        value = saturate || specials == kFiniteOnly ? most
                : specials == kInfinity             ? (double)INFINITY
                                                    : (double)NAN;
    if (!is_signed) {
        const double least = ldexp(1.0, smallest_exponent());
        return (float)(value < least ? (saturate ? least : (double)NAN) : value);
    }
    return value == 0 && specials == kMinusZero ? 0.f : (float)copysign(value, (double)x);
}

float FloatFormat::decode(unsigned code) const {
    const int bits = exponent_bits + mantissa_bits;
    const bool negative = is_signed && (code >> bits & 1);
    const unsigned magnitude = code & mask(), exponent = magnitude >> mantissa_bits;
    const unsigned implied = 1u << mantissa_bits, fraction = magnitude & (implied - 1);
    if ((specials == kNan && magnitude == mask()) ||
        (specials == kMinusZero && negative && magnitude == 0))
        return negative ? -NAN : NAN;
    float value;
    if (specials == kInfinity && exponent == (1u << exponent_bits) - 1)
        value = fraction ? NAN : INFINITY;
    else if (is_signed && exponent == 0)
        value = ldexpf((float)fraction, 1 - bias - mantissa_bits);
    else
        value = ldexpf((float)(implied + fraction), (int)exponent - bias - mantissa_bits);
    return negative ? -value : value;
}

unsigned FloatFormat::encode(float x) const {
    const unsigned sign = is_signed && signbit(x) ? mask() + 1 : 0;
    const unsigned top = ((1u << exponent_bits) - 1) << mantissa_bits;
    if (x != x && specials == kMinusZero) return mask() + 1;
    if (x != x && specials == kFiniteOnly) return 0;
    if (x != x) return sign | (specials == kNan ? mask() : top | 1u << (mantissa_bits - 1));
    if (isinf(x)) return sign | top;
    if (x == 0.f) return sign;
    const int exponent = std::max(ilogbf(x), smallest_exponent());
    // The exponent is one less, and the implied bit of the mantissa adds one to it.
    const unsigned steps = (unsigned)ldexp(fabs((double)x), mantissa_bits - exponent);
    const int before = exponent + bias - 1;
    return sign | (unsigned)((before << mantissa_bits) + (int)steps);
}

const ElementInfo* element_info(int number) {
    typedef FloatFormat F;
    static const F kWhole = {0, 0, 0, F::kInfinity, true};
    static const ElementInfo kTypes[] = {
        {1, "float32", 32, DType::f32, true, kWhole},
        {2, "uint8", 8, DType::u8, false, kWhole},
        {3, "int8", 8, DType::s8, true, kWhole},
        {4, "uint16", 16, DType::s32, false, kWhole},
        {5, "int16", 16, DType::s32, true, kWhole},
        {6, "int32", 32, DType::s32, true, kWhole},
        {7, "int64", 64, DType::s32, true, kWhole},
        {9, "bool", 8, DType::u8, false, kWhole},
        {10, "float16", 16, DType::f32, true, {5, 10, 15, F::kInfinity, true}},
        {11, "float64", 64, DType::f32, true, kWhole},
        {12, "uint32", 32, DType::s32, false, kWhole},
        {13, "uint64", 64, DType::s32, false, kWhole},
        {16, "bfloat16", 16, DType::f32, true, {8, 7, 127, F::kInfinity, true}},
        {17, "float8e4m3fn", 8, DType::f32, true, {4, 3, 7, F::kNan, true}},
        {18, "float8e4m3fnuz", 8, DType::f32, true, {4, 3, 8, F::kMinusZero, true}},
        {19, "float8e5m2", 8, DType::f32, true, {5, 2, 15, F::kInfinity, true}},
        {20, "float8e5m2fnuz", 8, DType::f32, true, {5, 2, 16, F::kMinusZero, true}},
        {21, "uint4", 4, DType::u8, false, kWhole},
        {22, "int4", 4, DType::s8, true, kWhole},
        {23, "float4e2m1", 4, DType::f32, true, {2, 1, 1, F::kFiniteOnly, true}},
        {24, "float8e8m0", 8, DType::f32, false, {8, 0, 127, F::kNan, false}},
        {25, "uint2", 2, DType::u8, false, kWhole},
        {26, "int2", 2, DType::s8, true, kWhole},
        {27, "float6e2m3", 6, DType::f32, true, {2, 3, 1, F::kFiniteOnly, true}},
        {28, "float6e3m2", 6, DType::f32, true, {3, 2, 3, F::kFiniteOnly, true}},
    };
    const int kCount = (int)(sizeof(kTypes) / sizeof(kTypes[0]));
    if (number < 1) return nullptr;
    // There are no rows for 8, 14 and 15.
    const int at = number - 1 - (number > 8 ? 1 : 0) - (number > 15 ? 2 : 0);
    return at < kCount && kTypes[at].number == number ? &kTypes[at] : nullptr;
}

}  // namespace quoll
