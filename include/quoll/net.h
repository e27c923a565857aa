// Net: a model. Extractor: one run of it.
//
//   quoll::Net net;
//   if (net.load_param("model.param") || net.load_model("model.bin")) return 1;
//   quoll::Extractor ex = net.create_extractor();
//   ex.input("data", in);
//   quoll::Mat out;
//   if (ex.extract("prob", out)) return 1;
#ifndef QUOLL_NET_H
#define QUOLL_NET_H

#include <stdio.h>

#include <memory>
#include <vector>

#if defined(__ANDROID__)
#include <android/asset_manager.h>
#endif

#include "quoll/blob.h"
#include "quoll/layer.h"
#include "quoll/option.h"
#include "quoll/platform.h"

namespace quoll {

class Backend;
class DataReader;
class Extractor;
class LayerPlan;
class VkAllocator;
class VkCompute;
class VkMat;
class VulkanDevice;
struct StepLayout;

// In a binary param, the type index of a custom layer has this bit set.
enum { kCustomLayerBit = 1 << 8 };

// A loaded model. Loading and clear() are for one thread; create_extractor() and running Extractors
// may go on in many. All loaders return 0, or a negative code after a message in the log; a failed
// loader leaves the Net empty.
class Net {
public:
    Net();
    virtual ~Net();

    // Set before loading.
    Option opt;

    // Makes a layer type known, or replaces a built-in one. To be called before load_param.
    int register_custom_layer(const char* type, layer_creator_func creator,
                              layer_destroyer_func destroyer = 0, void* userdata = 0);
    // By type index, as binary params refer to it: kCustomLayerBit | i is custom layer i, i alone
    // is built-in layer i, which it replaces in text params too, and custom layer i. Built-in
    // layers from index 256 on, which ncnn lacks, can be replaced by name.
    int register_custom_layer(int index, layer_creator_func creator,
                              layer_destroyer_func destroyer = 0, void* userdata = 0);
    // The position of a type among the layers that were registered, -1 if it is not there.
    virtual int custom_layer_to_index(const char* type);

    // Another back end (quoll/backend.h), asked behind those that were added before it; the CPU
    // runs what none of them supports. One object serves one Net. To be called before load_model;
    // stays when the Net is cleared. The interface is not yet a stable one.
    void add_backend(const std::shared_ptr<Backend>& backend);
    // The device, as quoll/gpu.h numbers them, for Option::use_vulkan_compute; by default that of
    // Option::vulkan_device_index, else of get_default_gpu_index(). To be called before load_model.
    void set_vulkan_device(int device_index);
    void set_vulkan_device(const VulkanDevice* vkdev);
    // That device of get_gpu_device(); null if there is none, and for a Net that uses none.
    const VulkanDevice* vulkan_device() const;

    // The graph. Text form: from a reader, a file at its current position (which stays right behind
    // the model, so that several can follow one another), a path, or a string.
    int load_param(const DataReader& dr);
    int load_param_bin(const DataReader& dr);
    // Between load_param and load_model: this blob will be given as input or extracted, so that no
    // layer may be fused across it (see Option::use_graph_fusion), which makes that faster.
    int keep_blob(const char* name);
    int keep_blob(int index);
    // The weights, in the order of the layers. Fuses layers and prepares them. Without it a net runs
    // whose layers have no weights. A path has to hold
    // these weights and nothing else: bytes that are left over are an error, as are weights that
    // belong to another param (where both files say so, as those that this engine's programs
    // write). A reader, a FILE or memory may go on behind the weights.
    int load_model(const DataReader& dr);
#if QUOLL_STDIO
    int load_param(FILE* fp);
    int load_param(const char* path);
    int load_param_mem(const char* text);
    int load_param_bin(FILE* fp);
    int load_param_bin(const char* path);
    int load_model(FILE* fp);
    // Who wants to write to the file meanwhile has to wait; afterwards it may change or go (but that
    // a blob which was fused away is made from it when it is first asked for).
    int load_model(const char* path);
#endif
#if defined(__ANDROID__)
    // An asset, from where it stands; the caller closes it. Or one by its name: an error if there
    // is none. Weights are copied. Link `android`.
    int load_param(AAsset* asset);
    int load_param_bin(AAsset* asset);
    int load_model(AAsset* asset);
    int load_param(AAssetManager* assets, const char* name);
    int load_param_bin(AAssetManager* assets, const char* name);
    int load_model(AAssetManager* assets, const char* name);
#endif
    // From memory that is 4-byte aligned; return the bytes consumed, 0 on failure. The weights are
    // used in place: the memory must outlive the Net.
    int load_param(const unsigned char* mem);
    int load_model(const unsigned char* mem);
    // The same with the number of bytes that may be read, so that a short buffer is an error.
    int load_param(const unsigned char* mem, size_t size);
    int load_model(const unsigned char* mem, size_t size);

    // True if it runs: load_model has succeeded, or load_param has and no layer has weights.
    bool is_ready() const;

    // Unloads everything; registered layers stay registered.
    void clear();

    Extractor create_extractor() const;

    // Frees the memory that runs have left for the next ones, which will allocate it anew: for an
    // application that does not infer for a while. Any thread, also while Extractors run: what they
    // use stays.
    void release_buffers() const;
    // From now on new Extractors of this Net take the memory for their blobs from where those of
    // `other` do: nets that run in turn then need no more than the larger one. Those that run at
    // the same time get memory of their own. `other` may go first. Not while this Net has
    // Extractors.
    void share_buffers(const Net& other);

