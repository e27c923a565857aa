#include <algorithm>
#include <map>

#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

static const OpTable& table() {
    static const OpTable all = [] {
        OpTable t;
        for (OpTable family :
             {unary_ops(),    binary_ops(),  reduce_ops(),    shape_ops(),   sequence_ops(),
              slice_ops(),    pad_ops(),     gather_ops(),    fill_ops(),    conv_ops(),
              pool_ops(),     norm_ops(),    matrix_ops(),    image_ops(),   recurrent_ops(),
              quantize_ops(), control_ops(), attention_ops(), contrib_ops(), signal_ops(),
              newer_ops(),    deform_ops()})
            t.insert(t.end(), family.begin(), family.end());
        std::stable_sort(t.begin(), t.end(), [](const OpEntry& a, const OpEntry& b) {
            const int domain = std::string(a.domain).compare(b.domain);
            return domain ? domain < 0 : std::string(a.op) < b.op;
        });
        return t;
    }();
    return all;
}

const OpEntry* find_op(const std::string& domain, const std::string& op, int opset) {
    for (const OpEntry& entry : table())
        if (op == entry.op && domain == entry.domain &&
            (opset == 0 || (opset >= entry.since && (entry.until == 0 || opset <= entry.until))))
            return &entry;
    return nullptr;
}

int required_inputs(const std::string& op, int opset) {
    static const std::map<std::string, int> kMoreThanOne = {
        {"Add", 2},
        {"Sub", 2},
        {"Mul", 2},
        {"Div", 2},
        {"Pow", 2},
        {"Mod", 2},
        {"Equal", 2},
        {"Less", 2},
        {"Greater", 2},
        {"LessOrEqual", 2},
        {"GreaterOrEqual", 2},
        {"And", 2},
        {"Or", 2},
        {"Xor", 2},
        {"BitwiseAnd", 2},
        {"BitwiseOr", 2},
        {"BitwiseXor", 2},
        {"BitShift", 2},
        {"Where", 3},
        {"PRelu", 2},
        {"CastLike", 2},
        {"CumSum", 2},
        {"Expand", 2},
        {"Tile", 2},
        {"ReverseSequence", 2},
        {"Gather", 2},
        {"GatherElements", 2},
        {"GatherND", 2},
        {"Scatter", 3},
        {"ScatterElements", 3},
        {"ScatterND", 3},
        {"Compress", 2},
        {"Range", 3},
        {"OneHot", 3},
        {"Conv", 2},
        {"ConvTranspose", 2},
        {"MaxUnpool", 2},
        {"MaxRoiPool", 2},
        {"BatchNormalization", 5},
        {"InstanceNormalization", 3},
        {"GroupNormalization", 3},
        {"LayerNormalization", 2},
        {"SimplifiedLayerNormalization", 2},
        {"RMSNormalization", 2},
        {"SkipLayerNormalization", 3},
        {"SkipSimplifiedLayerNormalization", 3},
        {"MatMul", 2},
        {"Gemm", 2},
        {"FusedMatMul", 2},
        {"GridSample", 2},
        {"AffineGrid", 2},
        {"RoiAlign", 3},
        {"NonMaxSuppression", 2},
        {"Col2Im", 3},
        {"LSTM", 3},
        {"GRU", 3},
        {"RNN", 3},
        {"QuantizeLinear", 2},
        {"DequantizeLinear", 2},
        {"QLinearConv", 8},
        {"QLinearMatMul", 8},
        {"QLinearAdd", 7},
        {"QLinearMul", 7},
        {"MatMulInteger", 2},
        {"ConvInteger", 2},
        {"BiasGelu", 2},
        {"DeformConv", 3},
        {"SwiGLU", 2},
        {"CausalConvWithState", 2},
        {"LinearAttention", 3},
        {"STFT", 2},
        {"MelWeightMatrix", 5},
        {"CenterCropPad", 2},
        {"TensorScatter", 2},
        {"CumProd", 2},
        {"RotaryEmbedding", 3},
        {"EmbedLayerNormalization", 7},
        {"FusedConv", 2},
        {"FusedGemm", 2},
        {"GroupNorm", 3},
        {"MatMulNBits", 3},
        {"DynamicQuantizeMatMul", 3},
        {"MatMulIntegerToFloat", 4},
        {"QLinearSigmoid", 4},
        {"QLinearLeakyRelu", 4},
        {"QLinearGlobalAveragePool", 4},
        {"QLinearAveragePool", 4},
        {"QLinearSoftmax", 4},
        {"QLinearConcat", 5},
        {"QGemm", 6},
        {"SequenceInsert", 2},
        {"SequenceAt", 2},
    };
    if (op == "Constant" || op == "Loop" || op == "Scan" || op == "SequenceEmpty" ||
        op == "RandomUniform" || op == "RandomNormal")
        return 0;
    if (op == "Attention") return 2;  // com.microsoft; ONNX's third is checked by its converter
    if (op == "Reshape" && opset >= 5) return 2;
    if ((op == "TopK" || op == "Resize") && opset >= 10)
        return op == "Resize" && opset > 10 ? 1 : 2;
    if (op == "Upsample" && opset >= 9) return 2;
    if (op == "Slice" && opset >= 10) return 3;
    if (op == "Pad" && opset >= 11) return 2;
    const auto found = kMoreThanOne.find(op);
    return found == kMoreThanOne.end() ? 1 : found->second;
}

std::vector<const OpEntry*> all_ops() {
    std::vector<const OpEntry*> all;
    for (const OpEntry& entry : table()) all.push_back(&entry);
    return all;
}

}  // namespace onnx_tool
}  // namespace quoll
