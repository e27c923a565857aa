// Functions for which Vulkan requires less precision than the engine's answers need, and tests that
// compilers might fold to a constant. Errors are at most 4 units in the last place.
bool is_nan(float x) { return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u; }

#define kInfinity uintBitsToFloat(0x7f800000u)

// 2^n for -126 <= n <= 127.
float power_of_two(int n) { return uintBitsToFloat(uint(n + 127) << 23); }

// e^x: x = n log 2 + r, the remainder by Taylor's series to the seventh power.
float exact_exp(float x) {
    if (is_nan(x) || x == kInfinity) return x;
    if (x > 88.722839) return kInfinity;
    if (x < -87.336544) return 0.0;
    const float n = floor(x * 1.44269504 + 0.5);
    precise float r = x - n * 0.693359375;
    r = r + n * 2.12194440e-4;
    float p = 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r * r + r + 1.0;
    // In two steps, since 2^128 is not a float.
    const int k = int(n) / 2;
    return p * power_of_two(k) * power_of_two(int(n) - k);
}

float exact_sigmoid(float x) {
    const float e = exact_exp(-abs(x));
    const float s = (x < 0.0 ? e : 1.0) / (1.0 + e);
    return is_nan(x) ? x : s;
}

float exact_tanh(float x) {
    if (is_nan(x)) return x;
    const float a = abs(x);
    if (a < 0.6) {
        // The odd series x - x^3/3 + ... by its continued fraction, since differences of
        // exponentials would cancel.
        const float s = x * x;
        return x * (135135.0 + s * (17325.0 + s * (378.0 + s))) /
               (135135.0 + s * (62370.0 + s * (3150.0 + s * 28.0)));
    }
    const float e = exact_exp(-2.0 * a);
    const float t = (1.0 - e) / (1.0 + e);
    return x < 0.0 ? -t : t;
}

// Below 1 by Maclaurin's series, above by formula 7.1.26 of Abramowitz and Stegun (1.5e-7).
float exact_erf(float x) {
    if (is_nan(x)) return x;
    const float a = min(abs(x), 10.0);
    const float s = a * a;
    float y;
    if (a < 1.0) {
        float p = 1.0 / 76204800.0;
        p = p * s - 1.0 / 6894720.0;
        p = p * s + 1.0 / 685440.0;
        p = p * s - 1.0 / 75600.0;
        p = p * s + 1.0 / 9360.0;
        p = p * s - 1.0 / 1320.0;
        p = p * s + 1.0 / 216.0;
        p = p * s - 1.0 / 42.0;
        p = p * s + 1.0 / 10.0;
        p = p * s - 1.0 / 3.0;
        y = p * s * a + a;
        y *= 1.12837917;
    } else {
        const float t = 1.0 / (1.0 + 0.3275911 * a);
        const float p = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) *
                             t + 0.254829592) * t;
        y = 1.0 - p * exact_exp(-s);
    }
    return x < 0.0 ? -y : y;
}
