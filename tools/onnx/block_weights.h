// Constant matrices of few bits with a scale for each block of values: those of MatMulNBits, and of
// DequantizeLinear with block_size. Products with them are Gemm layers that keep the bits
// (layer/common/block_quant.h).
#ifndef QUOLL_TOOLS_ONNX_BLOCK_WEIGHTS_H
#define QUOLL_TOOLS_ONNX_BLOCK_WEIGHTS_H

#include "onnx/converter.h"

namespace quoll {
namespace onnx_tool {

// values [rows][k], each `scale * (value - zero)`; scales and zeros [rows][blocks of k].
struct BlockWeight {
    int bits = 4, block = 32;  // 4 or 8
    int64_t rows = 0, k = 0;
    std::vector<signed char> values;
    std::vector<float> scales, zeros;  // zeros: empty if all are 0
    bool columns = false;              // the tensor that it stands for is [k][rows]

    // Whether Gemm has blocks of this size; larger blocks are divided into such.
    static bool takes(int bits, int64_t block);
    int64_t blocks() const { return (k + block - 1) / block; }
};

// The weight of a DequantizeLinear of constants with block_size; null for what Gemm cannot hold.
std::shared_ptr<const BlockWeight> read_block_weight(const Converter& c, const Node& node);
std::shared_ptr<const BlockWeight> transposed(const BlockWeight& weight);
// Makes the layer one that multiplies rows of k values by the weights; bias (of f32) may be null.
void set_block_product(ModelLayer* layer, const BlockWeight& weight, const Mat* bias);
// Converts a DequantizeLinear with block_size to f32 values; false, with nothing done, unless all
// its inputs are constants of integers.
bool dequantize_blocks(Op& op);
// Converts a MatMulNBits; false, with nothing done, for what Gemm cannot hold.
bool block_product(Op& op);

}  // namespace onnx_tool
}  // namespace quoll

#endif
