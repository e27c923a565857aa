// Values of s32, s8 and u8, each in a word of its own; types by their number in quoll::DType.
const int kS32 = 3, kS8 = 4, kU8 = 5;

// What remains of a whole number in a type.
int wrapped(int x, int type) {
    if (type == kS8) return bitfieldExtract(x, 0, 8);
    if (type == kU8) return x & 255;
    return x;
}

// Half away from zero; within 127, NaN is 0.
int rounded_to_int8(float v) {
    if ((floatBitsToUint(v) & 0x7fffffffu) > 0x7f800000u) return 0;
    const float whole = trunc(v);
    const float rounded = abs(v - whole) >= 0.5 ? whole + sign(v) : whole;
    return int(clamp(rounded, -127.0, 127.0));
}
