// Element types of arrays, numbered as in ONNX (TensorProto.DataType), as Mats hold them.
#ifndef QUOLL_LAYER_ELEMENTTYPE_H
#define QUOLL_LAYER_ELEMENTTYPE_H

#include <stdint.h>

#include "quoll/mat.h"

namespace quoll {

// A floating-point format of at most 16 bits, whose values f32 can hold: sign, exponent, mantissa.
// Sources: IEEE 754, the OCP specification of microscaling formats, and for the 8-bit ones
// https://onnx.ai/onnx/technical/float8.html.
struct FloatFormat {
    enum Specials {
        kInfinity,    // the largest exponent is for infinities and NaN
        kNan,         // the largest code of each sign is NaN; there are no infinities
        kMinusZero,   // the code of -0 is NaN; there are no infinities
        kFiniteOnly,  // NaN becomes 0
    };
    // To nearest, half to even; away from 0; towards 0.
    enum Rounding { kNearest, kUp, kDown };

    int exponent_bits, mantissa_bits, bias;
    Specials specials;
    bool is_signed;  // else there is no 0 either: every code is a power of two, or NaN

    float largest() const;
    // x rounded to the format. A value that is too large becomes the largest one with `saturate`,
    // else infinity, or NaN where there is none. In formats without a sign, negative values become
    // NaN, and those smaller than the smallest one become that with `saturate`, else NaN.
    float round(float x, bool saturate, Rounding rounding = kNearest) const;
    // The value of a code, of which only the low bits count; the code of a result of round().
    float decode(unsigned code) const;
    unsigned encode(float x) const;

private:
    int smallest_exponent() const { return is_signed ? 1 - bias : -bias; }
    unsigned mask() const { return (1u << (exponent_bits + mantissa_bits)) - 1; }
};

struct ElementInfo {
    int number;
    const char* name;
    int bits;
    DType dtype;  // of a Mat that holds such values
    bool is_signed;
    FloatFormat format;  // exponent_bits 0 if it is none

    bool has_format() const { return format.exponent_bits != 0; }
};
// Null for what no Mat holds.
const ElementInfo* element_info(int number);

// The low `bits` of an integer, sign-extended if the type is signed.
inline int32_t low_bits(const ElementInfo& type, uint32_t value) {
    const int unused = 32 - type.bits;
    return type.is_signed ? (int32_t)(value << unused) >> unused
                          : (int32_t)(value << unused >> unused);
}

}  // namespace quoll

#endif
