// The form that an operator has on the device. docs/vulkan.md says how to add one.
#ifndef QUOLL_LAYER_VULKAN_VULKAN_LAYER_H
#define QUOLL_LAYER_VULKAN_VULKAN_LAYER_H

#include <memory>
#include <vector>

#include "layer/common/activation.h"
#include "layer/common/schema.h"
#include "layer/vulkan/recorder.h"

namespace quoll {

typedef std::vector<Shape> Shapes;
typedef std::vector<Value> Values;
typedef std::vector<Layout> Layouts;

// A layer as a product of its weights with the flattened values of its input.
struct Dense {
    Binding weight, bias;
    bool has_bias = false;
    uint32_t inputs = 0, outputs = 0;
    // Scalars from one weight to the next: one of the two is 1, the other a multiple of 4. Rows of
    // inputs are padded with zeros.
    uint32_t output_step = 0, input_step = 0;
    Activation f;
};

// A row divided by the root of its mean square and multiplied by factors of f32.
struct RowNorm {
    Binding factors;
    bool has_factors = false;
    float eps = 0.f;
};

// Sums of f32 over parts of the pixels: [items][parts][channels in vec4s].
struct ChannelSums {
    int block = -1;
    uint32_t items = 1, parts = 0, pixels = 0;  // pixels: of all parts of an item
};

// How a step can be computed together with others (fusion.h).
enum class StepFusion {
    kNone,
    kSums,      // also adds up the pixels of its output
    kSkipped,   // others compute it
    kGate,      // with those that were skipped
    kMultiply,  // by its reader,
    kGated,     // which multiplies its first input by a factor of each channel
    kShuffle,   // with the Concat and the ShuffleChannel before
    kEpilogue,  // a product that makes the output of the sum or the activation behind it,
    kSoftmax,   // or of the softmax behind it,
    kFactor,    // or of the multiplication by a blob
    kPooled,    // an inner product of the average of pixels that are added up where they are made
    kNormed,    // a product that normalises its only row first
    kPaired,    // a product of one row that makes another one of its input, too, as a factor
    kRepeated,  // repeats channels of its second and third input itself
    kRotated,   // makes the RotaryEmbeds of its first and second input itself
    kHost,      // stores its only output, planar, where the host reads it
    kRows       // a Permute of flattened pixels: its rows are channels-last pixels as they lie
};

class VulkanLayer;

// What a step computes together with its own output.
struct Fused {
    const Value* gate = nullptr;          // kGated: the factors
    ChannelSums* sums = nullptr;          // kSums: to be set
    const ChannelSums* pooled = nullptr;  // kPooled: instead of the input
    // kEpilogue: the blob that is added, of the output's shape and layout; the function that is
    // applied to the sum; and, if the layer fuses kFactor, the blob (likewise) by which the result
    // is multiplied.
    const Value* added = nullptr;
    Activation f;
    const Value* factor = nullptr;
    bool softmax = false;           // kSoftmax: at last
    const RowNorm* norm = nullptr;  // kNormed: of the first input
    // kPaired: the other product, to which `f` is applied and of which this layer's output is a
    // factor.
    const VulkanLayer* pair = nullptr;
    // kRotated: for the first and the second input.
    struct Rotary {
        const Layer* layer = nullptr;
        Value cosines, sines;
    } rotaries[2];
    // kHost: the binding that is written instead of the output's block, and whether it is f32 while
    // blobs are f16.
    const Binding* host = nullptr;
    bool host_floats = false;
};

// Created once for each layer, after its weights were loaded; const from then on, since several
// threads compile with it. It may refer to the Layer for its parameters, but not for its weights,
// which are freed.
class VulkanLayer {
public:
    virtual ~VulkanLayer();
    // Blobs have 1 to 4 axes, none of size 0, and are floats (f32); if takes_integers() is true,
    // also s32, s8 and u8.
    virtual bool supports(const Shapes& in, const Shapes& out) const = 0;
    virtual bool takes_integers() const { return false; }
    // Whether input `index` may be a blob without values, which has no memory, and which record()
    // does not read.
    virtual bool takes_empty(size_t index) const;
    // `in`: the layouts of the inputs; to be changed to those that record() takes. `out`: one for
    // each output, planar at first; to be changed to those that record() makes. The default takes
    // and makes planar blobs only.
    virtual void choose_layouts(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                                Layouts* out) const;
    // Whether record() can make floats planar, though choose_layouts() made them channels-last: it
    // then does so if all readers take them so.
    virtual bool stores_planar() const;
    // Whether record() can also take input `index` planar where the host has written it
    // (Value::is_staged), if choose_layouts() left it planar.
    virtual bool reads_upload(size_t index, const Shapes& in) const;
    // True if output `index` is a view of an input: sets layout, block, first and pitch of *out,
    // whose shape is set already. record() must then not make it.
    virtual bool alias(const Values& in, size_t index, Value* out) const;
    // True if alias() may return true: such outputs are never placed within another value.
    virtual bool gives_views() const { return false; }
    // True if the output's channels are those of the inputs, one after the other. Inputs are then
    // made there if possible, and record() finds them in the output's block.
    virtual bool joins_channels() const { return false; }
    // The input with whose rows output `index` begins, if record() takes both with gaps between
    // their channels (Value::channel_step) and, if they share a block, appends to it; -1: none.
    virtual int cache_of(size_t index) const;
    // Records the dispatches. Returns 0, or a negative code after a message.
    virtual int record(Recorder& r, const Values& in, const Values& out) const = 0;
    // True if record_fused() can do this too: kSums, kGated, kEpilogue (for its only output, which
    // is planar), kFactor, kSoftmax, kPooled, kNormed, kPaired, kRepeated, kRotated or kHost.
    virtual bool fuses(StepFusion fusion, const Shapes& in, const Shapes& out) const;
    virtual int record_fused(Recorder& r, const Values& in, const Values& out,
                             const Fused& fused) const;
    // For two layers that fuse kPaired: whether one dispatch makes both.
    virtual bool pairs_with(const VulkanLayer& other) const;
    // Sets *dense and returns true if the layer is a Dense.
    virtual bool dense(Dense* dense) const;
    // Sets *norm and returns true if the layer, on a blob of this shape, is just a RowNorm.
    virtual bool row_norm(const Shape& in, RowNorm* norm) const;
};

typedef std::unique_ptr<VulkanLayer> VulkanLayerPtr;

// What is needed to create the form of a layer.
struct VulkanContext {
    const GpuDevice& device;
    Storage storage;  // of blobs, and of weights that are multiplied
    WeightStore& weights;
    bool use_cooperative_matrix;
    bool has_matrices() const { return can_use_matrices(device, storage, use_cooperative_matrix); }
};

// Each row of layers.inc has such a function. It leaves *made null for a layer of another operator,
// and if the parameters say that the layer can never run on the device. Returns 0, or a negative
// code after a message.
#define QUOLL_VULKAN_LAYER(name) \
    int make_##name##_vulkan(const Layer& layer, VulkanContext& context, VulkanLayerPtr* made);
#include "layer/vulkan/layers.inc"
#undef QUOLL_VULKAN_LAYER

// Whether each input has one item, or `items` of them.
bool items_fit(const Shapes& in, int items);
// For choose_layouts: all blobs get the layout of input `like`, if they can have it.
void follow_layout(size_t like, const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                   Layouts* out);
// For choose_layouts: channels-last for all blobs that can have it.
void all_channels_last(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                       Layouts* out);
// The same, those of s8 too.
void all_pixels(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in, Layouts* out);
// The values of an f32 weight, flattened.
std::vector<float> values_of(const Mat& weight);

}  // namespace quoll

#endif
