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

float activation_gelu(float x, float fast) {
    if (x == -kInfinity) return 0.0;
    if (fast != 0.0)
        return x * 0.5 * (1.0 + exact_tanh(0.79788456 * (0.044715 * x * x * x + x)));
    return x * 0.5 * (1.0 + exact_erf(x * 0.70710678));
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
