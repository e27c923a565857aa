// The passes of run_passes (layer_graph.h). Each looks at one layer and says whether it changed the
// graph there.
#ifndef QUOLL_GRAPH_PASSES_H
#define QUOLL_GRAPH_PASSES_H

#include "graph/layer_graph.h"
#include "layer/common/built_layers.h"
#include "layer/nn/convolution.h"

namespace quoll {

// A pass returns 1 if it changed something at this layer, 0 if there was nothing to do, a negative
// code if memory ran out. "Not for files" below means: ncnn could not read the result, its blobs
// would have other values, or the file would grow.
typedef int (*Pass)(LayerGraph& graph, int index, const LayerMaker& make);

// Removes layers that change nothing: Noop, Split, Dropout with scale 1, 1x1 Pooling of images,
// Flatten and Reshape of what is flat, BinaryOp with the neutral value, Concat of one input,
// Permute and Padding that leave all as it is.
int eliminate_identity(LayerGraph& graph, int index, const LayerMaker& make);
// Removes a Flatten, or a Reshape that does the same, before an inner product.
int eliminate_flatten(LayerGraph& graph, int index, const LayerMaker& make);
// Reduction of the axes of each channel to its mean or maximum -> Pooling.
int reduction_to_pooling(LayerGraph& graph, int index, const LayerMaker& make);
// 1x1 Convolution of one pixel, behind global pooling or an inner product -> InnerProduct.
int convolution_to_product(LayerGraph& graph, int index, const LayerMaker& make);
// x * Sigmoid(x) -> Swish, x * HardSigmoid(x) -> HardSwish, one-slope PReLU -> ReLU.
int merge_gate(LayerGraph& graph, int index, const LayerMaker& make);
// A constant blob (MemoryData) of one value as operand of BinaryOp -> its parameter b.
int fold_scalar_operand(LayerGraph& graph, int index, const LayerMaker& make);
// A layer without weights of its own, all of whose inputs are constants (MemoryData) -> a constant.
// Not for files.
int fold_constant(LayerGraph& graph, int index, const LayerMaker& make);
// Constants as weight and bias of a convolution or deconvolution with dynamic_weight -> weights of
// its own.
int fold_dynamic_weight(LayerGraph& graph, int index, const LayerMaker& make);
// Folds constant Padding into the convolution behind it.
int fold_padding(LayerGraph& graph, int index, const LayerMaker& make);
// Folds BatchNorm, Scale, Bias, Dropout, linear Power and BinaryOp with constants into the weights
// of the convolution, inner product or BatchNorm before them.
int fold_affine(LayerGraph& graph, int index, const LayerMaker& make);
// The sum of two convolutions of one blob with the same window, or with one window in the middle of
// the other, or of a convolution and a BatchNorm of the blob -> one convolution. Networks that are
// trained with such branches (RepVGG, MobileOne, FastViT) have many.
int merge_parallel(LayerGraph& graph, int index, const LayerMaker& make);
// Folds a BatchNorm over the rows of an inner product, behind a BatchAxis that made them a batch,
// into its weights (PyTorch exports BatchNorm1d behind Linear so). Blobs between them get other
// values: not for files.
int fold_row_norm(LayerGraph& graph, int index, const LayerMaker& make);
// Does fold_affine and fuse_activation behind a Concat of channels that only convolutions make
// (such as the split kernels of MixNet), into each of them. Blobs between them get other values:
// not for files.
int fold_joined_affine(LayerGraph& graph, int index, const LayerMaker& make);
int fuse_joined_activation(LayerGraph& graph, int index, const LayerMaker& make);
// Removes a BatchAxis and its inverse, in either order, with nothing between them.
int eliminate_batch_axes(LayerGraph& graph, int index, const LayerMaker& make);
// Fuses the sum of a convolution's output and another blob into the convolution (parameter
// add_input, which ncnn lacks: not for files).
int fuse_residual(LayerGraph& graph, int index, const LayerMaker& make);
// Fuses an activation into the convolution or inner product before it.
int fuse_activation(LayerGraph& graph, int index, const LayerMaker& make);
// Into an InstanceNorm, or a ReLU into a BatchNorm, after all other passes, which do not look for
// them there. Not for files, which have no place for it, nor for back ends, which would have to do
// the same.
int fuse_norm_activation(LayerGraph& graph, int index, const LayerMaker& make);
// A ReLU into the sum of two blobs before it, where no convolution takes the sum. Likewise.
int fuse_sum_relu(LayerGraph& graph, int index, const LayerMaker& make);
// BatchAxis on the grid and on the output of a GridSample, and the scaling of coordinates that were
// cut from one another for it, into the layer. Likewise.
int fuse_grid(LayerGraph& graph, int index, const LayerMaker& make);
// The AffineDequantize before an InstanceNorm and the AffineQuantize behind it into it. Likewise.
int fuse_norm_rounding(LayerGraph& graph, int index, const LayerMaker& make);
// An operation with a scalar into the one before it, after all other passes, which look at single
// operations. Not for files, nor for back ends.
int chain_scalars(LayerGraph& graph, int index, const LayerMaker& make);
// Fuses an activation into the convolution or inner product before it if the layers between them
// only change shapes, the order of axes, and what is an item. Blobs between them get other values:
// not for files.
int fuse_moved_activation(LayerGraph& graph, int index, const LayerMaker& make);
// If the output of int8 convolutions reaches only int8 convolutions and inner products of one input
// scale, directly or through layers that only move values or choose among them (maxima,
// concatenation, parts, order of channels, shapes), it is rounded by the layers that make it
// (int8_scale_term above 100) instead of by those that read it, with the same results. With zero
// points, AffineQuantize is moved in the same way. Not for files, whose blobs must stay what they
// are.
int keep_int8(LayerGraph& graph, int index, const LayerMaker& make);
// Fuses the ReLU of a convolution's int8 results with their own scale and zero point (AffineBinary
// of one input) into the convolution.
int fuse_int8_relu(LayerGraph& graph, int index, const LayerMaker& make);
// MatMul between AffineDequantize and AffineQuantize -> MatMulInteger with s8 results. Not for
// files, whose blobs must stay what they are.
int quantised_product(LayerGraph& graph, int index, const LayerMaker& make);
// Fuses AffineQuantize into the InnerProduct of int8 values if it alone reads the result. Not for
// files either.
int keep_int8_rows(LayerGraph& graph, int index, const LayerMaker& make);
// A function of each value by itself, between AffineDequantize and AffineQuantize -> AffineTable.
// Not for files, which would grow.
int tabulate(LayerGraph& graph, int index, const LayerMaker& make);
// Moves a Permute of rows and columns to that side of an InnerProduct where there are fewer values;
// the product then takes columns, as a Convolution1D. Not for files: the blob between them changes.
int turn_fewer(LayerGraph& graph, int index, const LayerMaker& make);
// A Concat whose first inputs are all those of an earlier one (DenseNet has chains of them) joins
// that one's output and the rest: with a single reader each, inputs can be made where the last
// one's output will be, and nothing is copied (plan/concat_elision.h).
int chain_concats(LayerGraph& graph, int index, const LayerMaker& make);
// Marks a Permute whose output is read by convolutions and poolings only (shapes, activations,
// resizing and joins may be in between): they want channels in blocks (feeds_channels). Changes
// nothing in files.
int mark_channels(LayerGraph& graph, int index, const LayerMaker& make);

// Runs a layer without weights on such inputs, on one thread; false if that fails.
bool compute(Layer& layer, const LayerMaker& make, const std::vector<Mat>& inputs, Mat* value);
// What may be folded and fused into a layer; false if nothing may.
bool fusion_target(const LayerGraph& graph, int index, FusionTarget* found);
// What may be folded and fused into the layers whose outputs are read only by a Concat that joins
// them along the channels; false if the Concat joins anything else.
bool joined_targets(const LayerGraph& graph, int index, std::vector<FusionTarget>* targets);
// For a target that takes an activation. A negative code if memory runs out.
int set_activation(const FusionTarget& target, const Activation& f);
// The fields of a convolution with any number of axes; null if the layer is none.
ConvolutionFields* convolution_fields(const LayerGraph& graph, int index);

// graph.as<T>(index) for an operator T whose class no other operator has; no code if the library
// was built without it.
template <class T>
const T* as_built(const LayerGraph& graph, int index) {
    if constexpr (kIsBuilt<T>)
        return graph.as<T>(index);
    else
        return nullptr;
}

// Whether the layer's only output has channels of 2 axes (dims 3), whatever the sizes: a
// convolution or pooling over w and h, or activations and other arithmetic on such a blob.
bool gives_channels(const LayerGraph& graph, int index);

}  // namespace quoll

#endif
