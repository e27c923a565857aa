// The cells of the recurrent family, on vectors, and the loop over a state.
#pragma once

#include "layer/cpu/recurrent/recurrent.h"
#include "simd/math_bf16.h"

namespace quoll {
namespace {

namespace s = simd;

// `left` values of gate g from index i on: the sums of input and state.
template <class V>
struct GateSums {
    const float *x, *h;
    size_t n, i, left;

    QUOLL_INLINE V input(size_t g) const { return V::load_n(x + g * n + i, left); }
    QUOLL_INLINE V state(size_t g) const { return V::load_n(h + g * n + i, left); }
    QUOLL_INLINE V sum(size_t g) const { return input(g) + state(g); }
};

struct ExactMath {
    template <class V>
    static QUOLL_INLINE V sigmoid(V x) {
        return s::sigmoid(x);
    }
    template <class V>
    static QUOLL_INLINE V tanh(V x) {
        return s::tanh(x);
    }
};

#if HWY_TARGET == HWY_AVX3
// As exact as is needed for states that are rounded to bf16.
struct RoundedMath {
    template <class V>
    static QUOLL_INLINE V sigmoid(V x) {
        return s::falling_sigmoid_bf16(x * V::set(-s::kLog2E));
    }
    template <class V>
    static QUOLL_INLINE V tanh(V x) {
        return s::tanh_bf16(x);
    }
};
#endif

template <class Math>
struct RnnCell {
    template <class V>
    static QUOLL_INLINE void step(const GateSums<V>& gates, float* hidden, float*) {
        Math::tanh(gates.sum(0)).store_n(hidden + gates.i, gates.left);
    }
};

template <class Math>
struct LstmCell {
    template <class V>
    static QUOLL_INLINE void step(const GateSums<V>& gates, float* hidden, float* cell) {
        const V kept = Math::sigmoid(gates.sum(1)) * V::load_n(cell + gates.i, gates.left);
        const V c = fma(Math::sigmoid(gates.sum(0)), Math::tanh(gates.sum(3)), kept);
        c.store_n(cell + gates.i, gates.left);
        (Math::sigmoid(gates.sum(2)) * Math::tanh(c)).store_n(hidden + gates.i, gates.left);
    }
};

template <class Math>
struct GruCell {
    template <class V>
    static QUOLL_INLINE void step(const GateSums<V>& gates, float* hidden, float*) {
        const V r = Math::sigmoid(gates.sum(0)), u = Math::sigmoid(gates.sum(1));
        const V next = Math::tanh(fma(r, gates.state(2), gates.input(2)));
        const V before = V::load_n(hidden + gates.i, gates.left);
        fma(u, before - next, next).store_n(hidden + gates.i, gates.left);
    }
};

// The cells of ONNX's order of gates.

template <class Math>
struct OnnxLstmCell {
    template <class V>
    static QUOLL_INLINE void step(const GateSums<V>& gates, float* hidden, float* cell) {
        const V kept = Math::sigmoid(gates.sum(2)) * V::load_n(cell + gates.i, gates.left);
        const V c = fma(Math::sigmoid(gates.sum(0)), Math::tanh(gates.sum(3)), kept);
        c.store_n(cell + gates.i, gates.left);
        (Math::sigmoid(gates.sum(1)) * Math::tanh(c)).store_n(hidden + gates.i, gates.left);
    }
};

template <class Math, class V>
QUOLL_INLINE void mix_states(const GateSums<V>& gates, V next, float* hidden) {
    const V before = V::load_n(hidden + gates.i, gates.left);
    fma(Math::sigmoid(gates.sum(0)), before - next, next).store_n(hidden + gates.i, gates.left);
}

template <class Math>
struct OnnxGruCell {
    template <class V>
    static QUOLL_INLINE void step(const GateSums<V>& gates, float* hidden, float*) {
        const V r = Math::sigmoid(gates.sum(1));
        mix_states<Math>(gates, Math::tanh(fma(r, gates.state(2), gates.input(2))), hidden);
    }
};

template <class Math>
struct OnnxGruReset {
    template <class V>
    static QUOLL_INLINE void step(const GateSums<V>& gates, float* hidden, float*) {
        const V state = V::load_n(hidden + gates.i, gates.left);
        (state * Math::sigmoid(gates.sum(1))).store_n(hidden + gates.i, gates.left);
    }
};

template <class Math>
struct OnnxGruResetCell {
    template <class V>
    static QUOLL_INLINE void step(const GateSums<V>& gates, float* hidden, float* cell) {
        const V product = V::load_n(cell + gates.i, gates.left);
        mix_states<Math>(gates, Math::tanh(gates.input(2) + product), hidden);
    }
};

template <class Cell>
void recurrent_kernel(const float* x, const float* h, size_t n, float* hidden, float* cell) {
    using V = s::vecf<s::kLanes>;
    for (size_t i = 0; i < n; i += s::kLanes)
        Cell::step(GateSums<V>{x, h, n, i, n - i}, hidden, cell);
}

}  // namespace
}  // namespace quoll
