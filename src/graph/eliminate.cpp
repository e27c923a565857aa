#include "graph/passes.h"
#include "layer/binaryop.h"
#include "layer/dropout.h"
#include "layer/elementwise.h"
#include "layer/memorydata.h"
#include "layer/padding.h"
#include "layer/pool_reference.h"

namespace quoll {

namespace {

bool is_identity(const LayerGraph& graph, int index) {
    const Layer& layer = *graph.layer(index);
    if (layer.bottoms.size() != 1 || layer.tops.empty()) return false;
    if (graph.is(index, "Noop")) return layer.tops.size() == 1;
    if (graph.is(index, "Split")) return true;
    if (const auto* s = graph.as<Dropout>(index, "Dropout")) return s->scale == 1.f;
    if (const auto* s = graph.as<PoolingOperator>(index, "Pooling"))
        return s->kernel_w == 1 && s->kernel_h == 1 && s->stride_w == 1 && s->stride_h == 1 &&
               !s->global_pooling && !s->adaptive_pooling && s->pad_left == 0 &&
               s->pad_right == 0 && s->pad_top == 0 && s->pad_bottom == 0;
    if (const auto* s = graph.as<BinaryOp>(index, "BinaryOp"))
        return s->with_scalar && (s->op_type == BinaryOp::MUL || s->op_type == BinaryOp::DIV) &&
               s->b == 1.f;
    if (graph.is(index, "Flatten")) {
        // Global pooling gives one value a channel, in 1 axis.
        const auto* pool = graph.as<PoolingOperator>(graph.producer(layer.bottoms[0]), "Pooling");
        return pool && pool->global_pooling;
    }
    return false;
}

// The fields of a convolution whose padding is given in numbers.
ConvolutionFields* padded_convolution(const LayerGraph& graph, int index) {
    ConvolutionFields* s = convolution_fields(graph, index);
    if (!s || s->axes != 2 || s->int8_scale_term != 0) return nullptr;
    const bool numbers =
        s->pad_left >= 0 && s->pad_right >= 0 && s->pad_top >= 0 && s->pad_bottom >= 0;
    return numbers ? s : nullptr;
}

}  // namespace

int eliminate_identity(LayerGraph& graph, int index, const LayerMaker&) {
    if (!is_identity(graph, index)) return 0;
    const std::string what = graph.layer(index)->type + " left out";
    return graph.bypass(index, what.c_str()) ? 1 : 0;
}

int fold_padding(LayerGraph& graph, int index, const LayerMaker&) {
    const auto* pad = graph.as<Padding>(index, "Padding");
    if (!pad || pad->type != Padding::kConstant || pad->per_channel_pad_data_size != 0) return 0;
    const int widths[] = {pad->top, pad->bottom, pad->left, pad->right};
    for (int width : widths)
        if (width < 0) return 0;
    const int next = graph.only_reader(index);
    if (pad->front != 0 || pad->behind != 0 || pad->bottoms.size() != 1 || next < 0) return 0;
    ConvolutionFields* conv = padded_convolution(graph, next);
    // A 1x1 convolution may get a 1-D input, which Padding widens along another axis.
    if (!conv || (conv->kernel_w == 1 && conv->kernel_h == 1)) return 0;
    const bool none = !conv->pad_left && !conv->pad_right && !conv->pad_top && !conv->pad_bottom;
    if (!none && conv->pad_value != pad->value) return 0;
    conv->pad_value = pad->value;
    conv->pad_top += pad->top, conv->pad_bottom += pad->bottom;
    conv->pad_left += pad->left, conv->pad_right += pad->right;
    const std::string what = "Padding into " + graph.layer(next)->type;
    return graph.bypass(index, what.c_str()) ? 1 : 0;
}

int fold_scalar_operand(LayerGraph& graph, int index, const LayerMaker&) {
    auto* op = graph.as<BinaryOp>(index, "BinaryOp");
    if (!op || op->with_scalar || op->bottoms.size() != 2) return 0;
    const auto* constant = graph.as<MemoryData>(graph.producer(op->bottoms[1]), "MemoryData");
    // More axes than the other operand has would show in the result.
    if (!constant || constant->data.dims != 1 || constant->data.w != 1 ||
        constant->data.dtype != DType::f32 || constant->data.elempack != 1 ||
        graph.is(graph.producer(op->bottoms[0]), "MemoryData"))
        return 0;
    op->with_scalar = 1;
    op->b = constant->data[0];
    set_elementwise(*op);
    graph.drop_input(index, 1);
    graph.count("MemoryData of one value into BinaryOp");
    return 1;
}

int run_passes(LayerGraph& graph, const LayerMaker& make) {
    const Pass passes[] = {eliminate_identity, merge_gate,  fold_scalar_operand,
                           fold_padding,       fold_affine, fuse_activation};
    for (bool changed = true; changed;) {
        changed = false;
        for (Pass pass : passes) {
            for (size_t i = 0; i < graph.size(); i++) {
                int status = 1;
                while (graph.layer((int)i) && status > 0) {
                    status = pass(graph, (int)i, make);
                    if (status < 0) return status;
                    changed |= status > 0;
                }
            }
        }
    }
    // Constants whose readers took them over.
    for (size_t i = 0; i < graph.size(); i++) {
        if (!graph.is((int)i, "MemoryData") || graph.layer((int)i)->tops.size() != 1) continue;
        const int blob = graph.layer((int)i)->tops[0];
        if (graph.readers(blob).empty() && !graph.kept(blob)) {
            graph.remove((int)i);
            graph.count("MemoryData that nothing reads left out");
        }
    }
    return kOk;
}

}  // namespace quoll
