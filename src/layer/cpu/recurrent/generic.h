// The cells of the recurrent family, on vectors, and the loop over a state.
#pragma once

#include "layer/cpu/recurrent/recurrent.h"
#include "simd/math.h"

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

struct RnnCell {
    template <class V>
    static QUOLL_INLINE void step(const GateSums<V>& gates, float* hidden, float*) {
        s::tanh(gates.sum(0)).store_n(hidden + gates.i, gates.left);
    }
};

struct LstmCell {
    template <class V>
    static QUOLL_INLINE void step(const GateSums<V>& gates, float* hidden, float* cell) {
        const V kept = s::sigmoid(gates.sum(1)) * V::load_n(cell + gates.i, gates.left);
        const V c = fma(s::sigmoid(gates.sum(0)), s::tanh(gates.sum(3)), kept);
        c.store_n(cell + gates.i, gates.left);
        (s::sigmoid(gates.sum(2)) * s::tanh(c)).store_n(hidden + gates.i, gates.left);
    }
};

struct GruCell {
    template <class V>
    static QUOLL_INLINE void step(const GateSums<V>& gates, float* hidden, float*) {
        const V r = s::sigmoid(gates.sum(0)), u = s::sigmoid(gates.sum(1));
        const V next = s::tanh(fma(r, gates.state(2), gates.input(2)));
        const V before = V::load_n(hidden + gates.i, gates.left);
        fma(u, before - next, next).store_n(hidden + gates.i, gates.left);
    }
};

// The cells of ONNX's order of gates.

struct OnnxLstmCell {
    template <class V>
    static QUOLL_INLINE void step(const GateSums<V>& gates, float* hidden, float* cell) {
        const V kept = s::sigmoid(gates.sum(2)) * V::load_n(cell + gates.i, gates.left);
        const V c = fma(s::sigmoid(gates.sum(0)), s::tanh(gates.sum(3)), kept);
        c.store_n(cell + gates.i, gates.left);
        (s::sigmoid(gates.sum(1)) * s::tanh(c)).store_n(hidden + gates.i, gates.left);
    }
};

template <class V>
QUOLL_INLINE void mix_states(const GateSums<V>& gates, V next, float* hidden) {
    const V before = V::load_n(hidden + gates.i, gates.left);
    fma(s::sigmoid(gates.sum(0)), before - next, next).store_n(hidden + gates.i, gates.left);
}

struct OnnxGruCell {
    template <class V>
    static QUOLL_INLINE void step(const GateSums<V>& gates, float* hidden, float*) {
        const V r = s::sigmoid(gates.sum(1));
        mix_states(gates, s::tanh(fma(r, gates.state(2), gates.input(2))), hidden);
    }
};

struct OnnxGruReset {
    template <class V>
    static QUOLL_INLINE void step(const GateSums<V>& gates, float* hidden, float*) {
        const V state = V::load_n(hidden + gates.i, gates.left);
        (state * s::sigmoid(gates.sum(1))).store_n(hidden + gates.i, gates.left);
    }
};

struct OnnxGruResetCell {
    template <class V>
    static QUOLL_INLINE void step(const GateSums<V>& gates, float* hidden, float* cell) {
        const V product = V::load_n(cell + gates.i, gates.left);
        mix_states(gates, s::tanh(gates.input(2) + product), hidden);
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
