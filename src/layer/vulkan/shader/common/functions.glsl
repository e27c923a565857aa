// Elementary functions for all floats, in addition to those of math.glsl, instead of Vulkan's own,
// whose precision is unspecified. Errors are a few units in the last place.
#define kNaN uintBitsToFloat(0x7fc00000u)
#define kHalfPi 1.57079633

bool is_negative(float x) { return floatBitsToUint(x) >= 0x80000000u; }
float with_sign_of(float x, float like) {
    return uintBitsToFloat((floatBitsToUint(x) & 0x7fffffffu) |
                           (floatBitsToUint(like) & 0x80000000u));
}

// |x| = m 2^e with m within [sqrt(1/2), sqrt(2)], for finite x that is not 0.
float split_exponent(float x, out int e) {
    uint bits = floatBitsToUint(x) & 0x7fffffffu;
    e = 0;
    if (bits < 0x00800000u) {
        bits = floatBitsToUint(float(bits));
        e = -149;
    }
    const uint rounded = bits + 0x004afb0du;  // adds to the exponent where m >= sqrt(2)
    const int k = int(rounded >> 23) - 127;
    e += k;
    return uintBitsToFloat(bits - (uint(k) << 23));
}

// log(1 + f) by the series of 2 artanh(f / (2 + f)); for f within [-0.3, 0.42].
float log_near_one(float f) {
    const float s = f / (2.0 + f), z = s * s;
    return s * (2.0 + z * (2.0 / 3.0 + z * (0.4 + z * (2.0 / 7.0 + z * (2.0 / 9.0 +
                                                                       z * (2.0 / 11.0))))));
}

float exact_log(float x) {
    if (is_nan(x) || x == kInfinity) return x;
    if ((floatBitsToUint(x) & 0x7fffffffu) == 0u) return -kInfinity;
    if (is_negative(x)) return kNaN;
    int e;
    const float m = split_exponent(x, e);
    return float(e) * 0.693359375 + (log_near_one(m - 1.0) - float(e) * 2.12194440e-4);
}

float exact_log1p(float x) {
    if (x > -0.29 && x < 0.41) return log_near_one(x);
    return exact_log(1.0 + x);
}

float exact_expm1(float x) {
    if (!(abs(x) < 0.5)) return exact_exp(x) - 1.0;
    float p = 1.0;
    for (int n = 9; n > 1; n--) p = 1.0 + p * x / float(n);
    return x * p;
}

// x^y as pow of C.
float exact_pow(float x, float y) {
    if (y == 0.0 || x == 1.0) return 1.0;
    if (is_nan(x) || is_nan(y)) return kNaN;
    const float a = abs(x), wide = abs(y);
    const bool whole = wide >= 8388608.0 || floor(wide) == wide;
    const bool odd = whole && wide < 16777216.0 && (uint(wide) & 1u) == 1u;
    if (wide == kInfinity) {
        if (a == 1.0) return 1.0;
        return (a > 1.0) == (y > 0.0) ? kInfinity : 0.0;
    }
    float power;
    if (a == 0.0 || a == kInfinity) {
        power = (a == 0.0) == (y > 0.0) ? 0.0 : kInfinity;
    } else {
        if (x < 0.0 && !whole) return kNaN;
        // y (e + log2 m) = n + part, y e in two products that are not rounded.
        int e;
        const float fraction = y * (log_near_one(split_exponent(a, e) - 1.0) * 1.44269504);
        const float high = uintBitsToFloat(floatBitsToUint(y) & 0xfffff000u), low = y - high;
        const float large = high * float(e), small = low * float(e) + fraction;
        const float n = clamp(floor(large + small + 0.5), -300.0, 300.0);
        const float part = (large - n) + small;
        if (n > 128.0) power = kInfinity;
        else if (n < -151.0) power = 0.0;
        else {
            const int half_n = int(n) / 2;
            power = exact_exp(part * 0.693147181) * power_of_two(half_n);
            power *= power_of_two(int(n) - half_n);
        }
    }
    return is_negative(x) && odd ? -power : power;
}

// x = k pi / 2 + r with |r| <= pi / 4; the last bits of k. For finite x.
float reduced_angle(float x, out uint k) {
    const float a = abs(x);
    if (a < 8192.0) {
        const float n = floor(x * 0.636619772 + 0.5);
        precise float r = x - n * 1.5703125;
        r = r - n * 4.8351288e-4;
        r = r - n * 3.13855707e-7;
        r = r - n * 6.07709991e-11;
        k = uint(int(n));
        return r;
    }
    // The fraction of the product with 2 / pi, whose bits behind a word of zeros are these; those
    // that only add to multiples of 4 are passed over.
    const uint bits_of_two_over_pi[9] =
        uint[9](0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u,
                0xfe5163abu, 0xdebbc561u);
    const uint bits = floatBitsToUint(a);
    const uint m = (bits & 0x7fffffu) | 0x800000u, first = (bits >> 23) - 150u + 30u;
    const uint word = first >> 5, shift = first & 31u;
    uint window[3];
    for (uint i = 0u; i < 3u; i++) {
        const uint high = bits_of_two_over_pi[word + i], low = bits_of_two_over_pi[word + i + 1u];
        window[i] = shift == 0u ? high : high << shift | low >> (32u - shift);
    }
    uint carried, low, high, lowest;
    umulExtended(window[2], m, carried, lowest);
    umulExtended(window[1], m, high, low);
    const uint middle = low + carried;
    const uint top = window[0] * m + high + (middle < low ? 1u : 0u);
    const uint part = top << 2 | middle >> 30;  // of a quarter turn
    k = (top >> 30) + (part >> 31);
    const float r = float(int(part)) * (1.0 / 4294967296.0) * kHalfPi;
    if (is_negative(x)) k = 0u - k;
    return is_negative(x) ? -r : r;
}

