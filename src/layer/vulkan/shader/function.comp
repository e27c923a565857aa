// y = f(x) for each value, for functions that are not activations of other operators.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "storage.glsl"
#include "index.glsl"
#include "math.glsl"
#include "functions.glsl"

layout(constant_id = 0) const int kType = 0;
READS4(0, Input, x);
WRITES4(1, Output, y);
layout(push_constant) uniform Push {
    uint count, row_vectors, row_length;
    uint x_first, x_pitch, y_first, y_pitch;
    float a, b, c;
};

// The operations of UnaryOp by their number.
float unary(float v, int type) {
    switch (type) {
        case 0:
            return abs(v);
        case 1:
            return -v;
        case 2:
            return floor(v);
        case 3:
            return ceil(v);
        case 4:
            return v * v;
        case 5:
            return sqrt(v);
        case 6:
            return 1.0 / sqrt(v);
        case 7:
            return exact_exp(v);
        case 8:
            return exact_log(v);
        case 9:
            return exact_sin_cos(v).x;
        case 10:
            return exact_sin_cos(v).y;
        case 11:
            return exact_tan(v);
        case 12:
            return exact_asin(v);
        case 13:
            return exact_acos(v);
        case 14:
            return exact_atan2(v, 1.0);
        case 15:
            return 1.0 / v;
        case 16:
            return exact_tanh(v);
        case 17:
            return exact_log(v) * 0.434294482;
        case 18:
            return roundEven(v);
        case 19:
            return trunc(v);
        case 20:
            return v > 0.0 ? 1.0 : v < 0.0 ? -1.0 : v;
        case 21:
            return exact_expm1(v);
        case 22:
            return exact_sinh(v);
        case 23:
            return exact_asinh(v);
        case 24:
            return exact_cosh(v);
        case 25:
            return exact_acosh(v);
        case 26:
            return exact_atanh(v);
        case 27:
            return exact_log1p(v);
    }
    return v;
}

// Those of other layers, as function_vulkan.cpp numbers them.
float function(float v) {
    switch (kType) {
        case 32:
            return a == 1.0 ? v * b + c : exact_pow(v * b + c, a);
        case 33:
            return a == -1.0 ? exact_exp(v * b + c) : exact_pow(a, v * b + c);
        case 34:
            return exact_log(v * b + c) / a;
        case 35:
            return exact_erf(v);
        case 36:  // ELU, SELU, CELU
            return b * (v < 0.0 ? a * (exact_exp(v * c) - 1.0) : v);
        case 37: {
            const float g = v * a + b;
            return is_nan(g) ? g : clamp(g, 0.0, 1.0);
        }
        case 38:
            return v < -a ? v + b : abs(v) <= a ? 0.0 : v - b;
        case 39:
            return exact_softplus(v);
        case 40:
            return v > a ? 1.0 : 0.0;
        case 41:  // with a factor
            return v == -kInfinity ? 0.0 : v / (1.0 + exact_exp(-a * v));
    }
    return unary(v, kType);
}

void main() {
    const uint i = linear_index();
    if (i >= count) return;
    const uint row = i / row_vectors, at = i - row * row_vectors;
    const vec4 v = vec4(x[x_first + row * x_pitch + at]);
    vec4 f;
    for (int lane = 0; lane < 4; lane++) f[lane] = function(v[lane]);
    y[y_first + row * y_pitch + at] = STORED4(first_lanes(f, int(row_length - at * 4u)));
}
