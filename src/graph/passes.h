// The passes of run_passes (layer_graph.h). Each looks at one layer and says whether it changed the
// graph there.
#ifndef QUOLL_GRAPH_PASSES_H
#define QUOLL_GRAPH_PASSES_H

#include "graph/layer_graph.h"
#include "layer/nn/convolution.h"

namespace quoll {

// 1: changed something at this layer, 0: nothing to do, negative: out of memory.
typedef int (*Pass)(LayerGraph& graph, int index, const LayerMaker& make);

// Layers that change nothing: Noop, Split, Dropout with scale 1, 1x1 Pooling of images, Flatten and
// Reshape of what is flat, BinaryOp with the neutral value, Concat of one input, Permute and
// Padding that leave all as it is.
int eliminate_identity(LayerGraph& graph, int index, const LayerMaker& make);
// Flatten, or Reshape that does the same, before an inner product.
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
// Of no use for files, which would grow.
int fold_constant(LayerGraph& graph, int index, const LayerMaker& make);
// Constants as weight and bias of a convolution or deconvolution with dynamic_weight -> weights of
// its own.
int fold_dynamic_weight(LayerGraph& graph, int index, const LayerMaker& make);
// Constant Padding into the convolution behind it.
int fold_padding(LayerGraph& graph, int index, const LayerMaker& make);
// BatchNorm, Scale, Bias, Dropout, linear Power and BinaryOp with constants into the weights of the
// convolution, inner product or BatchNorm before them.
int fold_affine(LayerGraph& graph, int index, const LayerMaker& make);
// The sum of two convolutions of one blob with the same window, or with one window in the middle of
// the other, or of a convolution and a BatchNorm of the blob -> one convolution. Networks that are
// trained with such branches (RepVGG, MobileOne, FastViT) have many.
int merge_parallel(LayerGraph& graph, int index, const LayerMaker& make);
// BatchNorm over the rows of an inner product, behind a BatchAxis that made them a batch, into its
// weights (as BatchNorm1d behind Linear comes out of PyTorch). Blobs between them get other values:
// of no use for files.
int fold_row_norm(LayerGraph& graph, int index, const LayerMaker& make);
// fold_affine, and fuse_activation, behind a Concat of channels that convolutions alone make (those
// of a split kernel, as MixNet has them), into each of them. Blobs between them get other values:
// of no use for files.
int fold_joined_affine(LayerGraph& graph, int index, const LayerMaker& make);
int fuse_joined_activation(LayerGraph& graph, int index, const LayerMaker& make);
// BatchAxis and its inverse, in either order, with nothing between them.
int eliminate_batch_axes(LayerGraph& graph, int index, const LayerMaker& make);
// The sum of a convolution's output and another blob into the convolution (parameter add_input,
// which ncnn lacks: of no use for files).
int fuse_residual(LayerGraph& graph, int index, const LayerMaker& make);
// An activation into the convolution or inner product before it.
int fuse_activation(LayerGraph& graph, int index, const LayerMaker& make);
// An activation behind layers that only change shapes, the order of axes and what is an item, which
// stand behind a convolution or inner product, into that. Blobs between them get other values: of
// no use for files.
int fuse_moved_activation(LayerGraph& graph, int index, const LayerMaker& make);
// The output of int8 convolutions that reaches int8 convolutions and inner products of one input
// scale alone, directly or through layers that only move values or choose among them (maxima,
// concatenation, parts, order of channels, shapes): rounded by those who make it (int8_scale_term
// above 100) instead of by those who read it, with the same results; so, with zero points, goes
// AffineQuantize. Of no use for files, whose blobs must stay what they are.
int keep_int8(LayerGraph& graph, int index, const LayerMaker& make);
// ReLU of a convolution's int8 results with their own scale and zero point (AffineBinary of one
// input) into the convolution.
int fuse_int8_relu(LayerGraph& graph, int index, const LayerMaker& make);
// MatMul between AffineDequantize and AffineQuantize -> MatMulInteger with s8 results. Of no use
// for files, whose blobs must stay what they are.
int quantised_product(LayerGraph& graph, int index, const LayerMaker& make);
// AffineQuantize into the InnerProduct of int8 values whose result it alone reads. Of no use for
// files either.
int keep_int8_rows(LayerGraph& graph, int index, const LayerMaker& make);
// What is computed of each value by itself between AffineDequantize and AffineQuantize ->
// AffineTable. Of no use for files, which would grow.
int tabulate(LayerGraph& graph, int index, const LayerMaker& make);
// A Permute of rows and columns to the side of an InnerProduct where there are fewer values, which
// takes columns then, as a Convolution1D. Of no use for files: the blob between them is another.
int turn_fewer(LayerGraph& graph, int index, const LayerMaker& make);
// A Concat whose first inputs are all those of an earlier one (DenseNet has chains of them) joins
// that one's output and the rest: with a single reader each, inputs can be made where the last
// one's output will be, and nothing is copied (plan/concat_elision.h).
int chain_concats(LayerGraph& graph, int index, const LayerMaker& make);
// Tells a Permute whose output convolutions and poolings alone read, shapes, activations, resizing
// and joins between them or not, that they want channels in blocks (feeds_channels). Nothing of
// files.
int mark_channels(LayerGraph& graph, int index, const LayerMaker& make);

// What a layer without weights makes of such inputs, on one thread; false if that fails.
bool compute(Layer& layer, const LayerMaker& make, const std::vector<Mat>& inputs, Mat* value);
// What may be folded and fused into a layer; false if nothing may.
bool fusion_target(const LayerGraph& graph, int index, FusionTarget* found);
// What may be folded and fused into the layers whose outputs a Concat alone reads and joins along
// the channels; false where it joins anything else.
bool joined_targets(const LayerGraph& graph, int index, std::vector<FusionTarget>* targets);
// Of a target that activates. A negative code when memory runs out.
int set_activation(const FusionTarget& target, const Activation& f);
// Null unless it is a convolution, of whatever number of axes.
ConvolutionFields* convolution_fields(const LayerGraph& graph, int index);

// The layer's only output has channels of 2 axes (dims 3), whatever the sizes: a convolution or
// pooling over w and h, activations and other arithmetic on such a blob included.
bool gives_channels(const LayerGraph& graph, int index);

}  // namespace quoll

#endif