// Sine and cosine.
vec2 exact_sin_cos(float x) {
    if (is_nan(x) || abs(x) == kInfinity) return vec2(kNaN);
    uint k;
    const float r = reduced_angle(x, k), z = r * r;
    const float s = r * (1.0 + z * (-1.0 / 6.0 + z * (1.0 / 120.0 + z * (-1.0 / 5040.0 +
                                                                        z / 362880.0))));
    const float c = 1.0 + z * (-0.5 + z * (1.0 / 24.0 + z * (-1.0 / 720.0 + z * (1.0 / 40320.0 -
                                                                               z / 3628800.0))));
    const vec2 turned = (k & 1u) == 0u ? vec2(s, c) : vec2(c, -s);
    return (k & 2u) == 0u ? turned : -turned;
}

float exact_tan(float x) {
    const vec2 v = exact_sin_cos(x);
    return v.x / v.y;
}

// For 0 <= x <= 1; around pi / 4 and 0 by Gregory's series.
float atan_to_one(float x) {
    const bool large = x > 0.414213562;
    const float t = large ? (x - 1.0) / (x + 1.0) : x, z = t * t;
    float p = 1.0 / 19.0;
    for (int n = 8; n >= 0; n--) p = 1.0 / float(2 * n + 1) - z * p;
    return large ? 0.785398163 + t * p : t * p;
}

float exact_atan2(float y, float x) {
    if (is_nan(x) || is_nan(y)) return kNaN;
    const float a = abs(x), b = abs(y), large = max(a, b), small = min(a, b);
    float angle = atan_to_one(large == small ? (large == 0.0 ? 0.0 : 1.0) : small / large);
    if (b > a) angle = kHalfPi - angle;
    if (is_negative(x)) angle = 2.0 * kHalfPi - angle;
    return with_sign_of(angle, y);
}

float exact_asin(float x) {
    if (is_nan(x) || abs(x) > 1.0) return kNaN;
    return exact_atan2(x, sqrt((1.0 - x) * (1.0 + x)));
}

float exact_acos(float x) {
    if (is_nan(x) || abs(x) > 1.0) return kNaN;
    return exact_atan2(sqrt((1.0 - x) * (1.0 + x)), x);
}

float exact_sinh(float x) {
    const float a = abs(x), z = a * a;
    if (a < 1.0)
        return x * (1.0 + z / 6.0 * (1.0 + z / 20.0 * (1.0 + z / 42.0 * (1.0 + z / 72.0))));
    const float root = exact_exp(0.5 * a);
    return is_nan(x) ? x : with_sign_of(0.5 * root * root - 0.5 / root / root, x);
}

float exact_cosh(float x) {
    const float root = exact_exp(0.5 * abs(x));
    return 0.5 * root * root + 0.5 / root / root;
}

float exact_asinh(float x) {
    const float a = abs(x);
    if (is_nan(x) || a == kInfinity) return x;
    if (a > 1e9) return with_sign_of(exact_log(a) + 0.693147181, x);
    return with_sign_of(exact_log1p(a + a * a / (1.0 + sqrt(a * a + 1.0))), x);
}

float exact_acosh(float x) {
    if (is_nan(x) || x < 1.0) return kNaN;
    if (x > 1e9) return exact_log(x) + 0.693147181;
    const float t = x - 1.0;
    return exact_log1p(t + sqrt(2.0 * t + t * t));
}

float exact_atanh(float x) {
    const float a = abs(x);
    if (is_nan(x) || a > 1.0) return kNaN;
    if (a == 1.0) return with_sign_of(kInfinity, x);
    return with_sign_of(0.5 * exact_log1p(2.0 * a / (1.0 - a)), x);
}

// log(1 + e^x).
float exact_softplus(float x) {
    return is_nan(x) ? x : max(x, 0.0) + exact_log1p(exact_exp(-abs(x)));
}

// a - b trunc(a / b), exactly: the remainder after taking b 2^n off, from the largest n on.
float exact_fmod(float x, float y) {
    const float b = abs(y);
    float a = abs(x);
    if (is_nan(x) || is_nan(y) || a == kInfinity || b == 0.0) return kNaN;
    if (b == kInfinity || a < b) return x;
    const int most = int(floatBitsToUint(a) >> 23) - int(floatBitsToUint(b) >> 23);
    for (int n = most; n >= 0 && a >= b; n--) {
        float step = b;
        for (int left = n; left > 0; left -= 120) step *= power_of_two(min(left, 120));
        if (step > a && n > 0) continue;
        if (a >= step) a -= step;
    }
    return with_sign_of(a, x);
}

// a - b round(a / b), ties to even.
float exact_remainder(float x, float y) {
    const float b = abs(y);
    if (is_nan(x) || is_nan(y) || abs(x) == kInfinity || b == 0.0) return kNaN;
    if (b == kInfinity) return x;
    // Within [0, 2 b) first: the multiple's parity is the part of b.
    const float twice = b < 1.7e38 ? exact_fmod(abs(x), 2.0 * b) : abs(x);
    const bool odd = twice >= b;
    float rest = odd ? twice - b : twice;
    if (rest > b - rest || (rest == b - rest && odd)) rest -= b;
    return is_negative(x) ? -rest : rest;
}
