// The functions of the unary family, on vectors of any width, and the loop over an array.
// A functor's constructor takes the parameters; operator() maps one vector. Those of activations
// that can be fused are in layer/common/activation_functions.h.
#pragma once

#include "layer/common/activation_functions.h"
#include "simd/math_bf16.h"

namespace quoll {
namespace {

namespace s = simd;
using namespace activations;

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

struct Softplus : NoParams {
    using NoParams::NoParams;
    template <class V>
    QUOLL_INLINE V operator()(V x) const {
        // max(x, 0) + log(1 + e^-|x|) never overflows.
        return max(V::zero(), x) + s::log1p(s::exp(-abs(x)));
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

// For results that are rounded to bf16, where that is cheaper.
#if HWY_TARGET == HWY_AVX3
struct SigmoidBf16 : NoParams {
    using NoParams::NoParams;
    template <class V>
    QUOLL_INLINE V operator()(V x) const {
        return s::falling_sigmoid_bf16(x * V::set(-s::kLog2E));
    }
};
struct SwishBf16 {
    float factor;
    explicit QUOLL_INLINE SwishBf16(const float* p) : factor(-s::kLog2E * p[0]) {}
    template <class V>
    QUOLL_INLINE V operator()(V x) const {
        return s::share_bf16(x, s::falling_sigmoid_bf16(x * V::set(factor)));
    }
};
QUOLL_UNARY_FUNCTOR(TanhBf16, s::tanh_bf16(x))
QUOLL_UNARY_FUNCTOR(MishBf16, s::mish_bf16(x))
QUOLL_UNARY_FUNCTOR(GeluBf16, s::gelu_bf16(x))
QUOLL_UNARY_FUNCTOR(GeluFastBf16, s::gelu_fast_bf16(x))
#else
using SigmoidBf16 = Sigmoid;
using SwishBf16 = Swish;
using TanhBf16 = Tanh;
using MishBf16 = Mish;
using GeluBf16 = Gelu;
using GeluFastBf16 = GeluFast;
#endif
#undef QUOLL_UNARY_FUNCTOR

template <class F>
void unary_kernel(const float* in, float* out, size_t n, const float* params) {
    using V = s::vecf<s::kLanes>;
    const F f(params);
    size_t i = 0;
    // Two registers per turn, to overlap the latency of long functions.
    for (; i + 2 * s::kLanes <= n; i += 2 * s::kLanes) {
        const V a = V::load(in + i), b = V::load(in + i + s::kLanes);
        f(a).store(out + i);
        f(b).store(out + i + s::kLanes);
    }
    for (; i < n; i += s::kLanes) f(V::load_n(in + i, n - i)).store_n(out + i, n - i);
}

}  // namespace
}  // namespace quoll
