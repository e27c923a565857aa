// The way of sums to C, on NEON.
#include "layer/cpu/gemm/split_gemm.h"

#if defined(QUOLL_BUILT_sme_assembly) || defined(QUOLL_BUILT_bf16_assembly)
#include "layer/arm/split_neon.h"

namespace quoll {

namespace {

// Where column n lies.
ptrdiff_t place(const SplitStore& t, ptrdiff_t step, int n) {
    return n / t.group * step + n % t.group;
}

// bias + sum + residual, bent and clamped: a vector of a row's columns, or one of them in all
// lanes.
struct Finish {
    explicit Finish(const SplitStore& t)
        : low(vdupq_n_f32(t.low)),
          high(vdupq_n_f32(t.high)),
          slope(vdupq_n_f32(t.slope)),
          bent(t.slope != 1.f && t.columns == kUnitColumns && t.group == 16) {}
    float32x4_t operator()(float32x4_t x) const {
        if (bent) x = vbslq_f32(vcltq_f32(x, vdupq_n_f32(0)), vmulq_f32(x, slope), x);
        return vminq_f32(vmaxq_f32(x, low), high);
    }
    float32x4_t low, high, slope;
    bool bent;
};

// How values become bf16: by NEON's own instructions, or by the one of FEAT_BF16, which rounds
// alike.
struct ByIntegers {
    static void store(float* to, float32x4_t x) { vst1q_f32(to, x); }
    static void store(uint16_t* to, float32x4_t x) { store4(to, x); }
};
struct ByInstruction {
    static void store(float* to, float32x4_t x) { vst1q_f32(to, x); }
    static void store(uint16_t* to, float32x4_t x) {
        uint16x4_t narrow;
        __asm__(".arch_extension bf16\n\tbfcvtn %0.4h, %1.4s" : "=w"(narrow) : "w"(x));
        vst1_u16(to, narrow);
    }
};

// Columns n to n + 4 vectors - 1, of which four lie together, of all rows.
template <class Narrow, class Value, bool to_sums, bool adds, int vectors>
void finish_vectors(const SplitStore& t, const Finish& finish, int n, float* sums, int rows) {
    const Value* residual[vectors];
    Value* c[vectors];
    float32x4_t bias[vectors];
    for (int v = 0; v < vectors; v++) {
        const int column = n + 4 * v;
        residual[v] = adds ? (const Value*)t.residual + place(t, t.r_group, column) : nullptr;
        c[v] = (Value*)t.c + place(t, t.c_group, column);
        bias[v] = t.bias ? vld1q_f32(t.bias + column) : vdupq_n_f32(0);
    }
    const int32_t* places = t.rows;
    const int width = t.width;
    const Finish own = finish;
    sums += n;
    for (const int32_t* const end = places + rows; places < end; places++, sums += width) {
        const ptrdiff_t p = *places;
        if (p < 0) continue;
        for (int v = 0; v < vectors; v++) {
            float32x4_t x = vaddq_f32(vld1q_f32(sums + 4 * v), bias[v]);
            if (adds) x = vaddq_f32(x, load4(residual[v] + p));
            if (to_sums)
                vst1q_f32(sums + 4 * v, own(x));
            else
                Narrow::store(c[v] + p, own(x));
        }
    }
}

template <class Narrow, class Value, bool to_sums, int vectors>
void finish_columns(const SplitStore& t, const Finish& finish, int n, float* sums, int rows) {
    t.residual ? finish_vectors<Narrow, Value, to_sums, true, vectors>(t, finish, n, sums, rows)
               : finish_vectors<Narrow, Value, to_sums, false, vectors>(t, finish, n, sums, rows);
}

template <class Narrow, class Value, bool to_sums>
void finish_rows(const SplitStore& t, float* sums, int rows) {
    const Finish finish(t);
    const Value* const residual = (const Value*)t.residual;
    const int together = t.group >= 4 ? t.columns / 4 * 4 : 0;
    int n = 0;
    for (; n + 16 <= together; n += 16)
        finish_columns<Narrow, Value, to_sums, 4>(t, finish, n, sums, rows);
    for (; n < together; n += 4)
        finish_columns<Narrow, Value, to_sums, 1>(t, finish, n, sums, rows);
    if (together == t.columns) return;
    for (int m = 0; m < rows; m++, sums += t.width) {
        const ptrdiff_t p = t.rows[m];
        for (int i = together; i < t.columns && p >= 0; i++) {
            float x = sums[i] + (t.bias ? t.bias[i] : 0.f);
            if (residual) x += load1(residual + p + place(t, t.r_group, i));
            x = vgetq_lane_f32(finish(vdupq_n_f32(x)), 0);
            if (to_sums)
                sums[i] = x;
            else
                store1((Value*)t.c + p + place(t, t.c_group, i), x);
        }
    }
}

template <class Narrow, bool to_sums>
void finish_values(const SplitStore& t, float* sums, int rows) {
    t.bf16 ? finish_rows<Narrow, uint16_t, to_sums>(t, sums, rows)
           : finish_rows<Narrow, float, to_sums>(t, sums, rows);
}

}  // namespace

const SplitStoreKernels split_store_neon = {&finish_values<ByIntegers, false>,
                                            &finish_values<ByIntegers, true>};
const SplitStoreKernels split_store_bf16 = {&finish_values<ByInstruction, false>,
                                            &finish_values<ByInstruction, true>};

}  // namespace quoll
#endif
