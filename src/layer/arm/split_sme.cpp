// What the products of SME (gemm_sme.inc) need besides, on NEON: laying out A and B.
#include "layer/cpu/gemm/split_gemm.h"

#if defined(QUOLL_BUILT_sme_assembly)
#include <algorithm>

#include "layer/arm/split_neon.h"

extern "C" unsigned quoll_vector_bytes_sme();
extern "C" void quoll_gemm_f32_32x32_sme(const quoll::SplitTile* list, size_t count, size_t last,
                                         size_t width);
extern "C" void quoll_gemm_bf16_32x32_sme(const quoll::SplitTile* list, size_t count, size_t last,
                                          size_t width);

namespace quoll {

namespace {

// The unit's words in a row of ZA; those beyond 16 do not count.
int lanes() {
    static const int words = (int)quoll_vector_bytes_sme() / 4;
    return std::min<int>(words, kUnitRows);
}

// Words of k: an f32 value, or a pair of bf16 values.
struct Floats {
    enum { kValues = 1 };
    template <class Value>
    static uint32x4_t words(const float32x4_t* values) {
        return vreinterpretq_u32_f32(values[0]);
    }
};
struct Pairs {
    enum { kValues = 2 };
    template <class Value>
    static uint32x4_t words(const float32x4_t* values) {
        const bool whole = sizeof(Value) == sizeof(uint16_t);
        const uint32x4_t first =
            whole ? vreinterpretq_u32_f32(values[0]) : round_to_bf16(values[0]);
        const uint32x4_t second =
            whole ? vreinterpretq_u32_f32(values[1]) : round_to_bf16(values[1]);
        return vsriq_n_u32(second, first, 16);
    }
};

// ---------------------------------------------------------------- A

void store_words(uint32_t* to, uint32x4_t words, int count) {
    if (count >= 4) return vst1q_u32(to, words);
    uint32_t all[4];
    vst1q_u32(all, words);
    std::copy_n(all, count, to);
}

// Four channels of all pixels, whole blocks of them.
template <class Word, class Value>
void lay_out_blocks(const Value* from, ptrdiff_t pixel, int pixels, uint32_t* to, ptrdiff_t step) {
    for (int p = 0; p < pixels; p += 4, from += 4 * pixel, to += 4) {
        float32x4_t values[4] = {load4(from), load4(from + pixel), load4(from + 2 * pixel),
                                 load4(from + 3 * pixel)};
        transpose(values);
        for (int w = 0; w < 4 / Word::kValues; w++)
            vst1q_u32(to + w * step, Word::template words<Value>(values + w * Word::kValues));
    }
}

template <class Word, class Value, int pack>
void lay_out(const SplitInput& t) {
    const ptrdiff_t step = t.dst_word / 2;
    const int pixels = (int)t.pixels;
    for (int c = 0; c < kSplitK; c += 4) {
        uint32_t* const to = (uint32_t*)t.dst + c / Word::kValues * step;
        if (c >= t.channels) {
            for (int w = 0; w < 4 / Word::kValues; w++) std::fill_n(to + w * step, pixels, 0u);
            continue;
        }
        const Value* const from = (const Value*)t.src + c / pack * t.src_block + c % pack;
        const int whole = pack > 1 && t.channels - c >= 4 ? pixels / 4 * 4 : 0;
        if (whole) lay_out_blocks<Word>(from, t.src_pixel, whole, to, step);
        for (int p = whole; p < pixels; p += 4) {
            float32x4_t values[4];
            if (pack == 1)
                load_planes(from + p * t.src_pixel, t.src_pixel, t.src_block, t.channels - c,
                            pixels - p, values);
            else
                load_block(from + p * t.src_pixel, t.src_pixel, t.channels - c, pixels - p, values);
            for (int w = 0; w < 4 / Word::kValues; w++)
                store_words(to + w * step + p,
                            Word::template words<Value>(values + w * Word::kValues), pixels - p);
        }
    }
}

// Four values of a row `stride` apart, of which so many begin within its `width`.
template <class Value>
float32x4_t load_stride(const Value* row, ptrdiff_t at, int stride, int width, int count) {
    if (count >= 4 && at >= 0 && stride == 1 && at + 4 <= width) return load4(row + at);
    if (count >= 4 && at >= 0 && stride == 2 && at + 8 <= width)
        return vuzp1q_f32(load4(row + at), load4(row + at + 4));
    float some[4] = {};
    for (int i = 0; i < std::min(count, 4); i++, at += stride)
        if (at >= 0 && at < width) some[i] = load1(row + at);
    return vld1q_f32(some);
}

// Pixel i of the windows for each channel.
template <class Word, class Value>
void lay_out_windows(const SplitWindows& t) {
    const ptrdiff_t step = t.dst_word / 2;
    const int count = (int)t.count;
    for (int i = 0; i < kSplitK / kSplitPixel; i++) {
        uint32_t* to = (uint32_t*)t.dst + i * kSplitPixel / Word::kValues * step;
        if (i >= t.row.kernel) {
            for (int v = 0; v < kSplitPixel / Word::kValues; v++)
                std::fill_n(to + v * step, count, 0u);
            continue;
        }
        for (int w = 0; w < count; w += 4) {
            const ptrdiff_t at = (t.x + w) * t.row.stride - t.row.before + i;
            float32x4_t values[kSplitPixel];
            for (int c = 0; c < kSplitPixel; c++)
                values[c] = c < t.channels ? load_stride((const Value*)t.src + c * t.src_block, at,
                                                         t.row.stride, t.row.width, count - w)
                                           : vdupq_n_f32(0);
            for (int v = 0; v < kSplitPixel / Word::kValues; v++)
                store_words(to + v * step + w,
                            Word::template words<Value>(values + v * Word::kValues), count - w);
        }
    }
}

// ---------------------------------------------------------------- B

template <class Word>
void pack_panel(const SplitPanel& t) {
    const size_t vectors = t.columns > 16 ? 2 : 1, words = kSplitK / Word::kValues;
    for (size_t k = 0; k < split_steps(t.k) * kSplitK; k += 4)
        for (size_t n = 0; n < vectors * 16; n += 4) {
            const int rows = (int)std::min<size_t>(4, t.k - std::min(t.k, k));
            const int columns = (int)std::min<size_t>(4, t.columns - std::min(t.columns, n));
            float32x4_t values[4] = {vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0),
                                     vdupq_n_f32(0)};
            const float* const from = t.src + k * t.k_step + n * t.n_step;
            if (rows && columns && t.n_step == 1)
                load_planes(from, 1, (ptrdiff_t)t.k_step, rows, columns, values);
            else if (rows && columns)
                load_block(from, (ptrdiff_t)t.n_step, rows, columns, values);
            uint32_t* const to =
                (uint32_t*)t.dst +
                ((k / kSplitK * vectors + n / 16) * words + k % kSplitK / Word::kValues) * 16 +
                n % 16;
            for (int w = 0; w < 4 / Word::kValues; w++)
                vst1q_u32(to + w * 16, Word::template words<float>(values + w * Word::kValues));
        }
}

template <class Word>
constexpr SplitGemmKernels kernels_of(int products, SplitListKernel list) {
    SplitGemmKernels kernels = {};
    kernels.products = products;
    kernels.terms = 2 / Word::kValues;
    kernels.to_c = &split_store_neon;
    kernels.input[0] = &lay_out<Word, float, 1>;
    kernels.input[1] = &lay_out<Word, float, 4>;
    kernels.input[2] = &lay_out<Word, float, 8>;
    kernels.input[3] = &lay_out<Word, float, 16>;
    kernels.windows = &lay_out_windows<Word, float>;
    kernels.pack = &pack_panel<Word>;
    kernels.list = list;
    kernels.lanes = &lanes;
    kernels.floats = Word::kValues == 1;
    if (products > 1) return kernels;
    kernels.copy[0] = &lay_out<Word, uint16_t, 1>;
    kernels.copy[1] = &lay_out<Word, uint16_t, 4>;
    kernels.copy[2] = &lay_out<Word, uint16_t, 8>;
    kernels.copy[3] = &lay_out<Word, uint16_t, 16>;
    kernels.copy_windows = &lay_out_windows<Word, uint16_t>;
    return kernels;
}

}  // namespace

extern const SplitGemmKernels gemm_f32_32x32_sme, gemm_bf16_32x32_sme;
const SplitGemmKernels gemm_f32_32x32_sme = kernels_of<Floats>(6, &quoll_gemm_f32_32x32_sme);
const SplitGemmKernels gemm_bf16_32x32_sme = kernels_of<Pairs>(1, &quoll_gemm_bf16_32x32_sme);

}  // namespace quoll
#endif
