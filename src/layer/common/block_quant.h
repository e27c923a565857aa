// Weights quantised in blocks, as Gemm and MultiHeadAttention may hold their matrices: each row is
// a sequence of signed integers of 3 (not in ncnn), 4, 6 or 8 bits (little endian, without gaps).
// Each block of 16 (not in ncnn), 32, 64 or 128 of them has a scale by which its values are
// divided, and may have a zero point that is subtracted first.
#ifndef QUOLL_LAYER_BLOCK_QUANT_H
#define QUOLL_LAYER_BLOCK_QUANT_H

#include "layer/common/schema.h"

namespace quoll {

// The format's quantize_term: 0 none, bits * 100 + input scales * 10 + (0: 32, 1: 64, 2: 128, 3: 16
// values per block), any other value int8 matrices with scales that Gemm and MultiHeadAttention
// describe.
struct BlockQuant {
    int bits;           // 0: the weights are not of this kind
    int block;          // values that share a scale
    bool input_scales;  // a factor for each value of the input comes with the matrix

    explicit BlockQuant(int quantize_term)
        : bits(quantize_term / 100),
          block(quantize_term % 10 == 3 ? 16 : 32 << quantize_term % 10),
          input_scales(quantize_term % 100 / 10 == 1) {
        const bool known = (bits == 3 || bits == 4 || bits == 6 || bits == 8) &&
                           quantize_term % 100 / 10 <= 1 && quantize_term % 10 <= 3;
        if (!known) bits = 0;
    }
    explicit operator bool() const { return bits != 0; }
    // The bits of a value in the form in which layers keep it in memory.
    int kept_bits() const { return bits <= 4 ? 4 : 8; }
    int64_t row_bytes(int64_t count) const { return (count * bits + 7) / 8; }
    int64_t blocks(int64_t count) const { return (count + block - 1) / block; }
};

// Refuses terms that are not in the format; without this check they would count as int8.
inline int check_quantize_term(const Layer& layer, int term) {
    if (BlockQuant(term) || (term < 300 && (term < 4 || term > 6))) return kOk;
    return layer.fail("quantize_term (18): expected 0 to 3 or 300 to 813, got %d", term);
}

// Unpacks `count` values of row `row` of an s8 matrix [rows][row_bytes(count)] with scales
// [rows][blocks(count)], as many zero points (or none) and, with input_scales, `inputs` [count].
inline void unpack_row(const BlockQuant& quant, const Mat& packed, const Mat& scales,
                       const Mat& zeros, const Mat& inputs, int row, int count, float* out) {
    const int64_t bytes = quant.row_bytes(count);
    const unsigned char* p = (const unsigned char*)packed.data + row * bytes;
    const float* scale = (const float*)scales.data + row * quant.blocks(count);
    const float* zero =
        zeros.empty() ? nullptr : (const float*)zeros.data + row * quant.blocks(count);
    const int sign = 1 << (quant.bits - 1);
    for (int i = 0; i < count; i++) {
        const int64_t bit = (int64_t)i * quant.bits, at = bit / 8;
        unsigned word = p[at];
        if (at + 1 < bytes) word |= (unsigned)p[at + 1] << 8;
        const int value = (int)(word >> bit % 8 & (2u * sign - 1));
        const float q = (float)((value ^ sign) - sign) - (zero ? zero[i / quant.block] : 0.f);
        out[i] = q * (1.f / scale[i / quant.block]);
        if (quant.input_scales) out[i] *= inputs[i];
    }
}

}  // namespace quoll

#endif
