// The families of operator converters, and what several of them share.
#ifndef QUOLL_TOOLS_ONNX_OPS_H
#define QUOLL_TOOLS_ONNX_OPS_H

#include <string>
#include <vector>

#include "onnx/converter.h"

namespace quoll {
namespace onnx_tool {

typedef std::vector<OpEntry> OpTable;
OpTable unary_ops();
OpTable binary_ops();
OpTable reduce_ops();
OpTable shape_ops();
OpTable slice_ops();
OpTable pad_ops();
OpTable gather_ops();
OpTable fill_ops();
OpTable conv_ops();
OpTable pool_ops();
OpTable norm_ops();
OpTable matrix_ops();
OpTable image_ops();
OpTable recurrent_ops();
OpTable quantize_ops();
OpTable control_ops();
OpTable attention_ops();
OpTable channels_last_ops();
OpTable contrib_ops();
OpTable expert_ops();
OpTable experimental_ops();
OpTable signal_ops();
OpTable newer_ops();
OpTable loss_ops();
OpTable deform_ops();
OpTable sequence_ops();
OpTable ml_ops();
OpTable svm_ops();
OpTable label_ops();
OpTable text_ops();

// An attribute of an LSTM that converters make for one whose inputs and states are quantised.
constexpr const char* kRoundInputs = "quoll.round_inputs";

// Inputs spread to a common shape, as NumPy broadcasts.
struct Broadcast {
    std::vector<Dim> shape;
    Form form;
    std::vector<std::string> blobs;
};
// Fills in shape, form and one blob an input; `keep_scalar`: constants of one value are left out
// (their blob is ""). False after op.fail().
bool broadcast(Op& op, const std::vector<Value*>& inputs, Broadcast* b, bool keep_scalar = false);
// Only the shape of it.
bool broadcast_shape(Op& op, const std::vector<Value*>& inputs, std::vector<Dim>* shape);

// The second operand of an operator of old opsets, with the axes of newer ones; null after fail().
Value* legacy_operand(Op& op, Value* x, Value* y);

// True for a constant whose values are all the same number, which is then in *value.
bool uniform(const Value* v, float* value);
// One layer for each value by itself: the output lies as the input does.
bool elementwise(Op& op, Value* x, const char* layer, ElementType type);
bool elementwise(Op& op, Value* x, const char* layer);
// A blob of f32 arithmetic: y = op(x, b), op_type as in BinaryOp.
std::string scalar_op(Op& op, const std::string& blob, int op_type, float b);

// The blob's values as a type of few bits would hold them, floats as the attributes saturate and
// round_mode of Cast and QuantizeLinear say. "" after fail().
std::string narrow(Op& op, const std::string& blob, ElementType to);
// The same for results of arithmetic: blobs have more bits than integers of 16 and fewer but 8.
std::string wrapped(Op& op, const std::string& blob, ElementType type);

// Converts a subgraph's nodes under names of their own; its inputs are values of the outer graph,
// of which there may be fewer. False after op.fail().
bool run_body(Op& op, const Graph& body, const std::vector<std::string>& inputs,
              std::vector<std::string>* outputs);
// The subgraph that is an attribute; null if there is none.
const Graph* subgraph(Op& op, const char* name);

// The op_type of BinaryOp, TensorBinary.
enum BinaryType { kAdd, kSub, kMul, kDiv, kMax, kMin, kPow, kRsub, kRdiv, kRpow };

inline std::vector<int> to_ints(const std::vector<int64_t>& values) {
    std::vector<int> ints;
    for (int64_t v : values)
        ints.push_back((int)(v > 2147483647        ? 2147483647
                             : v < -2147483647 - 1 ? -2147483647 - 1
                                                   : v));
    return ints;
}

}  // namespace onnx_tool
}  // namespace quoll

#endif
