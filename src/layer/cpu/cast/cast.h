// Conversions between f32 and the 16-bit types in which blobs may be stored, and operations on such
// values that are frequent enough to be worth doing without a pass through memory as floats.
#ifndef QUOLL_LAYER_CPU_CAST_CAST_H
#define QUOLL_LAYER_CPU_CAST_CAST_H

#include <stddef.h>
#include <stdint.h>

namespace quoll {

// out[i] = f(a[i], b[i]), computed in f32 and rounded once. Patterns are as in the binary family;
// out may be a or b.
struct StoredBinary {
    void (*vectors)(const uint16_t* a, const uint16_t* b, uint16_t* out, size_t n);
    void (*pattern)(const uint16_t* a, const float* b, uint16_t* out, size_t n);
};

// Whether there are any of StorageKernels' last four.
#if defined(__x86_64__) || defined(__i386__)
constexpr bool kHasStoredNorms = true;
#else
constexpr bool kHasStoredNorms = false;
#endif

// The kernels of one storage type. Narrowing rounds to nearest even, and NaN stays NaN. No pointer
// needs alignment.
struct StorageKernels {
    void (*widen)(const uint16_t* x, float* y, size_t count);
    void (*narrow)(const float* x, uint16_t* y, size_t count);
    StoredBinary add, mul;
    // y[j] = scale * sum of x[i * pack + j], i < n. pack is 1, 4, 8 or 16 and no more than a
    // register has floats.
    void (*sum)(const uint16_t* x, size_t n, size_t pack, float scale, uint16_t* y);
    // Those below are null where kernels of floats are left to do it, for the size of the library.
    // `pack` is as for sum. Means of each of `pack` channels of n > 0 elements, and sums of the
    // squares about them.
    void (*moments)(const uint16_t* x, size_t n, size_t pack, float* means, float* squares);
    // x[i] = clamp((x[i] - mean[c]) * factor[c] + term[c]) for c = i % pack, n elements; a null
    // term stands for zeros.
    void (*scale_centred)(uint16_t* x, size_t n, size_t pack, const float* mean,
                          const float* factor, const float* term, float low, float high);
    // y[i] = min(high, max(low, x[i])), i < n; y may be x.
    void (*clamp)(const uint16_t* x, uint16_t* y, size_t n, float low, float high);
    // out[i] = max(0, a[i] + b[i]), as StoredBinary's.
    void (*add_relu)(const uint16_t* a, const uint16_t* b, uint16_t* out, size_t n);
};

struct CastKernels {
    StorageKernels f16, bf16;
    // As the gemm family's row_times_panels, on panels narrowed to bf16: out[n] = clamp(init[n] +
    // sum over k of a[k] * panel row k) for the `count` columns up to the last panel, which may be
    // narrow.
    void (*row_times_bf16)(const float* a, size_t k, const uint16_t* b, size_t count,
                           const float* init, float* out, float low, float high);
    // The same, to the bit, on panels whose rows are interleaved in pairs (value by value), with
    // fewer instructions. k is even. Null where it does not save any.
    void (*row_times_bf16_pairs)(const float* a, size_t k, const uint16_t* b, size_t count,
                                 const float* init, float* out, float low, float high);
};

}  // namespace quoll

#endif
