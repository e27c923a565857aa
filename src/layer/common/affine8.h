// int8 values q in [-128, 127] that represent scale * (q - zero_point): ONNX's quantisation. u8
// values and their zero points are stored minus 128. (ncnn's has no zero point, rounds half away
// from zero and does not use -128.)
#ifndef QUOLL_LAYER_AFFINE8_H
#define QUOLL_LAYER_AFFINE8_H

#include <math.h>

namespace quoll {

// The q of x = value / scale: rounded half to even. NaN gives the zero point.
inline signed char affine_int8(float x, int zero_point) {
    const float low = (float)(-128 - zero_point), high = (float)(127 - zero_point);
    const float limited = x == x ? (x > low ? (x < high ? x : high) : low) : 0.f;
    return (signed char)((int)nearbyintf(limited) + zero_point);
}

// The scale and zero point for values from low <= 0 to high >= 0, as ONNX's DynamicQuantizeLinear
// defines them.
struct AffineRange {
    float scale = 1.f;
    int zero_point = -128;

    AffineRange(float low, float high) {
        if (!(high > low)) return;
        scale = (high - low) / 255.f;
        zero_point = affine_int8(-low / scale, -128);
    }
};

}  // namespace quoll

#endif
