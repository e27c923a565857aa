// The activations by their number in layer/activation_functions.h; a and b: their parameters.
float activation_clip(float x, float low, float high) {
    if (is_nan(x)) return x;
    return x < low ? low : x > high ? high : x;
}

float activation_mish(float x) {
    if (is_nan(x) || x > 20.0) return x;
    const float e = exact_exp(x);
    const float p = e * (e + 2.0);
    return (x < -120.0 ? -120.0 : x) * (p / (p + 2.0));
}

float activation_swish(float x, float beta) {
    if (x == -kInfinity) return 0.0;
    return x / (1.0 + exact_exp(-beta * x));
}

// x / 2 (1 + erf(x / sqrt 2)), by way of 1 - erf (formula 7.1.26 of Abramowitz and Stegun, 1.5e-7),
// or by its tanh form, as x / (1 + e^-2u). The code is short, since products of matrices end with
// it; the error of exp2 times its factor stays below 1e-7.
float activation_gelu(float x, float fast) {
    if (fast != 0.0) {
        const float u = x * (0.044715 * x * x + 1.0);
        return x == -kInfinity ? 0.0 : x / (1.0 + exp2(-2.3022082 * u));
    }
    const float a = min(abs(x) * 0.70710678, 10.0), t = 1.0 / (1.0 + 0.3275911 * a);
    const float p = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t +
                     0.254829592) * t;
    const float rest = a < 10.0 ? 0.5 * p * exp2(-1.44269504 * a * a) : 0.0;
    if (x < 0.0) return rest == 0.0 ? 0.0 : x * rest;
    return rest == 0.0 ? x : x - x * rest;
}

float activated(float x, int type, float a, float b) {
    switch (type) {
        case 1:
        case 2:
            return x < 0.0 ? (a == 0.0 ? 0.0 : x * a) : x;
        case 3:
            return activation_clip(x, a, b);
        case 4:
            return exact_sigmoid(x);
        case 5:
            return activation_mish(x);
        case 6: {
            const float g = activation_clip(x * a + b, 0.0, 1.0);
            return g == 0.0 ? 0.0 : x * g;
        }
        case 7:
            return activation_swish(x, a);
        case 8:
            return activation_gelu(x, a);
    }
    return x;
}

vec4 activated4(vec4 v, int type, float a, float b) {
    if (type == 0) return v;
    return vec4(activated(v.x, type, a, b), activated(v.y, type, a, b),
                activated(v.z, type, a, b), activated(v.w, type, a, b));
}
