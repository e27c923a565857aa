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

// A layer as a product of its weights with the flat values of its input.
struct Dense {
    Binding weight, bias;
    bool has_bias = false;
    uint32_t inputs = 0, outputs = 0;
    // Scalars from one weight to the next: one of the two is 1, the other a multiple of 4. Rows of
    // inputs are filled up with zeros.
    uint32_t output_step = 0, input_step = 0;
    Activation f;
};

// A row divided by the root of its mean square, times factors of f32.
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

// What becomes of a step that is computed together with others (fusion.h).
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
    // kEpilogue: what is added, of the output's shape and layout, what is applied behind it, and
    // what (likewise) the result of that is multiplied by, where the layer fuses kFactor.
    const Value* added = nullptr;
    Activation f;
    const Value* factor = nullptr;
    bool softmax = false;           // kSoftmax: at last
    const RowNorm* norm = nullptr;  // kNormed: of the first input
    // kPaired: the product that `f` is applied to, as which the output is a factor of it.
    const VulkanLayer* pair = nullptr;
    // kRotated: of the first and the second input.
    struct Rotary {
        const Layer* layer = nullptr;
        Value cosines, sines;
    } rotaries[2];
    // kHost: what is written instead of the output's block, whether f32 where blobs are f16.
    const Binding* host = nullptr;
    bool host_floats = false;
};

// Made once a layer, after its weights were loaded; const from then on, as several threads compile
// with it. It may keep the Layer for its numbers, but not for its weights, which go.
class VulkanLayer {
public:
    virtual ~VulkanLayer();
    // Blobs have 1 to 4 axes of one size or more, and are floats (f32), or, where takes_integers()
    // says so, s32, s8 and u8.
    virtual bool supports(const Shapes& in, const Shapes& out) const = 0;
    virtual bool takes_integers() const { return false; }
    // Whether input `index` may be a blob without values, of no memory, which record() does not
    // read.
    virtual bool takes_empty(size_t index) const;
    // `in`: the layouts that the inputs have; to be changed to those that record() takes. `out`:
    // one for each output, planar; to be changed to those that it makes. By default planar alone.
    virtual void choose_layouts(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                                Layouts* out) const;
    // Whether record() makes floats, which choose_layouts() made channels-last, planar where all
    // that read them take them so.
    virtual bool stores_planar() const;
    // Whether record() also takes input `index` planar where the host has written it
    // (Value::is_staged), when choose_layouts() finds it planar.
    virtual bool reads_upload(size_t index, const Shapes& in) const;
    // True if output `index` is values of an input as they lie: sets layout, block, first and pitch
    // of *out; its shape is set. record() then is not to make it.
    virtual bool alias(const Values& in, size_t index, Value* out) const;
    // True if alias() may be true: its outputs are never made within another value.
    virtual bool gives_views() const { return false; }
    // True if the channels of the output are those of the inputs, one after the other: inputs are
    // then made there where they can be, and record() finds them in the output's block.
    virtual bool joins_channels() const { return false; }
    // The input whose rows output `index` begins with, where record() takes both with gaps between
    // their channels (Value::channel_step), and, in one block, appends to it; -1: none.
    virtual int cache_of(size_t index) const;
    // 0, or a negative code after a message.
    virtual int record(Recorder& r, const Values& in, const Values& out) const = 0;
    // True if record_fused() does kSums, kGated or kEpilogue (of its only output, which is planar),
    // kFactor or kSoftmax besides, kPooled, kNormed, kPaired, kRepeated, kRotated or kHost.
    virtual bool fuses(StepFusion fusion, const Shapes& in, const Shapes& out) const;
    virtual int record_fused(Recorder& r, const Values& in, const Values& out,
                             const Fused& fused) const;
    // Of two layers that fuse kPaired: whether both are made by one dispatch.
    virtual bool pairs_with(const VulkanLayer& other) const;
    // True for layers that are a Dense, which is set.
    virtual bool dense(Dense* dense) const;
    // True if all that it does to a blob of this shape is a RowNorm, which is set.
    virtual bool row_norm(const Shape& in, RowNorm* norm) const;
};

typedef std::unique_ptr<VulkanLayer> VulkanLayerPtr;

// What an operator needs to be made.
struct VulkanContext {
    const GpuDevice& device;
    Storage storage;  // of blobs, and of weights that are multiplied
    WeightStore& weights;
    bool use_cooperative_matrix;
    bool has_matrices() const { return can_use_matrices(device, storage, use_cooperative_matrix); }
};

// Each row of layers.inc has such a function: it leaves *made null for a layer of another operator,
// and where the parameters say that it will never run on the device. 0, or a negative code after a
// message.
#define QUOLL_VULKAN_LAYER(name) \
    int make_##name##_vulkan(const Layer& layer, VulkanContext& context, VulkanLayerPtr* made);
#include "layer/vulkan/layers.inc"
#undef QUOLL_VULKAN_LAYER

// Whether each input has one item, or as many as there are.
bool items_fit(const Shapes& in, int items);
// For choose_layouts: everything as input `like` comes, where the blobs can.
void follow_layout(size_t like, const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                   Layouts* out);
// All that can be are channels-last.
void all_channels_last(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                       Layouts* out);
// The same, those of s8 too.
void all_pixels(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in, Layouts* out);
// The flat values of a weight of f32.
std::vector<float> values_of(const Mat& weight);

}  // namespace quoll

#endif