    // Blobs of Input layers, and blobs that no layer consumes, in file order.
    const std::vector<int>& input_indexes() const;
    const std::vector<int>& output_indexes() const;
    const std::vector<const char*>& input_names() const;
    const std::vector<const char*>& output_names() const;

    const std::vector<Blob>& blobs() const;
    const std::vector<Layer*>& layers() const;
    // To change parameters of layers and hints of blobs between load_param and load_model, and what
    // an application's own layers hold at any time while nothing runs. Layers must not be added,
    // deleted or connected otherwise.
    std::vector<Blob>& mutable_blobs();
    std::vector<Layer*>& mutable_layers();

    // The index of a blob or layer, -1 (with a message that suggests near names) if there is none.
    int find_blob_index_by_name(const char* name) const;
    int find_layer_index_by_name(const char* name) const;

protected:
    // New layers for the loaders, null if none is known: the one that was registered in place of a
    // built-in layer, which is asked for first, and the one for a type that is not built in; by name,
    // or by type index and position among the registered ones as binary params have them. A derived
    // class may make others, which are deleted.
    virtual Layer* create_overwrite_builtin_layer(const char* type);
    virtual Layer* create_custom_layer(const char* type);
    virtual Layer* create_overwrite_builtin_layer(int typeindex);
    virtual Layer* create_custom_layer(int index);

private:
    friend class Extractor;
    friend class Model;
    Net(const Net&);
    Net& operator=(const Net&);
    struct Private;
    Private* const d;
};

// For profilers, see Extractor::set_layer_observer. Called on the thread that runs the Extractor,
// around each layer's work and the conversions of its blobs; not for Input layers. It has to
// outlive the runs and, where several Extractors run at once, to be safe for that.
class LayerObserver {
public:
    virtual ~LayerObserver();
    // What the layer has decided for the sizes of its inputs; null where it has nothing to decide,
    // or these were not known beforehand.
    virtual void planned(const Layer& layer, const LayerPlan* plan);
    // How the plan lays out the blobs of the layer that comes next (src/plan/layout_plan.h); null
    // where it does not tell.
    virtual void laid_out(const Layer& layer, const StepLayout* layout);
    // A blob of the layer came in another layout than the plan says, and was dealt with as it is.
    virtual void unexpected(const Layer& layer, const char* what);
    // Before before(): a back end could run it, but that is not worth the copies.
    virtual void left_to_host(const Layer& layer);
    // Before before(): a back end runs it, by that name.
    virtual void runs_on(const Layer& layer, const char* backend);
    virtual void before(const Layer& layer) = 0;
    // outputs: as the layer made them. Not called for a layer that failed.
    virtual void after(const Layer& layer, const std::vector<Mat>& outputs) = 0;
};

// One inference: give the inputs, ask for blobs. Only the layers that an asked blob needs are run;
// results are kept, so that asking again, or asking for another blob, runs the rest only.
// For the next image make a new Extractor (it is cheap) or call clear(). Not for several threads at
// once; several Extractors of one Net are.
class Extractor {
public:
    virtual ~Extractor();
    Extractor(const Extractor& other);
    Extractor& operator=(const Extractor& other);

    // Forgets inputs and results.
    void clear();

    void set_light_mode(bool enable);
    void set_num_threads(int num_threads);
    // Accepted: the Net's Option::use_vulkan_compute decides. Programs written for ncnn of 2018 to
    // 2023 say so again here.
    void set_vulkan_compute(bool) {}
    void set_blob_allocator(Allocator* allocator);
    void set_workspace_allocator(Allocator* allocator);
    // For VkMats; null, the default: the device's own.
    void set_blob_vkallocator(VkAllocator* allocator);
    // Accepted: what regions work in is their own.
    void set_workspace_vkallocator(VkAllocator*) {}
    void set_staging_vkallocator(VkAllocator* allocator);
    // Told of every layer that runs from now on; null, the default: nobody, at no cost.
    void set_layer_observer(LayerObserver* observer);

    // 0, or a negative code after a message in the log. An input that is given after extract() counts
    // for what is computed from then on. A blob that was fused away can be given and extracted too:
    // it takes the Net unfused, whose weights are loaded a second time when one is first asked for
    // (see Net::keep_blob).
    int input(const char* blob_name, const Mat& in);
    int input(int blob_index, const Mat& in);
    // type 0: f32 for storage types, elempack 1. type 1: as the engine has it. A Mat of the right
    // size that nobody else refers to is written over; any other becomes a new one.
    int extract(const char* blob_name, Mat& feat, int type = 0);
    int extract(int blob_index, Mat& feat, int type = 0);

    // Blobs in the memory of a device (quoll/command.h): what one net leaves there another reads,
    // and nothing goes through the host but what layers without a form on the device read or make.
    // `feat` holds its values once `cmd` has run, which may still be recording what `in` will hold.
    // An Extractor with such an input may also be asked for a Mat; what makes `in` must have run
    // then. feat is of the type that the net keeps blobs as (f16 with use_fp16_storage).
    int input(const char* blob_name, const VkMat& in);
    int input(int blob_index, const VkMat& in);
    int extract(const char* blob_name, VkMat& feat, VkCompute& cmd);
    int extract(int blob_index, VkMat& feat, VkCompute& cmd);

protected:
    // For derived classes. Blobs are counted anew.
    explicit Extractor(const Net* net, size_t blob_count = 0);

private:
    friend class Net;
    struct Private;
    Private* d;  // null when there was no memory for it: all functions then say so
};

}  // namespace quoll

#endif
