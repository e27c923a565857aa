// Compiled once per ISA.
#include "layer/cpu/common/isa_table.h"
#include "simd/convert.h"
#include "simd/math.h"
#include "wrappers.h"

namespace quoll {
namespace {

using namespace simd;

// What fits int32_t.
template <class V>
QUOLL_INLINE V small(V a) {
    return max(V::set(-1e9f), min(V::set(1e9f), a));
}

#define QUOLL_SIMD_OP(name, expression, reference, ulp)                                  \
    template <size_t N>                                                                  \
    void name##_wrapper(const float* pa, const float* pb, const float* pc, float* out) { \
        using V = vecf<N>;                                                               \
        [[maybe_unused]] const V a = V::load(pa), b = V::load(pb), c = V::load(pc);      \
        (expression).store(out);                                                         \
    }
#include "wrappers.inc"
#undef QUOLL_SIMD_OP

template <size_t N>
void load_n_wrapper(const float* in, size_t n, float* out) {
    vecf<N>::load_n(in, n).store(out);
}
template <size_t N>
void store_n_wrapper(const float* in, size_t n, float* out) {
    vecf<N>::load(in).store_n(out, n);
}
template <size_t N>
void int_ops_wrapper(const int32_t* pa, const int32_t* pb, int32_t* out) {
    using I = veci<N>;
    const I a = I::load(pa), b = I::load(pb);
    const I results[kSimdIntOps] = {a + b,
                                    a - b,
                                    a * b,
                                    a & b,
                                    a | b,
                                    a ^ b,
                                    a.template shift_left<3>(),
                                    a.template shift_right<3>(),
                                    min(a, b),
                                    max(a, b)};
    for (const I& r : results) {
        r.store(out);
        out += N;
    }
}
template <size_t N>
void store_f16_wrapper(const float* in, uint16_t* out) {
    store_f16(vecf<N>::load(in), out);
}
template <size_t N>
void load_f16_wrapper(const uint16_t* in, float* out) {
    load_f16<N>(in).store(out);
}
template <size_t N>
void store_bf16_wrapper(const float* in, uint16_t* out) {
    store_bf16(vecf<N>::load(in), out);
}
template <size_t N>
void load_bf16_wrapper(const uint16_t* in, float* out) {
    load_bf16<N>(in).store(out);
}
template <size_t N>
void store_s8_wrapper(const int32_t* in, int8_t* out) {
    store_s8(veci<N>::load(in), out);
}
template <size_t N>
void load_s8_wrapper(const int8_t* in, int32_t* out) {
    load_s8<N>(in).store(out);
}
template <size_t N>
void store_u8_wrapper(const int32_t* in, uint8_t* out) {
    store_u8(veci<N>::load(in), out);
}
template <size_t N>
void load_u8_wrapper(const uint8_t* in, int32_t* out) {
    load_u8<N>(in).store(out);
}

template <size_t N>
constexpr SimdWidth width() {
    return {N,
#define QUOLL_SIMD_OP(name, expression, reference, ulp) &name##_wrapper<N>,
#include "wrappers.inc"
#undef QUOLL_SIMD_OP
            &load_n_wrapper<N>,
            &store_n_wrapper<N>,
            &int_ops_wrapper<N>,
            &store_f16_wrapper<N>,
            &load_f16_wrapper<N>,
            &store_bf16_wrapper<N>,
            &load_bf16_wrapper<N>,
            &store_s8_wrapper<N>,
            &load_s8_wrapper<N>,
            &store_u8_wrapper<N>,
            &load_u8_wrapper<N>};
}

template <size_t N>
void transpose_wrapper(const float* in, float* out) {
    vecf<N> r[N];
    for (size_t i = 0; i < N; i++) r[i] = vecf<N>::load(in + i * N);
    transpose(r);
    for (size_t i = 0; i < N; i++) r[i].store(out + i * N);
}

}  // namespace

extern const SimdWrappers QUOLL_ISA_TABLE(simd_wrappers);
const SimdWrappers QUOLL_ISA_TABLE(simd_wrappers) = {
    {width<2>(), width<4>(), width<8>(), width<16>(), width<32>()},
    kHasFma,
    {&transpose_wrapper<1>, &transpose_wrapper<2>, &transpose_wrapper<4>, &transpose_wrapper<8>,
     &transpose_wrapper<16>}};

}  // namespace quoll
