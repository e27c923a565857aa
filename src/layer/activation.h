// The activation that convolution-like operators apply to their results.
#ifndef QUOLL_LAYER_ACTIVATION_H
#define QUOLL_LAYER_ACTIVATION_H

#include <math.h>

#include "schema.h"

namespace quoll {

// Values of the parameter activation_type; the words in brackets are activation_params.
enum ActivationType {
    kActivationNone = 0,
    kActivationReLU = 1,
    kActivationLeakyReLU = 2,  // [slope]
    kActivationClip = 3,       // [min, max]
    kActivationSigmoid = 4,
    kActivationMish = 5,       // x * tanh(ln(1 + e^x))
    kActivationHardSwish = 6,  // [alpha, beta]: x * clamp(alpha x + beta, 0, 1)
    kActivationSwish = 7,      // x / (1 + e^-x); from here on not in ncnn
    kActivationGelu = 8,       // [fast]: see gelu.h
};

// One activation with its parameters, ready to be applied.
struct Activation {
    int type;
    float a, b;  // the parameters, 0 where there are none

    Activation() : type(kActivationNone), a(0.f), b(0.f) {}
    Activation(int activation_type, const Mat& params) : type(activation_type), a(0.f), b(0.f) {
        if (params.w > 0) a = params[0];
        if (params.w > 1) b = params[1];
    }
};

// x Phi(x), Phi the distribution function of the normal distribution, or its approximation by
// Hendrycks and Gimpel (2016).
inline float gelu(float x, bool fast) {
    const float kSqrtHalf = 0.70710678f, kSqrt2ByPi = 0.79788456f;
    if (x == -INFINITY) return 0.f;  // the limit; the products are NaN
    if (!fast) return 0.5f * x * erfcf(-kSqrtHalf * x);
    return 0.5f * x * (1.f + tanhf(kSqrt2ByPi * (x + 0.044715f * x * x * x)));
}

// The scalar reference. NaN stays NaN; where a function has a limit at -infinity, that is its
// value.
inline float activate(float x, const Activation& f) {
    switch (f.type) {
        case kActivationReLU:
            return x < 0.f ? 0.f : x;
        case kActivationLeakyReLU:
            return x < 0.f ? (f.a == 0.f ? 0.f : x * f.a) : x;
        case kActivationClip: {
            const float y = x < f.a ? f.a : x;
            return y > f.b ? f.b : y;
        }
        case kActivationSigmoid:
            return (float)(1.0 / (1.0 + exp(-(double)x)));
        case kActivationMish:
            if (x == -INFINITY) return 0.f;
            // For x > 30 the factor is 1 in float, and e^x would overflow later on.
            return x > 30.f ? x : (float)(x * tanh(log1p(exp((double)x))));
        case kActivationHardSwish: {
            const float gate = x * f.a + f.b;
            return gate < 0.f ? 0.f : gate > 1.f ? x : x * gate;
        }
        case kActivationSwish:
            if (x == -INFINITY) return 0.f;
            return (float)(x / (1.0 + exp(-(double)x)));
        case kActivationGelu:
            return gelu(x, f.a != 0.f);
    }
    return x;
}

// The two schema lines (ids 9 and 10).
inline void activation_lines(int& type, Mat& params, ParamVisitor& v) {
    v(9, "activation_type", type, 0,
      "0 none, 1 relu, 2 leakyrelu, 3 clip, 4 sigmoid, 5 mish, 6 hardswish, 7 swish, "
      "8 gelu",
      between(0, 8));
    v.floats(10, "activation_params", params,
             "leakyrelu: slope; clip: min, max; hardswish: alpha, beta; gelu: 1 for the tanh form");
}

// After loading: are there as many activation_params as the type needs?
inline int check_activation(const Layer& layer, int type, const Mat& params) {
    const int needed = type == kActivationLeakyReLU || type == kActivationGelu   ? 1
                       : type == kActivationClip || type == kActivationHardSwish ? 2
                                                                                 : 0;
    if (params.w >= needed) return kOk;
    return layer.fail("activation_params (10): activation_type %d needs %d values, got %d", type,
                      needed, params.w);
}

}  // namespace quoll

#endif
