#include <iterator>

#include "graph/passes.h"
#include "layer/common/built_layers.h"
#include "layer/common/elementwise.h"
#include "layer/control/memorydata.h"
#include "layer/control/noop.h"
#include "layer/control/split.h"
#include "layer/elementwise/binaryop.h"
#include "layer/elementwise/dropout.h"
#include "layer/nn/innerproduct.h"
#include "layer/nn/matmulinteger.h"
#include "layer/nn/pooling.h"
#include "layer/norm/batchnorm.h"
#include "layer/norm/instancenorm.h"
#include "layer/quantize/affine.h"
#include "layer/tensor/concat.h"
#include "layer/tensor/flatten.h"
#include "layer/tensor/padding.h"
#include "layer/tensor/permute.h"
#include "layer/tensor/reshape.h"
#include "layer/tensor/tensorshape.h"
#include "layer/vision/gridsample.h"

namespace quoll {

namespace {

// Whether the layer puts all values into one axis, in their order.
bool flattens(const LayerGraph& graph, int index) {
    if (graph.is<Flatten>(index)) return true;
    const auto* s = as_built<Reshape>(graph, index);
    const int none = -233;
    return s && s->bottoms.size() == 1 && s->w == -1 && s->h == none && s->d == none &&
           s->c == none && !s->permute && s->shape_expr.empty() &&
           s->input_batch_axis == Reshape::kNoBatchAxis &&
           s->output_batch_axis == Reshape::kNoBatchAxis;
}

// Whether the blob has one axis whatever the sizes: global pooling gives one value per channel, an
// inner product of what is not a matrix gives its outputs.
bool is_flat(const LayerGraph& graph, int blob) {
    const int producer = graph.producer(blob);
    if (producer < 0) return false;
    const auto* pool = graph.as<Pooling>(producer);
    if (pool) return pool->global_pooling != 0;
    FusionTarget w;
    if (graph.is<InnerProduct>(producer)) return fusion_target(graph, producer, &w) && w.per_output;
    return flattens(graph, producer);
}

// Whether the blob has three axes of floats whatever the sizes.
bool is_image(const LayerGraph& graph, int blob) {
    const int producer = graph.producer(blob);
    if (producer < 0) return false;
    if (const auto* pool = graph.as<Pooling>(producer))
        return pool->axes == 2 && !pool->global_pooling;
    const ConvolutionFields* s = convolution_fields(graph, producer);
    return s && s->axes == 2 && !s->add_input;  // a sum may have more axes
}

bool is_identity(const LayerGraph& graph, int index) {
    const Layer& layer = *graph.layer(index);
    if (layer.bottoms.size() != 1 || layer.tops.empty()) return false;
    if (graph.is<Noop>(index)) return layer.tops.size() == 1;
    if (graph.is<Split>(index)) return true;
    if (const auto* s = as_built<Dropout>(graph, index)) return s->scale == 1.f;
    if (const auto* s = graph.as<Pooling>(index))
        return s->axes == 2 && s->kernel_w == 1 && s->kernel_h == 1 && s->stride_w == 1 &&
               s->stride_h == 1 && !s->global_pooling && !s->adaptive_pooling && s->pad_left == 0 &&
               s->pad_right == 0 && s->pad_top == 0 && s->pad_bottom == 0 &&
               is_image(graph, layer.bottoms[0]);
    if (const auto* s = as_built<BinaryOp>(graph, index)) return s->is_neutral();
    // With one input; whether it has another axis shows only when it runs.
    if (const auto* s = as_built<Concat>(graph, index)) return s->axis == 0 || s->axis == -1;
    if (const auto* s = as_built<Permute>(graph, index)) return s->order_type == 0;
    if (const auto* s = as_built<Padding>(graph, index))
        return s->top == 0 && s->bottom == 0 && s->left == 0 && s->right == 0 && s->front == 0 &&
               s->behind == 0 && s->per_channel_pad_data_size == 0;
    return flattens(graph, index) && is_flat(graph, layer.bottoms[0]);
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

int eliminate_batch_axes(LayerGraph& graph, int index, const LayerMaker& make) {
    const auto* there = graph.as<BatchAxis>(index);
    const int next = graph.only_reader(index);
    const auto* back = graph.as<BatchAxis>(next);
    if (!there || !back || !there->inverse == !back->inverse) return 0;
    std::unique_ptr<Layer> nothing(make("Noop"));
    if (!nothing) return 0;  // left out of this build
    graph.replace(next, std::move(nothing), there->bottoms, "BatchAxis and its inverse left out");
    graph.remove(index);
    return 1;
}

int eliminate_flatten(LayerGraph& graph, int index, const LayerMaker&) {
    if (!flattens(graph, index)) return 0;
    // An inner product takes an input that is not a matrix in any shape.
    const int next = graph.only_reader(index);
    if (!graph.is<InnerProduct>(next)) return 0;
    const int before = graph.producer(graph.layer(index)->bottoms[0]);
    if (!gives_channels(graph, before)) return 0;
    const std::string what = graph.layer(index)->type + " before InnerProduct left out";
    return graph.bypass(index, what.c_str(), LayerGraph::Output::gone) ? 1 : 0;
}

int fold_padding(LayerGraph& graph, int index, const LayerMaker&) {
    const auto* pad = graph.as<Padding>(index);
    if (!pad || pad->type != Padding::kConstant || pad->per_channel_pad_data_size != 0) return 0;
    const int widths[] = {pad->top, pad->bottom, pad->left, pad->right};
    for (int width : widths)
        if (width < 0) return 0;
    const int next = graph.only_reader(index);
    if (pad->front != 0 || pad->behind != 0 || pad->bottoms.size() != 1 || next < 0) return 0;
    // Inputs that are weights, or that are added, are not padded.
    if (graph.layer(next)->bottoms[0] != pad->tops[0]) return 0;
    ConvolutionFields* conv = padded_convolution(graph, next);
    // A 1x1 convolution may get a 1-D input, which Padding widens along another axis.
    if (!conv || (conv->kernel_w == 1 && conv->kernel_h == 1)) return 0;
    const bool none = !conv->pad_left && !conv->pad_right && !conv->pad_top && !conv->pad_bottom;
    if (!none && conv->pad_value != pad->value) return 0;
    conv->pad_value = pad->value;
    conv->pad_top += pad->top, conv->pad_bottom += pad->bottom;
    conv->pad_left += pad->left, conv->pad_right += pad->right;
    const std::string what = "Padding into " + graph.layer(next)->type;
    return graph.bypass(index, what.c_str(), LayerGraph::Output::gone) ? 1 : 0;
}

int fold_scalar_operand(LayerGraph& graph, int index, const LayerMaker&) {
    auto* op = graph.as<BinaryOp>(index);
    if (!op || op->with_scalar || op->bottoms.size() != 2) return 0;
    const auto* constant = graph.as<MemoryData>(graph.producer(op->bottoms[1]));
    // If the constant had more axes than the other operand, the result would have them.
    if (!constant || !constant->bottoms.empty() || constant->type != 0 ||  // bits of integers
        constant->data.dims != 1 || constant->data.w != 1 || constant->data.dtype != DType::f32 ||
        constant->data.elempack != 1 || graph.is<MemoryData>(graph.producer(op->bottoms[0])) ||
        !graph.stop_following(op->bottoms[1]))
        return 0;
    op->with_scalar = 1;
    op->b = constant->data[0];
    set_elementwise(*op);
    graph.drop_input(index, 1);
    graph.count("MemoryData of one value into BinaryOp");
    return 1;
}

// Runs each of the passes at each layer, until nothing changes.
static int run_until_settled(LayerGraph& graph, const std::vector<Pass>& passes,
                             const LayerMaker& make) {
    for (bool changed = true; changed;) {
        changed = false;
        for (Pass pass : passes) {
            if (!pass) continue;
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
    return kOk;
}

// The pass, or null if the library has none of the operators that it looks for; the pass is then
// not linked.
template <class... Operators>
static constexpr Pass of(Pass pass) {
    return (kIsBuilt<Operators> || ...) ? pass : nullptr;
}

// Passes that run while layers are as they were loaded, since they make them again from their
// parameters.
static constexpr Pass kOfConstants[] = {
    eliminate_identity,
    of<MemoryData>(fold_constant),
    of<MemoryData>(fold_dynamic_weight),
};
static constexpr Pass kPasses[] = {
    eliminate_identity,
    of<PReLU, Sigmoid, HardSigmoid>(merge_gate),
    of<MemoryData>(fold_scalar_operand),
    of<Reduction>(reduction_to_pooling),
    of<Flatten, Reshape>(eliminate_flatten),
    convolution_to_product,
    of<Padding>(fold_padding),
    fold_affine,
    fuse_activation,
    of<BatchAxis>(eliminate_batch_axes),
    merge_parallel,
};
// Besides these.
static constexpr Pass kNotOfFiles[] = {
    of<BatchAxis>(fold_row_norm),
    fuse_residual,
    of<Reshape, Permute, Flatten, Squeeze, ExpandDims, BatchAxis>(fuse_moved_activation),
    of<Concat>(fold_joined_affine),
    of<Concat>(fuse_joined_activation),
};
// Passes that run last: a layer that rounds its output takes no activation and no sum any more.
static constexpr Pass kLast[] = {
    kHasInt8 ? keep_int8 : nullptr,
    kHasInt8 ? of<AffineBinary>(fuse_int8_relu) : nullptr,
    kHasInt8 ? of<AffineQuantize>(tabulate) : nullptr,
    kHasInt8 ? of<MatMulInteger>(quantised_product) : nullptr,
    kHasInt8 ? of<AffineQuantize>(keep_int8_rows) : nullptr,
    of<Permute>(turn_fewer),
    of<Permute>(mark_channels),
    of<Concat>(chain_concats),
};

// Whether passes of small gain are worth their room in the library.
static constexpr bool kFusesMore = BinaryOp::kLongestChain > 1;

int run_passes(LayerGraph& graph, bool for_file, const LayerMaker& make) {
    if (!for_file)
        QUOLL_RETURN_IF_ERROR(
            run_until_settled(graph, {std::begin(kOfConstants), std::end(kOfConstants)}, make));
    std::vector<Pass> passes(std::begin(kPasses), std::end(kPasses));
    if (!for_file) passes.insert(passes.end(), std::begin(kNotOfFiles), std::end(kNotOfFiles));
    QUOLL_RETURN_IF_ERROR(run_until_settled(graph, passes, make));
    if (!for_file)
        QUOLL_RETURN_IF_ERROR(run_until_settled(graph, {std::begin(kLast), std::end(kLast)}, make));
    if (kFusesMore && !for_file && !graph.back_ends) {
        // Before scalars are chained.
        QUOLL_RETURN_IF_ERROR(run_until_settled(graph, {of<GridSample>(fuse_grid)}, make));
        QUOLL_RETURN_IF_ERROR(
            run_until_settled(graph,
                              {of<BinaryOp>(chain_scalars), of<BinaryOp>(fuse_sum_relu),
                               of<InstanceNorm, BatchNorm>(fuse_norm_activation),
                               kHasInt8 ? of<InstanceNorm>(fuse_norm_rounding) : nullptr},
                              make));
    }
    // Removes constants whose readers have taken them over.
    for (size_t i = 0; i < graph.size(); i++) {
        if (!graph.is<MemoryData>((int)i) || graph.layer((int)i)->tops.size() != 1) continue;
        const int blob = graph.layer((int)i)->tops[0];
        if (graph.readers(blob).empty() && !graph.kept(blob)) {
            graph.remove((int)i);
            graph.count("MemoryData that nothing reads left out");
        }
    }
    return kOk;
}

}  // namespace quoll
