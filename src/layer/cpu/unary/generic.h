// The functions of the unary family, on vectors of any width, and the loop over an array.
// A functor's constructor takes the parameters; operator() maps one vector.
#pragma once

#include "simd/math.h"

namespace quoll {
namespace {

namespace s = simd;

struct NoParams {
    explicit QUOLL_INLINE NoParams(const float*) {}
};

#define QUOLL_UNARY_FUNCTOR(name, expression)  \
    struct name : NoParams {                   \
        using NoParams::NoParams;              \
        template <class V>                     \
        QUOLL_INLINE V operator()(V x) const { \
            return expression;                 \
        }                                      \
    };
QUOLL_UNARY_FUNCTOR(Abs, abs(x))
QUOLL_UNARY_FUNCTOR(Neg, -x)
QUOLL_UNARY_FUNCTOR(Floor, floor(x))
QUOLL_UNARY_FUNCTOR(Ceil, ceil(x))
QUOLL_UNARY_FUNCTOR(Round, round(x))
QUOLL_UNARY_FUNCTOR(Trunc, trunc(x))
QUOLL_UNARY_FUNCTOR(Sign, select(x == V::zero(), V::zero(),
                                 select(is_nan(x), x, copysign(V::set(1.f), x))))
QUOLL_UNARY_FUNCTOR(Square, x* x)
QUOLL_UNARY_FUNCTOR(Sqrt, sqrt(x))
QUOLL_UNARY_FUNCTOR(Rsqrt, V::set(1.f) / sqrt(x))
QUOLL_UNARY_FUNCTOR(Reciprocal, V::set(1.f) / x)
QUOLL_UNARY_FUNCTOR(Exp, s::exp(x))
QUOLL_UNARY_FUNCTOR(Log, s::log(x))
QUOLL_UNARY_FUNCTOR(Log10, s::log10(x))
QUOLL_UNARY_FUNCTOR(Log1p, s::log1p(x))
QUOLL_UNARY_FUNCTOR(Expm1, s::expm1(x))
QUOLL_UNARY_FUNCTOR(Sin, s::sin(x))
QUOLL_UNARY_FUNCTOR(Cos, s::cos(x))
QUOLL_UNARY_FUNCTOR(Tan, s::tan(x))
QUOLL_UNARY_FUNCTOR(Asin, s::asin(x))
QUOLL_UNARY_FUNCTOR(Acos, s::acos(x))
QUOLL_UNARY_FUNCTOR(Atan, s::atan(x))
QUOLL_UNARY_FUNCTOR(Tanh, s::tanh(x))
QUOLL_UNARY_FUNCTOR(Sinh, s::sinh(x))
QUOLL_UNARY_FUNCTOR(Cosh, s::cosh(x))
QUOLL_UNARY_FUNCTOR(Asinh, s::asinh(x))
QUOLL_UNARY_FUNCTOR(Acosh, s::acosh(x))
QUOLL_UNARY_FUNCTOR(Atanh, s::atanh(x))
QUOLL_UNARY_FUNCTOR(Erf, s::erf(x))
QUOLL_UNARY_FUNCTOR(Sigmoid, s::sigmoid(x))
#undef QUOLL_UNARY_FUNCTOR

struct Swish {
    float beta;
    explicit QUOLL_INLINE Swish(const float* p) : beta(p[0]) {}
    template <class V>
    QUOLL_INLINE V operator()(V x) const {
        // The division by an infinite 1 + e^-x gives -0 as it should, except at -inf.
        const V y = x / (V::set(1.f) + s::exp(V::set(-beta) * x));
        return select(x == V::set(-INFINITY), V::zero(), y);
    }
};

struct Softplus : NoParams {
    using NoParams::NoParams;
    template <class V>
    QUOLL_INLINE V operator()(V x) const {
        // max(x, 0) + log(1 + e^-|x|) never overflows.
        return max(V::zero(), x) + s::log1p(s::exp(-abs(x)));
    }
};

struct Mish : NoParams {
    using NoParams::NoParams;
    template <class V>
    QUOLL_INLINE V operator()(V x) const {
        // tanh(log(1 + e)) = e (e + 2) / (e (e + 2) + 2); from x = 20 on it is 1 in float.
        const V e = s::exp(min(V::set(20.f), x));
        const V p = e * (e + V::set(2.f));
        const V y = max(V::set(-120.f), x) * (p / (p + V::set(2.f)));
        return select(x > V::set(20.f), x, y);
    }
};

struct Gelu : NoParams {
    using NoParams::NoParams;
    template <class V>
    QUOLL_INLINE V operator()(V x) const {
        const V y = x * V::set(.5f) * (V::set(1.f) + s::erf(x * V::set(0x1.6a09e6p-1f)));
        return select(x == V::set(-INFINITY), V::zero(), y);
    }
};

struct GeluFast : NoParams {
    using NoParams::NoParams;
    template <class V>
    QUOLL_INLINE V operator()(V x) const {
        const V inner = V::set(0.79788456f) * fma(V::set(0.044715f) * x * x, x, x);
        const V y = x * V::set(.5f) * (V::set(1.f) + s::tanh(inner));
        return select(x == V::set(-INFINITY), V::zero(), y);
    }
};

struct Relu {
    float slope;
    explicit QUOLL_INLINE Relu(const float* p) : slope(p[0]) {}
    template <class V>
    QUOLL_INLINE V operator()(V x) const {
        const V low = slope == 0.f ? V::zero() : x * V::set(slope);  // not NaN at -inf
        return select(x < V::zero(), low, x);
    }
};

struct Clip {
    float least, greatest;
    explicit QUOLL_INLINE Clip(const float* p) : least(p[0]), greatest(p[1]) {}
    template <class V>
    QUOLL_INLINE V operator()(V x) const {
        return min(V::set(greatest), max(V::set(least), x));
    }
};

struct HardSigmoid {
    float alpha, beta;
    explicit QUOLL_INLINE HardSigmoid(const float* p) : alpha(p[0]), beta(p[1]) {}
    template <class V>
    QUOLL_INLINE V operator()(V x) const {
        const V y = fma(x, V::set(alpha), V::set(beta));
        return min(V::set(1.f), max(V::zero(), y));
    }
};

struct HardSwish {
    HardSigmoid gate;
    explicit QUOLL_INLINE HardSwish(const float* p) : gate(p) {}
    template <class V>
    QUOLL_INLINE V operator()(V x) const {
        const V g = gate(x);
        return select(g == V::zero(), V::zero(), x * g);  // not NaN at -inf
    }
};

struct Elu {
    float alpha;
    explicit QUOLL_INLINE Elu(const float* p) : alpha(p[0]) {}
    template <class V>
    QUOLL_INLINE V operator()(V x) const {
        return select(x < V::zero(), V::set(alpha) * (s::exp(x) - V::set(1.f)), x);
    }
};

struct Celu {
    float alpha;
    explicit QUOLL_INLINE Celu(const float* p) : alpha(p[0]) {}
    template <class V>
    QUOLL_INLINE V operator()(V x) const {
        const V a = V::set(alpha);
        return select(x < V::zero(), a * (s::exp(x / a) - V::set(1.f)), x);
    }
};

struct Selu {
    float alpha, lambda;
    explicit QUOLL_INLINE Selu(const float* p) : alpha(p[0]), lambda(p[1]) {}
    template <class V>
    QUOLL_INLINE V operator()(V x) const {
        const V y = select(x < V::zero(), V::set(alpha) * (s::exp(x) - V::set(1.f)), x);
        return V::set(lambda) * y;
    }
};

struct Shrink {
    float bias, lambda;
    explicit QUOLL_INLINE Shrink(const float* p) : bias(p[0]), lambda(p[1]) {}
    template <class V>
    QUOLL_INLINE V operator()(V x) const {
        const V y = select(x < V::set(-lambda), x + V::set(bias), x - V::set(bias));
        return select(abs(x) <= V::set(lambda), V::zero(), y);
    }
};

struct Threshold {
    float threshold;
    explicit QUOLL_INLINE Threshold(const float* p) : threshold(p[0]) {}
    template <class V>
    QUOLL_INLINE V operator()(V x) const {
        return select(x > V::set(threshold), V::set(1.f), V::zero());
    }
};

struct Linear {
    float a, b;
    explicit QUOLL_INLINE Linear(const float* p) : a(p[0]), b(p[1]) {}
    template <class V>
    QUOLL_INLINE V operator()(V x) const {
        return fma(x, V::set(a), V::set(b));
    }
};

struct ExpLinear {
    Linear inner;
    explicit QUOLL_INLINE ExpLinear(const float* p) : inner(p) {}
    template <class V>
    QUOLL_INLINE V operator()(V x) const {
        return s::exp(inner(x));
    }
};

struct LogLinear {
    Linear inner;
    float c;
    explicit QUOLL_INLINE LogLinear(const float* p) : inner(p), c(p[2]) {}
    template <class V>
    QUOLL_INLINE V operator()(V x) const {
        return V::set(c) * s::log(inner(x));
    }
};

struct Power {
    Linear inner;
    float p;
    explicit QUOLL_INLINE Power(const float* q) : inner(q), p(q[2]) {}
    template <class V>
    QUOLL_INLINE V operator()(V x) const {
        return s::pow(inner(x), V::set(p));
    }
};

struct PowBase {
    Linear inner;
    float base;
    explicit QUOLL_INLINE PowBase(const float* q) : inner(q), base(q[2]) {}
    template <class V>
    QUOLL_INLINE V operator()(V x) const {
        return s::pow(V::set(base), inner(x));
    }
};

template <class F>
void unary_kernel(const float* in, float* out, size_t n, const float* params) {
    using V = s::vecf<s::kLanes>;
    const F f(params);
    size_t i = 0;
    // Two registers a turn, to overlap the latency of long functions.
    for (; i + 2 * s::kLanes <= n; i += 2 * s::kLanes) {
        const V a = V::load(in + i), b = V::load(in + i + s::kLanes);
        f(a).store(out + i);
        f(b).store(out + i + s::kLanes);
    }
    for (; i < n; i += s::kLanes) f(V::load_n(in + i, n - i)).store_n(out + i, n - i);
}

}  // namespace
}  // namespace quoll
