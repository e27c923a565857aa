// Layer: one node of the graph. Built-in operators derive from it through Operator; an
// application's own layers derive from it directly and are registered with
// Net::register_custom_layer.
#ifndef QUOLL_LAYER_H
#define QUOLL_LAYER_H

#include <stdint.h>

#include <memory>
#include <string>
#include <vector>

#include "quoll/mat.h"
#include "quoll/modelbin.h"
#include "quoll/option.h"
#include "quoll/paramdict.h"
#include "quoll/platform.h"
#include "quoll/status.h"

namespace quoll {

struct Activation;
struct FusionTarget;
class ParamVisitor;
class VkCompute;
class VkMat;
class VkTransfer;
class VulkanDevice;
class WeightVisitor;

// What a layer has decided for inputs of certain sizes (Layer::plan). Immutable; any number of runs
// may use it, at the same time too.
class LayerPlan {
public:
    virtual ~LayerPlan();
    // The name in reports: "winograd", "direct"; "" if there is no choice.
    virtual const char* algorithm() const;
};

// How a blob is laid out in memory: its size in scalars, the type that it is stored as, elempack.
struct BlobLayout {
    Shape shape;
    int elempack = 1;
    // Of an output: the input whose memory it shares; -1: it has its own.
    int shares = -1;
};

class Layer {
public:
    Layer();
    virtual ~Layer();

    // Each returns 0, or a negative code after saying why in the log (see fail()).
    virtual int load_param(const ParamDict& pd);
    virtual int load_model(const ModelBin& mb);
    // Called once, after the weights: repacking, kernel selection.
    virtual int create_pipeline(const Option& opt);
    virtual int destroy_pipeline(const Option& opt);

    // The forward functions. A layer implements the one that its flags name:
    //   one_blob_only  support_inplace   must implement              may implement
    //   false          false             forward(vector, vector)
    //   false          true              forward_inplace(vector)     forward(vector, vector)
    //   true           false             forward(Mat, Mat)
    //   true           true              forward_inplace(Mat)        forward(Mat, Mat)
    // The others are derived from it, as is forward(Mat, Mat) of a layer with one input and one
    // output from forward(vector, vector). They may run in several threads at once, hence const.
    // top_blobs comes with as many Mats as outputs are wanted; of a layer in no Net, whose `tops`
    // is empty, that is all that tells.
    virtual int forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                        const Option& opt) const;
    virtual int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const;
    virtual int forward_inplace(std::vector<Mat>& bottom_top_blobs, const Option& opt) const;
    virtual int forward_inplace(Mat& bottom_top_blob, const Option& opt) const;

#if QUOLL_VULKAN
    // The same on a GPU, recorded into `cmd` (quoll/command.h), for layers of an application that
    // set support_vulkan, in a Net that runs on a GPU. Inputs and outputs are planar (elempack 1),
    // f16 with opt.use_fp16_storage, else f32; outputs come from opt.blob_vkallocator, never null.
    // create_pipeline() makes pipelines; then upload_model() takes weights to the device. Built-in
    // layers that have a form on the GPU can be called this way too, if vkdev was set before.
    virtual int upload_model(VkTransfer& cmd, const Option& opt);
    virtual int forward(const std::vector<VkMat>& bottom_blobs, std::vector<VkMat>& top_blobs,
                        VkCompute& cmd, const Option& opt) const;
    virtual int forward(const VkMat& bottom_blob, VkMat& top_blob, VkCompute& cmd,
                        const Option& opt) const;
    virtual int forward_inplace(std::vector<VkMat>& bottom_top_blobs, VkCompute& cmd,
                                const Option& opt) const;
    virtual int forward_inplace(VkMat& bottom_top_blob, VkCompute& cmd, const Option& opt) const;
    // The device that the layer is to run on; null: the CPU only.
    const VulkanDevice* vkdev;
#endif

    // Decides how the layer runs on inputs of these sizes and dtypes, and packs the weights for
    // that. The same inputs and options always give the same decision, whatever was planned before.
    // The default gives null: there is nothing to decide, and forward() runs. May be called by
    // several threads at once.
    virtual int plan(const std::vector<Shape>& bottoms, const Option& opt,
                     std::shared_ptr<const LayerPlan>* plan) const;
    // forward(), or with `inplace` forward_inplace() from bottoms to tops, by a plan of this layer
    // for inputs of these sizes, and for options with as many threads.
    virtual int forward_planned(const LayerPlan& plan, std::vector<Mat>& bottoms,
                                std::vector<Mat>& tops, bool inplace, const Option& opt) const;

