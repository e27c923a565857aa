// The activations that operators with activation_type apply to their results: their formulas and a
// table of them. Scalar references, vector kernels, fusion and docs all follow from this file.
//
// A formula is a functor over a number type V: a vector (simd/math.h), or Real (activation.h) for
// the reference. It is constructed from the parameters in the order of the table.
#ifndef QUOLL_LAYER_ACTIVATION_FUNCTIONS_H
#define QUOLL_LAYER_ACTIVATION_FUNCTIONS_H

#include <math.h>

// Kernels are compiled once per ISA: nothing here may become a function of its own.
#define QUOLL_FORMULA inline __attribute__((always_inline))

namespace quoll {
namespace activations {

struct Relu {
    float slope;
    explicit QUOLL_FORMULA Relu(const float* p) : slope(p[0]) {}
    template <class V>
    QUOLL_FORMULA V operator()(V x) const {
        const V low = slope == 0.f ? V::zero() : x * V::set(slope);  // not NaN at -inf
        return select(x < V::zero(), low, x);
    }
};

struct Clip {
    float least, greatest;
    explicit QUOLL_FORMULA Clip(const float* p) : least(p[0]), greatest(p[1]) {}
    template <class V>
    QUOLL_FORMULA V operator()(V x) const {
        return min(V::set(greatest), max(V::set(least), x));
    }
};

struct Sigmoid {
    explicit QUOLL_FORMULA Sigmoid(const float*) {}
    template <class V>
    QUOLL_FORMULA V operator()(V x) const {
        return sigmoid(x);
    }
};

struct Mish {
    // x tanh(log(1 + e^x))
    explicit QUOLL_FORMULA Mish(const float*) {}
    template <class V>
    QUOLL_FORMULA V operator()(V x) const {
        // tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2); from x = 20 on it is 1 in float.
        const V e = exp(min(V::set(20.f), x));
        const V p = e * (e + V::set(2.f));
        const V y = max(V::set(-120.f), x) * (p / (p + V::set(2.f)));
        return select(x > V::set(20.f), x, y);
    }
};

struct HardSigmoid {
    float alpha, beta;
    explicit QUOLL_FORMULA HardSigmoid(const float* p) : alpha(p[0]), beta(p[1]) {}
    template <class V>
    QUOLL_FORMULA V operator()(V x) const {
        const V y = fma(x, V::set(alpha), V::set(beta));
        return min(V::set(1.f), max(V::zero(), y));
    }
};

struct HardSwish {
    HardSigmoid gate;
    explicit QUOLL_FORMULA HardSwish(const float* p) : gate(p) {}
    template <class V>
    QUOLL_FORMULA V operator()(V x) const {
        const V g = gate(x);
        return select(g == V::zero(), V::zero(), x * g);  // not NaN at -inf
    }
};

struct Swish {
    float beta;
    explicit QUOLL_FORMULA Swish(const float* p) : beta(p[0]) {}
    template <class V>
    QUOLL_FORMULA V operator()(V x) const {
        // The division by an infinite 1 + e^-x gives -0 as it should, except at -inf.
        const V y = x / (V::set(1.f) + exp_in_sum(V::set(-beta) * x));
        return select(x == V::set(-INFINITY), V::zero(), y);
    }
};

struct Gelu {
    // x Phi(x), where Phi is the cumulative distribution function of the normal distribution.
    explicit QUOLL_FORMULA Gelu(const float*) {}
    template <class V>
    QUOLL_FORMULA V operator()(V x) const {
        return select(x == V::set(-INFINITY), V::zero(), x * normal_distribution(x));
    }
};

struct GeluFast {
    // Its approximation by Hendrycks and Gimpel (2016).
    explicit QUOLL_FORMULA GeluFast(const float*) {}
    template <class V>
    QUOLL_FORMULA V operator()(V x) const {
        const V inner = V::set(0.79788456f) * fma(V::set(0.044715f) * x * x, x, x);
        const V y = x * V::set(.5f) * (V::set(1.f) + tanh(inner));
        return select(x == V::set(-INFINITY), V::zero(), y);
    }
};

struct AnyGelu {
    // [1 for the approximation]
    bool fast;
    explicit QUOLL_FORMULA AnyGelu(const float* p) : fast(p[0] != 0.f) {}
    template <class V>
    QUOLL_FORMULA V operator()(V x) const {
        return fast ? GeluFast(nullptr)(x) : Gelu(nullptr)(x);
    }
};

}  // namespace activations
}  // namespace quoll

// X(activation_type, name, formula, kernel, number of activation_params, what stands for the first
//   where there are none, word, the parameters in words)
// kernel: of k, a UnaryKernels, for the parameters f.a and f.b. Types from 7 on are not in ncnn.
#define QUOLL_ACTIVATIONS(X)                                                    \
    X(1, ReLU, Relu, k.relu, 0, 0.f, "relu", "")                                \
    X(2, LeakyReLU, Relu, k.relu, 1, 0.f, "leakyrelu", "slope")                 \
    X(3, Clip, Clip, k.clip, 2, 0.f, "clip", "min, max")                        \
    X(4, Sigmoid, Sigmoid, k.sigmoid, 0, 0.f, "sigmoid", "")                    \
    X(5, Mish, Mish, k.mish, 0, 0.f, "mish", "")                                \
    X(6, HardSwish, HardSwish, k.hardswish, 2, 0.f, "hardswish", "alpha, beta") \
    X(7, Swish, Swish, k.swish, 0, 1.f, "swish", "")                            \
    X(8, Gelu, AnyGelu, f.a != 0.f ? k.gelu_fast : k.gelu, 1, 0.f, "gelu", "1 for the tanh form")

#endif
