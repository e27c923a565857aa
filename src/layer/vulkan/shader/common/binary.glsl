// The operations by their number in layer/elementwise/binaryop.h, and others from 100 on. With
// FUNCTIONS there are only those that need functions.glsl, otherwise only the rest.
#ifdef FUNCTIONS
#include "functions.glsl"

float log_of_sum(float a, float b) {
    if (a == b) return a + 0.693147181;
    return maximum(a, b) + exact_log1p(exact_exp(-abs(a - b)));
}

float binary(float a, float b, int operation) {
    switch (operation) {
        case 6:
            return exact_pow(a, b);
        case 9:
            return exact_pow(b, a);
        case 10:
            return exact_atan2(a, b);
        case 11:
            return exact_atan2(b, a);
        case 12:
            return exact_fmod(a, b);
        case 13:
            return exact_fmod(b, a);
        case 14:
            return log_of_sum(a, b);
        case 17:
            return exact_remainder(a, b);
        case 18:
            return exact_remainder(b, a);
    }
    return 0.0;
}
#else
#include "quotient.glsl"

// floor(a / b) for the quotient as IEEE 754 rounds it: Vulkan's may be off where it is near a whole
// number.
float floored_quotient(float a, float b) {
    const float q = a / b, n = floor(q + 0.5);
    if (abs(q) < 8388608.0 && abs(q - n) < 1e-6 * abs(n)) {
        const float rest = rest_of(a, n, b);
        // It was rounded up to n if it is not below n by half the distance to the next float.
        const uint bits = floatBitsToUint(n);
        const float power = uintBitsToFloat(bits & 0x7f800000u);
        const float half_unit = power * (n == power ? 2.98023224e-8 : 5.96046448e-8);
        return rest / b < -half_unit ? n - 1.0 : n;
    }
    return floor(q);
}

float binary(float a, float b, int operation) {
    switch (operation) {
        case 0:
            return a + b;
        case 1:
            return a - b;
        case 2:
            return a * b;
        case 3:
            return quotient(a, b);
        case 4:
            return maximum(a, b);
        case 5:
            return minimum(a, b);
        case 7:
            return b - a;
        case 8:
            return quotient(b, a);
        case 15:
            return floored_quotient(a, b);
        case 16:
            return floored_quotient(b, a);
        case 100:  // GLU
            return a * exact_sigmoid(b);
    }
    return 0.0;
}
#endif
