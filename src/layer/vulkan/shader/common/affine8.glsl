// With a zero point (layer/common/affine8.h): half to even, NaN is the zero point.
int affine_int8(float v, int zero) {
    if ((floatBitsToUint(v) & 0x7fffffffu) > 0x7f800000u) return zero;
    return int(roundEven(clamp(v, float(-128 - zero), float(127 - zero)))) + zero;
}
