// Quantised graphs as int8 layers. ONNX writes them as float operators between DequantizeLinear and
// QuantizeLinear; here each float value remembers the int8 values that it stands for, and how it
// could be made as int8 at once. What is not used in the end is left out with all else that no
// output needs.
#ifndef QUOLL_TOOLS_ONNX_QUANTIZED_H
#define QUOLL_TOOLS_ONNX_QUANTIZED_H

#include "onnx/converter.h"

namespace quoll {
namespace onnx_tool {

// One scale and zero point for a whole tensor; zero counts as int8, u8 less 128.
struct AffineScale {
    float scale = 1.f;
    int zero = 0;
};
inline bool operator==(const AffineScale& a, const AffineScale& b) {
    return a.scale == b.scale && a.zero == b.zero;
}

// An f32 value that stands for the int8 value called `q` (of its shape).
struct Quantized {
    std::string q;
    AffineScale affine;
};

// An f32 constant that is scales * values, along `axis`; -1: one scale for all.
struct QuantizedWeight {
    Tensor values;  // int8
    std::vector<float> scales;
    int axis = -1;
};

// How an f32 value is made as int8: a layer that gets the scale of its output, or a Concat of
// quantised values.
struct Int8Source {
    ModelLayer layer;
    Form form;
    std::shared_ptr<Node> concat;
};

// The scale and zero point of QuantizeLinear and DequantizeLinear (inputs 1 and 2), if they are
// constants for a whole tensor of `type`, which is int8 or uint8.
bool read_affine(Op& op, ElementType type, AffineScale* affine);
// Both leave false, with nothing done, for what int8 layers do not hold.
bool quantize_as_int8(Op& op, ElementType type);
bool dequantize_int8(Op& op);
// After a node was converted: what its outputs have to do with int8.
void follow_quantized(Converter& c, const Node& node);
// Weights of int8 or uint8 with a scale and maybe a zero point for all or for each index of `axis`;
// null if they do not fit int8 without the zero point.
std::shared_ptr<const QuantizedWeight> read_weight(const Tensor& x, const Tensor& scale,
                                                   const Tensor* zero, int64_t axis);
// Weights [K][N] of int8 or uint8 with a scale for all or for each column, and maybe zero points
// alike, whatever these are?
bool is_integer_weight(const Tensor& x, const Tensor& scale, const Tensor* zero);
// b, int8 or uint8 [K][N], and its zero points (or null) as weights of a MatMulInteger.
void set_integer_weight(ModelLayer* layer, const Tensor& b, const Tensor* zero);
// Input 0, quantised by its range (DynamicQuantizeLinear), times constant weights [K][N], plus bias
// [N] (or null), as one layer. False, with nothing done, for what it does not hold.
bool int8_product_by_range(Op& op, const Value* w, const Value* scale, const Value* zero,
                           const Value* bias);
// After a node of constants was computed: where it makes weights.
void remember_weight(Converter& c, const Node& node);

}  // namespace onnx_tool
}  // namespace quoll

#endif
