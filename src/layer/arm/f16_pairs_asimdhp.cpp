// The portable kernels compiled for half floats (simd/half_pairs.h).
#define QUOLL_FLOAT_PAIRS
// Half of what the families define is taken.
#pragma GCC diagnostic ignored "-Wunused-function"
#include "layer/arm/dwconv_f16_planar.h"
#include "layer/cpu/common/isa_table.h"
#include "layer/cpu/dwconv/generic.h"
#include "layer/cpu/gemm/tile_init.h"
#include "layer/cpu/half/f16_kernels.h"
#include "layer/cpu/pool/generic.h"
#include "layer/cpu/winograd/generic.h"
#include "layer/cpu/winograd/strided_transforms.h"
#include "layer/cpu/winograd/tile_transforms.h"

namespace quoll {

namespace {

void narrow_blocks(const float* lower, const float* upper, size_t count, uint16_t* to) {
    float16_t* out = reinterpret_cast<float16_t*>(to);
    const auto joined = [](float32x4_t a, float32x4_t b)
                            QUOLL_INLINE_LAMBDA { return vcvt_high_f16_f32(vcvt_f16_f32(a), b); };
    size_t i = 0;
    for (; i + 4 <= count; i += 4, lower += 16, upper += 16, out += 32) {
        const float32x4x4_t a = vld1q_f32_x4(lower), b = vld1q_f32_x4(upper);
        s::unroll<4>([&](auto j) QUOLL_INLINE_LAMBDA {
            vst1q_f16(out + 8 * j(), joined(a.val[j()], b.val[j()]));
        });
    }
    for (; i < count; i++, lower += 4, upper += 4, out += 8)
        vst1q_f16(out, joined(vld1q_f32(lower), vld1q_f32(upper)));
}

void average_windows(const PoolWindows& w) {
    const float* window = w.in;
    // Rows that follow each other are one.
    const bool whole = w.row_step == (size_t)w.columns * 4;
    const int rows = whole ? 1 : w.rows, columns = whole ? w.rows * w.columns : w.columns;
    for (int i = 0; i < w.count; i++, window += (ptrdiff_t)w.stride * 4) {
        float32x4_t low = vdupq_n_f32(0), high = low;
        const auto add = [&](const float* p) QUOLL_INLINE_LAMBDA {
            const float16x8_t v = vreinterpretq_f16_f32(vld1q_f32(p));
            low = vaddq_f32(low, vcvt_f32_f16(vget_low_f16(v)));
            high = vaddq_f32(high, vcvt_high_f32_f16(v));
        };
        const float* row = window;
        for (int y = 0; y < rows; y++, row += w.row_step) {
            int x = 0;
            for (; x + 4 <= columns; x += 4)
                s::unroll<4>([&](auto j) QUOLL_INLINE_LAMBDA { add(row + (x + j()) * 4); });
            for (; x < columns; x++) add(row + x * 4);
        }
        const float16x4_t first = vcvt_f16_f32(vmulq_n_f32(low, w.scale));
        const float16x8_t both = vcvt_high_f16_f32(first, vmulq_n_f32(high, w.scale));
        vst1q_f32(w.out + (ptrdiff_t)i * 4, vreinterpretq_f32_f16(both));
    }
}

void relu(const float* in, float* out, size_t n, const float* params) {
    using V = s::vecf<4>;
    const float16_t slope = (float16_t)params[0];
    const auto apply = [&](V x) QUOLL_INLINE_LAMBDA {
        const float16x8_t low = slope == 0 ? vdupq_n_f16(0) : vmulq_n_f16(x.v, slope);
        return V{vbslq_f16(vcltzq_f16(x.v), low, x.v)};
    };
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        s::unroll<4>([&](auto j) QUOLL_INLINE_LAMBDA {
            apply(V::load(in + i + 4 * j())).store(out + i + 4 * j());
        });
    for (; i + 4 <= n; i += 4) apply(V::load(in + i)).store(out + i);
    if (i < n) apply(V::load_n(in + i, n - i)).store_n(out + i, n - i);
}

template <class Op, int columns, int stride>
constexpr PoolWindowsKernel pool_kernel() {
    if constexpr (std::is_same<Op, Average>::value) {
        return &average_windows;
    } else {
        return &pool_windows<Op, 4, columns, stride>;
    }
}

}  // namespace

extern const F16Kernels QUOLL_ISA_TABLE(f16_kernels);
const F16Kernels QUOLL_ISA_TABLE(f16_kernels) = {
    &narrow_blocks,
    &gemm_init<4>,
#define QUOLL_DWCONV_ROW(name, kernel, stride) &dwconv_row<4, kernel, stride>,
#include "layer/cpu/dwconv/kernels.inc"
#undef QUOLL_DWCONV_ROW
    {&dwconv_planar<1>, &dwconv_planar<2>},
    &relu,
    &input,
    &output,
    &tile_input,
    &tile_output,
    &strided_input,
    &strided_output,
#define QUOLL_POOL(name, operation, columns, stride) pool_kernel<operation, columns, stride>(),
#include "layer/cpu/pool/kernels.inc"
#undef QUOLL_POOL
};

}  // namespace quoll
