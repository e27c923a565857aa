// What graph passes and planners ask operators, so that they need no lists of types: which class
// one is, and which properties it has. An operator answers in its own header; the defaults promise
// nothing.
#ifndef QUOLL_LAYER_TRAITS_H
#define QUOLL_LAYER_TRAITS_H

#include <type_traits>

#include "quoll/layer.h"

namespace quoll {

// Flags of Layer::traits(). They may depend on parameters.
enum Traits {
    // Each value of an output is a value of the first input (of Concat: of an input) or 0, whatever
    // it is, of f32 and s8 blobs alike.
    kMovesValues = 1,
    // The same, but which value it is depends on their order: maxima, ReLU. Rounding, which keeps
    // the order, may therefore come before or after the operator.
    kChoosesValues = 2,
    // The outputs are the input's memory under other names or shapes.
    kSharesMemory = 4,
    // forward() calls Mat::create for its output and then fills it, so that it can use memory that
    // was preset for it (concat elision). Not set if the input is copied first, or passed on.
    kCreatesOutput = 8,
    // One output of several inputs, which forward_inplace(vector) may make in the memory of one of
    // them. (Layer::support_inplace: each output is made in that of the input of its number.)
    kOverwritesInput = 16,
    // plan() may be asked about a batch though the layer takes one item at a time. With the
    // resulting plan, forward_planned() fills an output of all items, or, if blobs are not as
    // planned, leaves them as they are and returns kOneByOne. Without a plan items run one by one.
    kPlansBatch = 32,
};
enum { kOneByOne = 1 };
inline bool has_trait(const Layer& layer, Traits trait) { return (layer.traits() & trait) != 0; }

// Libraries without tile units leave it out: convolutions need them for it, and other layers then
// run item by item.
#if defined(QUOLL_NO_TILE_UNITS)
inline bool plans_batch(const Layer&) { return false; }
#else
inline bool plans_batch(const Layer& layer) { return has_trait(layer, kPlansBatch); }
#endif

// Whether forward_inplace() may be called on inputs that nobody else needs.
inline bool runs_in_place(const Layer& layer) {
    return layer.support_inplace || has_trait(layer, kOverwritesInput);
}

// What graph passes may change in an operator that multiplies with weights. Weights are in the
// order of its outputs.
struct FusionTarget {
    Mat* weight;  // f32 if its values may be changed
    Mat* bias;
    int* bias_term;
    int* activation_type;
    Mat* activation_params;
    int num_output;
    int axes;         // of the output besides the channels; 0: an inner product
    bool folds;       // weight and bias are there, in f32, and their results are the output
    bool activates;   // an activation may be added
    bool per_output;  // the output's outermost axis is num_output, whatever the input
};

// Whether the output has the shape of the input, whatever that is.
inline bool keeps_shape(const Layer& layer) {
    return layer.typeindex >= 0 && layer.one_blob_only && layer.support_inplace;
}

// The sizes of outputs if some inputs may be batches: a layer without support_batch runs once for
// each item. `without_values`: an input has an axis of size 0, as in Layer::infer_empty_shapes.
// Returns 0, or a negative code after a message.
int infer_batch_shapes(const Layer& layer, std::vector<Shape> in, bool without_values,
                       std::vector<Shape>* out);

// The options without those that the layer's featmask turns off.
inline Option masked_options(const Layer& layer, const Option& opt) {
    Option masked = opt;
    if (layer.featmask & 1) masked.use_fp16_arithmetic = false;
    if (layer.featmask & 64) masked.use_winograd_convolution = false;
    if (layer.featmask & 128) masked.num_threads = 1;
    return masked;
}

// Identifies class T, since the library has no RTTI.
template <class T>
const void* class_id() {
    static char id;
    return &id;
}

// The layer as built-in operator T; null if it is another operator, a custom layer, or null. T is
// the class given to Operator<T>, or one that overrides is_a and has a typedef Class of its own.
template <class T>
T* as(Layer* layer) {
    static_assert(std::is_same<typename T::Class, T>::value, "is_a() does not tell this class");
    const bool is = layer && layer->typeindex >= 0 && layer->is_a(class_id<T>());
    return is ? static_cast<T*>(layer) : nullptr;
}
template <class T>
const T* as(const Layer* layer) {
    return as<T>(const_cast<Layer*>(layer));
}

// The work of a layer for given sizes; -1: not known. Bytes are those of inputs, outputs and
// weights (f32 if their form is not known), each counted once.
struct Cost {
    int64_t macs, bytes;
};
Cost cost_of(Layer& layer, const std::vector<Shape>& in, const std::vector<Shape>& out);

// True if the sizes that most costs depend on, of the first input and output, are known.
inline bool first_sizes_known(const std::vector<Shape>& in, const std::vector<Shape>& out) {
    return !in.empty() && in[0].dims != 0 && !out.empty() && out[0].dims != 0;
}
// The rows of all channels of a blob: the steps of a sequence, times the batch.
inline int64_t row_count(const Shape& s) {
    return (s.dims == 1 ? 1 : (int64_t)s.h) * (s.dims == 3 ? s.c : 1);
}

}  // namespace quoll

#endif
