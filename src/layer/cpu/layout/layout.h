// Layout kernels: bytes moved by shuffles.
#ifndef QUOLL_LAYER_CPU_LAYOUT_LAYOUT_H
#define QUOLL_LAYER_CPU_LAYOUT_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

namespace quoll {

enum { kPickBytes = 16, kNoByte = 0x80 };

// Pick i, of kPickBytes bytes, is at out + i * out_step; its byte j is byte from_a[j] of the 16
// at a + i * step, or byte from_b[j] of those at b + i * step. One of the two is kNoByte.
struct PickBytes {
    const uint8_t *a, *b;
    size_t step;
    uint8_t* out;
    size_t out_step;
    uint8_t from_a[kPickBytes], from_b[kPickBytes];
    size_t n;
};

// dst[i * dst_step + k] = src[k * src_step + i] for i < rows, k < columns: values of 32 or 16 bits,
// steps in values.
template <class T>
struct TransposeOf {
    const T* src;
    size_t src_step;
    T* dst;
    size_t dst_step;
    size_t rows, columns;
};
typedef TransposeOf<float> TransposeValues;
typedef TransposeOf<uint16_t> TransposeHalves;

struct LayoutKernels {
    void (*pick_bytes)(const PickBytes& p);
    void (*transpose)(const TransposeValues& t);
    void (*transpose_halves)(const TransposeHalves& t);  // null without blobs of halves
};

}  // namespace quoll

#endif
