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

// A loaded model. Loading and clear() are for one thread; any number of threads may create and run
// Extractors. All loaders return 0, or a negative code after a message in the log; a loader that
// fails leaves the Net empty.
class Net {
public:
    Net();
    virtual ~Net();

    // Set before loading.
    Option opt;

    // Registers a layer type, or replaces a built-in one. To be called before load_param.
    int register_custom_layer(const char* type, layer_creator_func creator,
                              layer_destroyer_func destroyer = 0, void* userdata = 0);
    // The same by type index, as in binary params: kCustomLayerBit | i is custom layer i; i alone
    // is custom layer i and also replaces built-in layer i, in text params too. Built-in layers
    // from index 256 on, which ncnn lacks, can be replaced by name only.
    int register_custom_layer(int index, layer_creator_func creator,
                              layer_destroyer_func destroyer = 0, void* userdata = 0);
    // The position of a type among the registered layers, -1 if it is not registered.
    virtual int custom_layer_to_index(const char* type);

    // Adds a back end (quoll/backend.h), which is asked after those that were added before it; the
    // CPU runs what none of them supports. One object serves one Net. To be called before
    // load_model; it stays when the Net is cleared. The interface is not stable yet.
    void add_backend(const std::shared_ptr<Backend>& backend);
    // The device for Option::use_vulkan_compute, by its number in quoll/gpu.h; the default is
    // Option::vulkan_device_index, else get_default_gpu_index(). To be called before load_model.
    void set_vulkan_device(int device_index);
    void set_vulkan_device(const VulkanDevice* vkdev);
    // That device, from get_gpu_device(); null if there is none, or if the Net uses none.
    const VulkanDevice* vulkan_device() const;

    // Loads the graph, from text or binary form: from a reader, a file at its current position
    // (which is left right behind the model, so that several can follow one another), a path, or a
    // string.
    int load_param(const DataReader& dr);
    int load_param_bin(const DataReader& dr);
    // Called between load_param and load_model: this blob will be given as input or extracted, so
    // no layer may be fused across it (see Option::use_graph_fusion). It can be without this call
    // too, but then the net is loaded a second time.
    int keep_blob(const char* name);
    int keep_blob(int index);
    // Loads the weights, in the order of the layers, fuses layers and prepares them. A net whose
    // layers have no weights runs without this call. A path has to hold these weights and nothing
    // else: bytes that are left over are an error, and so are weights that belong to another param
    // (if both files say so, as those written by this engine's programs do). A reader, a FILE or
    // memory may go on behind the weights.
    int load_model(const DataReader& dr);
#if QUOLL_STDIO
    int load_param(FILE* fp);
    int load_param(const char* path);
    int load_param_mem(const char* text);
    int load_param_bin(FILE* fp);
    int load_param_bin(const char* path);
    int load_model(FILE* fp);
    // A process that wants to write to the file has to wait until loading is over; then the file
    // may change or be deleted. (Only a blob that was fused away is computed from it again when it
    // is first asked for.)
    int load_model(const char* path);
#endif
#if defined(__ANDROID__)
    // An asset from its current position, which the caller closes; or one by its name: an error if
    // there is none. Weights are copied. Link `android`.
    int load_param(AAsset* asset);
    int load_param_bin(AAsset* asset);
    int load_model(AAsset* asset);
    int load_param(AAssetManager* assets, const char* name);
    int load_param_bin(AAssetManager* assets, const char* name);
    int load_model(AAssetManager* assets, const char* name);
#endif
    // From memory that is 4-byte aligned. These return the number of bytes consumed, 0 on failure.
    // Weights are used in place: the memory must outlive the Net.
    int load_param(const unsigned char* mem);
    int load_model(const unsigned char* mem);
    // The same with the number of bytes that may be read, so that a buffer that is too short is an
    // error.
    int load_param(const unsigned char* mem, size_t size);
    int load_model(const unsigned char* mem, size_t size);

    // True if it can run: load_model has succeeded, or load_param has and no layer has weights.
    bool is_ready() const;

    // Unloads everything; registered layers stay registered.
    void clear();

    Extractor create_extractor() const;

    // Frees the memory that runs have left for the next ones, which will allocate it anew: for an
    // application that does not run inferences for a while. Any thread may call it, also while
    // Extractors run: what they use stays.
    void release_buffers() const;
    // From now on, new Extractors of this Net take memory for their blobs from the same place as
    // those of `other`: nets that run in turn then need no more than the larger one. Those that run
    // at the same time get memory of their own. `other` may be destroyed first. Not to be called
    // while this Net has Extractors.
    void share_buffers(const Net& other);

    // Blobs of Input layers, and blobs that no layer consumes, in file order.
    const std::vector<int>& input_indexes() const;
    const std::vector<int>& output_indexes() const;
    const std::vector<const char*>& input_names() const;
    const std::vector<const char*>& output_names() const;

