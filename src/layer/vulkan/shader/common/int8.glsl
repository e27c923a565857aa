// What becomes of floats that are stored as s8.
// Half away from zero; within 127, NaN is 0.
int rounded_to_int8(float v) {
    if ((floatBitsToUint(v) & 0x7fffffffu) > 0x7f800000u) return 0;
    const float whole = trunc(v);
    const float rounded = abs(v - whole) >= 0.5 ? whole + sign(v) : whole;
    return int(clamp(rounded, -127.0, 127.0));
}
