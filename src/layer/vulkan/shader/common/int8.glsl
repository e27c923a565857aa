// Rounds floats to s8: half away from zero, clamped to 127, NaN becomes 0. This avoids trunc() and
// conversions to int and back, which devices do at an eighth of the rate of sums, by the fact that
// floats above 2^23 are whole numbers.
float whole_int8(float v) {
    const float kWhole = 8388608.0;
    const float size = min(abs(v), 127.0);
    precise const float above = size + kWhole;
    precise const float near = above - kWhole;
    precise const float rest = size - near;
    // Not in another order: size + (kWhole + 1.0) would round halves once more.
    precise const float next = near + 1.0;
    const float rounded = rest >= 0.5 ? next : near;
    if ((floatBitsToUint(v) & 0x7fffffffu) > 0x7f800000u) return 0.0;
    return v < 0.0 ? -rounded : rounded;
}
int rounded_to_int8(float v) { return int(whole_int8(v)); }
vec4 rounded4(vec4 v) {
    return vec4(whole_int8(v.x), whole_int8(v.y), whole_int8(v.z), whole_int8(v.w));
}
