// What the bf16 products of NEON (gemm_bf16.inc) need besides: their lists, laying out A and B.
#include "layer/cpu/gemm/split_gemm.h"

#if defined(QUOLL_BUILT_bf16_assembly)
#include "layer/arm/split_neon.h"

namespace quoll {

// So many rows from `a` on by eight columns of the panel from `b` on, whose sums lie `width` apart.
typedef void (*Bf16RowsKernel)(const SplitTile& tile, const char* a, const char* b, float* sums,
                               size_t width, size_t rows);
}  // namespace quoll

extern "C" void quoll_gemm_bf16_2x8_bf16(const quoll::SplitTile& tile, const char* a, const char* b,
                                         float* sums, size_t width, size_t rows);
extern "C" void quoll_gemm_bf16_4x8_bf16(const quoll::SplitTile& tile, const char* a, const char* b,
                                         float* sums, size_t width, size_t rows);
extern "C" void quoll_gemm_bf16_6x8_bf16(const quoll::SplitTile& tile, const char* a, const char* b,
                                         float* sums, size_t width, size_t rows);
extern "C" void quoll_gemm_bf16_8x8_bf16(const quoll::SplitTile& tile, const char* a, const char* b,
                                         float* sums, size_t width, size_t rows);

namespace quoll {

namespace {

enum {
    kQuad = 4,
    kWordBytes = kQuad * sizeof(uint16_t),
    kWords = kSplitK / kQuad,
    kMostRows = 8,
    kColumns = 8
};

// An instruction multiplies two rows.
int lanes() { return 2; }

void multiply_list(const SplitTile* list, size_t count, size_t last, size_t width) {
    static const Bf16RowsKernel kernels[] = {&quoll_gemm_bf16_2x8_bf16, &quoll_gemm_bf16_4x8_bf16,
                                             &quoll_gemm_bf16_6x8_bf16, &quoll_gemm_bf16_8x8_bf16};
    for (size_t i = 0; i < count; i++) {
        const SplitTile& t = list[i];
        const size_t tiles = i + 1 < count ? (size_t)kUnitTiles : last, all = t.tile_rows;
        for (size_t n = 0; n < width; n += kColumns) {
            const char* const b = t.b + n / 16 * kWords * 16 * kWordBytes + n % 16 * kWordBytes;
            for (size_t j = 0; j < tiles; j++)
                for (size_t m = 0; m < all; m += kMostRows) {
                    const size_t rows = std::min<size_t>(all - m, kMostRows);
                    kernels[(rows - 1) / 2](t, t.a + (ptrdiff_t)j * t.a_tile + m * kWordBytes, b,
                                            t.sums + (j * all + m) * width + n, width, rows);
                }
        }
    }
}

uint16x4_t narrow(float32x4_t x) { return vshrn_n_u32(round_to_bf16(x), 16); }
uint16x4_t quad(const float* from) { return narrow(vld1q_f32(from)); }
uint16x4_t quad(const uint16_t* from) { return vld1_u16(from); }

// ---------------------------------------------------------------- A

// Words of pixels, of which so many channels are there.
template <class Value>
void lay_out_some(const Value* from, ptrdiff_t pixel, ptrdiff_t channel, int channels,
                  size_t pixels, uint16_t* to) {
    for (size_t p = 0; p < pixels; p++, from += pixel, to += kQuad) {
        float some[kQuad] = {};
        for (int c = 0; c < std::min<int>(channels, kQuad); c++)
            some[c] = load1(from + c * channel);
        vst1_u16(to, quad(some));
    }
}

template <class Value>
void lay_out_planes(const Value* from, ptrdiff_t pixel, ptrdiff_t channel, int channels,
                    size_t pixels, uint16_t* to) {
    size_t p = 0;
    for (; pixel == 1 && p + 4 <= pixels; p += 4) {
        uint16x4x4_t planes;
        for (int c = 0; c < kQuad; c++)
            planes.val[c] = c < channels ? quad(from + c * channel + p) : vdup_n_u16(0);
        vst4_u16(to + p * kQuad, planes);
    }
    lay_out_some(from + (ptrdiff_t)p * pixel, pixel, channel, channels, pixels - p, to + p * kQuad);
}

template <class Value, int pack>
void lay_out(const SplitInput& t) {
    for (int c = 0; c < kSplitK; c += kQuad) {
        uint16_t* const to = t.dst + c / kQuad * t.dst_word;
        const int channels = t.channels - c;
        if (channels <= 0) {
            memset(to, 0, t.pixels * kWordBytes);
            continue;
        }
        const Value* const from = (const Value*)t.src + c / pack * t.src_block + c % pack;
        if (pack == 1)
            lay_out_planes(from, t.src_pixel, t.src_block, channels, t.pixels, to);
        else if (channels < kQuad)
            lay_out_some(from, t.src_pixel, 1, channels, t.pixels, to);
        else if (sizeof(Value) == sizeof(uint16_t) && t.src_pixel == kQuad)
            memcpy(to, from, t.pixels * kWordBytes);
        else
            for (size_t p = 0; p < t.pixels; p++)
                vst1_u16(to + p * kQuad, quad(from + (ptrdiff_t)p * t.src_pixel));
    }
}

// By way of the pixels that the windows cover.
template <class Value>
void lay_out_windows(const SplitWindows& t) {
    enum { kRoom = 512 };
    uint16_t line[kRoom * kQuad];
    for (int i = t.row.kernel; i < kWords; i++)
        memset(t.dst + i * t.dst_word, 0, t.count * kWordBytes);
    for_windows(t.row, t.x, t.count, kRoom, [&](size_t done, const WindowRun& run) {
        memset(line, 0, run.left * kWordBytes);
        memset(line + run.right * kQuad, 0, (run.pixels - run.right) * kWordBytes);
        if (run.left < run.right)
            lay_out_planes((const Value*)t.src + run.first + run.left, 1, t.src_block, t.channels,
                           run.right - run.left, line + run.left * kQuad);
        for (int i = 0; i < t.row.kernel; i++) {
            uint16_t* const to = t.dst + i * t.dst_word + done * kQuad;
            for (size_t w = 0; w < run.windows; w++)
                memcpy(to + w * kQuad, line + (w * t.row.stride + i) * kQuad, kWordBytes);
        }
    });
}

// ---------------------------------------------------------------- B

void pack_panel(const SplitPanel& t) {
    const size_t vectors = t.columns > 16 ? 2 : 1;
    for (size_t k = 0; k < split_steps(t.k) * kSplitK; k += kQuad)
        for (size_t n = 0; n < vectors * 16; n += 4) {
            const int rows = (int)std::min<size_t>(kQuad, t.k - std::min(t.k, k));
            const int columns = (int)std::min<size_t>(4, t.columns - std::min(t.columns, n));
            float32x4_t values[kQuad] = {vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0),
                                         vdupq_n_f32(0)};
            const float* const from = t.src + k * t.k_step + n * t.n_step;
            if (rows && columns && t.n_step == 1)
                load_planes(from, 1, (ptrdiff_t)t.k_step, rows, columns, values);
            else if (rows && columns)
                load_block(from, (ptrdiff_t)t.n_step, rows, columns, values);
            const uint16x4x4_t words = {
                {narrow(values[0]), narrow(values[1]), narrow(values[2]), narrow(values[3])}};
            vst4_u16(
                t.dst +
                    ((k / kSplitK * vectors + n / 16) * kWords + k % kSplitK / kQuad) * 16 * kQuad +
                    n % 16 * kQuad,
                words);
        }
}

constexpr SplitGemmKernels kernels_of() {
    SplitGemmKernels kernels = {};
    kernels.products = kernels.terms = 1;
    kernels.to_c = &split_store_bf16;
    kernels.input[0] = &lay_out<float, 1>;
    kernels.input[1] = &lay_out<float, 4>;
    kernels.input[2] = &lay_out<float, 8>;
    kernels.input[3] = &lay_out<float, 16>;
    kernels.copy[0] = &lay_out<uint16_t, 1>;
    kernels.copy[1] = &lay_out<uint16_t, 4>;
    kernels.copy[2] = &lay_out<uint16_t, 8>;
    kernels.copy[3] = &lay_out<uint16_t, 16>;
    kernels.windows = &lay_out_windows<float>;
    kernels.copy_windows = &lay_out_windows<uint16_t>;
    kernels.pack = &pack_panel;
    kernels.list = &multiply_list;
    kernels.lanes = &lanes;
    kernels.vector_macs = 32;
    kernels.quads = true;
    return kernels;
}

}  // namespace

extern const SplitGemmKernels gemm_bf16_32x32_bf16;
const SplitGemmKernels gemm_bf16_32x32_bf16 = kernels_of();

}  // namespace quoll
#endif