    // Predicts how the layer will make the outputs for inputs that are laid out like this. plan:
    // what plan() gave for these inputs, or null. out: one entry per output, planar at first, with
    // the sizes that infer_shapes gives (f32 as the 16-bit type if an input has one). If the
    // prediction is wrong, the blob is handled as it comes. The default: the elempack of the first
    // input if the layer takes any and the outermost axis stays as it is; memory of its own unless
    // traits() say otherwise.
    virtual void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in,
                              const Option& opt, std::vector<BlobLayout>* out) const;

    // The size and dtype of the outputs for given inputs. An output whose size is known only after
    // running has dims 0 (the function still returns kOk); by default all outputs are such.
    virtual int infer_shapes(const std::vector<Shape>& bottoms, std::vector<Shape>& tops) const;

    // The same if some inputs have an axis of size 0, or n 0 where support_batch is set. The
    // default refuses them.
    virtual int infer_empty_shapes(const std::vector<Shape>& bottoms,
                                   std::vector<Shape>& tops) const;
    // Runs on such inputs if support_zero_size is not set; they come with elempack 1, floats as
    // f32. The default makes outputs of the sizes that infer_empty_shapes gives, and refuses to
    // make one that would have values.
    virtual int forward_empty(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                              const Option& opt) const;

    // The operator's parameters and weights, one call each (schema.h). Custom layers that
    // only override load_param and load_model have none to show.
    virtual void visit_params(ParamVisitor& v);
    virtual void visit_weights(WeightVisitor& v);

    // What graph passes and planners ask of an operator; traits.h explains it. Custom layers
    // promise nothing.
    // Whether the object is of the class with that id; for as<T>(layer).
    virtual bool is_a(const void* class_id) const;
    // A sum of Traits.
    virtual unsigned traits() const;
    // The activation_type, with its parameters, that does the same; type 0 if there is none.
    virtual Activation as_activation() const;
    // What may be folded and fused into the operator; false if nothing may.
    virtual bool fusion_target(FusionTarget* target);
    // Multiply-accumulates for these sizes; 0 for operators that do not multiply, -1 if a size that
    // they depend on is not known (dims 0).
    virtual int64_t macs(const std::vector<Shape>& bottoms, const std::vector<Shape>& tops) const;

    // Logs "[type name] message" and returns kError: `return fail("expected 3 axes, got %d",
    // dims);`
    int fail(const char* format, ...) const
#if defined(__GNUC__)
        __attribute__((format(printf, 2, 3)))
#endif
        ;

    // One input and one output, as Convolution; not so: Concat, Split.
    bool one_blob_only;
    // Inputs may be overwritten by the outputs.
    bool support_inplace;
    // Takes inputs of any elempack (each input may have its own). Otherwise inputs come with
    // elempack 1.
    bool support_packing;
    // Takes blobs with n > 1 itself. Otherwise the layer is run for each item of the batch.
    bool support_batch;
    // Inputs that the user did not give come as empty Mats (a cache before the first step) instead
    // of being an error; infer_shapes sees dims 0.
    bool support_absent_inputs;
    // Takes f16 / bf16 blobs itself. Otherwise they are widened before and narrowed after.
    bool support_fp16_storage;
    bool support_bf16_storage;
    // An application's layer has the forward functions on a GPU.
    bool support_vulkan;
    // Flags of ncnn's that an application's layers may set, without effect here: layers are given
    // s8 blobs as they are, and any elempack or only 1 (support_packing).
    bool support_int8_storage;
    bool support_any_packing;
    bool support_vulkan_packing;
    bool support_vulkan_any_packing;
    bool support_tensor_storage;
    bool support_reserved_2, support_reserved_3, support_reserved_4, support_reserved_5,
        support_reserved_6, support_reserved_7, support_reserved_8, support_reserved_9;
    // forward takes blobs with an axis of size 0 (dims set, no data). Otherwise forward_empty does.
    bool support_zero_size;

    // Parameter 31 of the param file: what the layer has to do without, whatever the options say.
    // 1: fp16 arithmetic, 64: Winograd's algorithm, 128: threads. Other bits are kept, without
    // effect.
    int featmask;

    // For an application's layers, to keep anything in. It is what register_custom_layer was given,
    // unless the creator has set it.
    void* userdata;
    int typeindex;  // position in layer/layer_list.inc; -1 for custom layers
    std::string type;
    std::string name;
    std::vector<int> bottoms;  // blob indexes
    std::vector<int> tops;
    // Sizes of the blobs as the param file hints them, Mats without data; may be empty.
    std::vector<Mat> bottom_shapes;
    std::vector<Mat> top_shapes;

private:
    Layer(const Layer&);
    Layer& operator=(const Layer&);
#if QUOLL_VULKAN
    // Of a built-in layer that is called on a GPU by itself, made when it first is.
    mutable std::shared_ptr<void> vulkan_form_;
#endif
};

typedef Layer* (*layer_creator_func)(void* userdata);
typedef void (*layer_destroyer_func)(Layer* layer, void* userdata);

// The type index of a built-in layer, -1 if there is none of that name; and the name, null if there
// is none of that index.
int layer_to_index(const char* type);
const char* layer_type_name(int index);
// A new built-in layer in the fastest form that this machine has (delete it), null if there is
// none; the _reference forms make the scalar reference of the operator. create_layer_cpu and
// create_layer_naive are ncnn's names for the two.
Layer* create_layer(const char* type);
Layer* create_layer(int index);
inline Layer* create_layer_cpu(const char* type) { return create_layer(type); }
inline Layer* create_layer_cpu(int index) { return create_layer(index); }
Layer* create_layer_reference(const char* type);
Layer* create_layer_reference(int index);
inline Layer* create_layer_naive(const char* type) { return create_layer_reference(type); }
inline Layer* create_layer_naive(int index) { return create_layer_reference(index); }
#if QUOLL_VULKAN
// The same layer: one form serves both.
inline Layer* create_layer_vulkan(const char* type) { return create_layer(type); }
inline Layer* create_layer_vulkan(int index) { return create_layer(index); }
#endif
// All built-in types in the order of their indexes.
std::vector<std::string> layer_types();

}  // namespace quoll

#define DEFINE_LAYER_CREATOR(name) \
    ::quoll::Layer* name##_layer_creator(void*) { return new name; }
#define DEFINE_LAYER_DESTROYER(name) \
    void name##_layer_destroyer(::quoll::Layer* layer, void*) { delete layer; }

#endif