    const std::vector<Blob>& blobs() const;
    const std::vector<Layer*>& layers() const;
    // For changing parameters of layers and hints of blobs between load_param and load_model, and
    // what an application's own layers hold at any time while nothing runs. Layers must not be
    // added, deleted or reconnected.
    std::vector<Blob>& mutable_blobs();
    std::vector<Layer*>& mutable_layers();

    // The index of a blob or layer, -1 (with a message that suggests near names) if there is none.
    int find_blob_index_by_name(const char* name) const;
    int find_layer_index_by_name(const char* name) const;

protected:
    // New layers for the loaders, null if none is registered. The first kind replaces a built-in
    // layer and is asked for first; the second is for types that are not built in. By name, or, for
    // binary params, by type index and by position among the registered layers. A derived class may
    // make others; the Net deletes them.
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
// outlive the runs, and to be thread-safe if several Extractors run at once.
class LayerObserver {
public:
    virtual ~LayerObserver();
    // What the layer has decided for the sizes of its inputs; null if it has nothing to decide, or
    // if the sizes were not known beforehand.
    virtual void planned(const Layer& layer, const LayerPlan* plan);
    // How the plan lays out the blobs of the layer that comes next (src/plan/layout_plan.h); null
    // if it does not say.
    virtual void laid_out(const Layer& layer, const StepLayout* layout);
    // A blob of the layer came in another layout than planned, and was handled as it is.
    virtual void unexpected(const Layer& layer, const char* what);
    // Called before before(): a back end could run the layer, but that is not worth the copies.
    virtual void left_to_host(const Layer& layer);
    // Called before before(): the back end of that name runs the layer.
    virtual void runs_on(const Layer& layer, const char* backend);
    virtual void before(const Layer& layer) = 0;
    // outputs: as the layer made them. Not called for a layer that failed.
    virtual void after(const Layer& layer, const std::vector<Mat>& outputs) = 0;
};

// One inference: give the inputs, then ask for blobs. Only the layers that these blobs need are
// run; results are kept, so that asking again, or for another blob, only runs the rest. For the
// next image make a new Extractor (it is cheap) or call clear(). An Extractor is for one thread at
// a time; several Extractors of one Net may run at once.
class Extractor {
public:
    virtual ~Extractor();
    Extractor(const Extractor& other);
    Extractor& operator=(const Extractor& other);

    // Forgets inputs and results.
    void clear();

    void set_light_mode(bool enable);
    void set_num_threads(int num_threads);
    // Accepted without effect: the Net's Option::use_vulkan_compute decides. Programs written for
    // ncnn of 2018 to 2023 call it.
    void set_vulkan_compute(bool) {}
    void set_blob_allocator(Allocator* allocator);
    void set_workspace_allocator(Allocator* allocator);
    // For VkMats; null, the default: the device's own.
    void set_blob_vkallocator(VkAllocator* allocator);
    // Accepted without effect: regions have working memory of their own.
    void set_workspace_vkallocator(VkAllocator*) {}
    void set_staging_vkallocator(VkAllocator* allocator);
    // Will be told of every layer that runs from now on; null, the default: nobody, at no cost.
    void set_layer_observer(LayerObserver* observer);

    // Return 0, or a negative code after a message in the log. An input that is given after
    // extract() counts for what is computed from then on. A blob that was fused away can be given
    // and extracted, too: the Net is then loaded a second time without fusion, when such a blob is
    // first asked for (see Net::keep_blob).
    int input(const char* blob_name, const Mat& in);
    int input(int blob_index, const Mat& in);
    // type 0: as f32 if it is stored in 16 bits, with elempack 1. type 1: as the engine has it. If
    // feat has the right size and nobody else refers to its memory, it is written over; otherwise
    // it becomes a new Mat.
    int extract(const char* blob_name, Mat& feat, int type = 0);
    int extract(int blob_index, Mat& feat, int type = 0);

    // Blobs in the memory of a device (quoll/command.h): one net leaves them there, another reads
    // them. Nothing goes through the host except what layers without a form on the device read or
    // make. `feat` holds its values once `cmd` has run; what `in` will hold may still be being
    // recorded in the same `cmd`. An Extractor with such an input may also be asked for a Mat;
    // whatever makes `in` must have run then. feat has the type in which the net keeps blobs (f16
    // with use_fp16_storage).
    int input(const char* blob_name, const VkMat& in);
    int input(int blob_index, const VkMat& in);
    int extract(const char* blob_name, VkMat& feat, VkCompute& cmd);
    int extract(int blob_index, VkMat& feat, VkCompute& cmd);

protected:
    // For derived classes. blob_count is ignored: the blobs are counted anew.
    explicit Extractor(const Net* net, size_t blob_count = 0);

private:
    friend class Net;
    struct Private;
    Private* d;  // null when there was no memory for it: all functions then say so
};

}  // namespace quoll

#endif
