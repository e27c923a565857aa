// Errors, allocators, options, nets and runs of quoll/c_api.h.
#include "c_api/objects.h"

#include <stdlib.h>
#include <string.h>

using namespace quoll;

// ---------------------------------------------------------------- errors

extern "C" const char* quoll_status_name(int status) {
    switch (status) {
        case QUOLL_OK:
            return "QUOLL_OK";
        case QUOLL_UNEXPECTED_NULL:
            return "QUOLL_UNEXPECTED_NULL";
        case QUOLL_BAD_STATE:
            return "QUOLL_BAD_STATE";
        case QUOLL_BAD_DATA:
            return "QUOLL_BAD_DATA";
        case QUOLL_OUT_OF_MEMORY:
            return "QUOLL_OUT_OF_MEMORY";
        default:
            return "QUOLL_ERROR";
    }
}

extern "C" const char* quoll_last_error(void) { return KeepErrors::last(); }
extern "C" void quoll_clear_error(void) { KeepErrors::last()[0] = 0; }
extern "C" const char* quoll_version(void) { return QUOLL_VERSION_STRING; }

extern "C" int quoll_version_number(void) {
    char* end;
    const long major = strtol(QUOLL_VERSION_STRING, &end, 10), minor = strtol(end + 1, &end, 10);
    return (int)(major * 10000 + minor * 100 + strtol(end + 1, &end, 10));
}

// ---------------------------------------------------------------- allocators

static void* default_malloc(quoll_allocator_t allocator, size_t size) {
    Allocator* const pool = static_cast<CAllocator*>(allocator)->pool.get();
    return pool ? pool->fastMalloc(size) : fast_malloc(size);
}

static void default_free(quoll_allocator_t allocator, void* ptr) {
    if (Allocator* const pool = static_cast<CAllocator*>(allocator)->pool.get())
        pool->fastFree(ptr);
    else
        fast_free(ptr);
}

static quoll_allocator_t make_allocator(const char* function, Allocator* (*make)()) {
    return run_api(function, (quoll_allocator_t) nullptr, [&]() -> quoll_allocator_t {
        std::unique_ptr<CAllocator> made(new CAllocator);
        made->pthis = nullptr;
        static_cast<quoll_allocator*>(made.get())->fast_malloc = default_malloc;
        static_cast<quoll_allocator*>(made.get())->fast_free = default_free;
        if (make) made->pool.reset(make());
        return made.release();
    });
}

extern "C" quoll_allocator_t quoll_allocator_create(void) {
    return make_allocator(__func__, nullptr);
}
extern "C" quoll_allocator_t quoll_allocator_create_pool_allocator(void) {
    return make_allocator(__func__, []() -> Allocator* { return new PoolAllocator; });
}
extern "C" quoll_allocator_t quoll_allocator_create_unlocked_pool_allocator(void) {
    return make_allocator(__func__, []() -> Allocator* { return new UnlockedPoolAllocator; });
}
extern "C" void quoll_allocator_destroy(quoll_allocator_t allocator) {
    delete static_cast<CAllocator*>(allocator);
}

// ---------------------------------------------------------------- pipelines of a GPU

extern "C" quoll_pipelinecache_t quoll_pipelinecache_create(int device_index) {
    return run_api(__func__, (quoll_pipelinecache_t) nullptr, [&]() -> quoll_pipelinecache_t {
        const VulkanDevice* device = get_gpu_device(device_index);
        return device ? reinterpret_cast<quoll_pipelinecache_t>(new PipelineCache(device))
                      : nullptr;
    });
}
extern "C" void quoll_pipelinecache_destroy(quoll_pipelinecache_t cache) { delete cache_of(cache); }
extern "C" size_t quoll_pipelinecache_get_size(const quoll_pipelinecache_t cache) {
    if (!cache) null_argument(__func__);
    return cache ? cache_of(cache)->size() : 0;
}
extern "C" void quoll_pipelinecache_clear(quoll_pipelinecache_t cache) {
    if (cache)
        cache_of(cache)->clear();
    else
        null_argument(__func__);
}
extern "C" int quoll_pipelinecache_load_memory(quoll_pipelinecache_t cache,
                                               const unsigned char* data, size_t size) {
    if (!cache || !data) return null_argument(__func__);
    return run_api(__func__, [&] { return cache_of(cache)->load_cache(data, size); });
}
#if QUOLL_STDIO
extern "C" int quoll_pipelinecache_load(quoll_pipelinecache_t cache, const char* path) {
    if (!cache || !path) return null_argument(__func__);
    return run_api(__func__, [&] { return cache_of(cache)->load_cache(path); });
}
#endif
extern "C" int quoll_pipelinecache_save_memory(const quoll_pipelinecache_t cache,
                                               unsigned char* data, size_t* size) {
    if (!cache || !size) return null_argument(__func__);
    return run_api(__func__, [&] {
        std::vector<unsigned char> bytes;
        QUOLL_RETURN_IF_ERROR(cache_of(cache)->save_cache(&bytes));
        const bool fits = data && *size >= bytes.size();
        if (fits)
            memcpy(data, bytes.data(), bytes.size());
        else if (data)
            QUOLL_LOGE("[quoll_pipelinecache_save_memory] %zu bytes, expected room for %zu", *size,
                       bytes.size());
        *size = bytes.size();
        return fits ? (int)kOk : (int)kError;
    });
}
#if QUOLL_STDIO
extern "C" int quoll_pipelinecache_save(const quoll_pipelinecache_t cache, const char* path) {
    if (!cache || !path) return null_argument(__func__);
    return run_api(__func__, [&] { return cache_of(cache)->save_cache(path); });
}
#endif

// ---------------------------------------------------------------- options

extern "C" quoll_option_t quoll_option_create(void) {
    return run_api(__func__, (quoll_option_t) nullptr, [] { return handle_of(new Option); });
}
extern "C" void quoll_option_destroy(quoll_option_t opt) { delete option_of(opt); }

extern "C" int quoll_option_get_num_threads(const quoll_option_t opt) {
    return opt ? option_of(opt)->num_threads : null_argument(__func__);
}
extern "C" void quoll_option_set_num_threads(quoll_option_t opt, int num_threads) {
    if (!opt) {
        null_argument(__func__);
    } else if (num_threads < 1) {
        bad_state(__func__, "expected at least 1 thread");
    } else {
        option_of(opt)->num_threads = num_threads;
    }
}
extern "C" void quoll_option_set_blob_allocator(quoll_option_t opt, quoll_allocator_t allocator) {
    if (opt)
        option_of(opt)->blob_allocator = allocator_of(allocator);
    else
        null_argument(__func__);
}
extern "C" void quoll_option_set_workspace_allocator(quoll_option_t opt,
                                                     quoll_allocator_t allocator) {
    if (opt)
        option_of(opt)->workspace_allocator = allocator_of(allocator);
    else
        null_argument(__func__);
}

extern "C" void quoll_option_set_pipeline_cache(quoll_option_t opt, quoll_pipelinecache_t cache) {
    if (opt)
        option_of(opt)->pipeline_cache = cache_of(cache);
    else
        null_argument(__func__);
}

#define QUOLL_C_SWITCH(name)                                                  \
    extern "C" int quoll_option_get_##name(const quoll_option_t opt) {        \
        return opt ? (int)option_of(opt)->name : null_argument(__func__);     \
    }                                                                         \
    extern "C" void quoll_option_set_##name(quoll_option_t opt, int enable) { \
        if (opt)                                                              \
            option_of(opt)->name = enable != 0;                               \
        else                                                                  \
            null_argument(__func__);                                          \
    }
QUOLL_C_SWITCH(use_vulkan_compute)
QUOLL_C_SWITCH(use_local_pool_allocator)
QUOLL_C_SWITCH(use_winograd_convolution)
QUOLL_C_SWITCH(use_sgemm_convolution)
QUOLL_C_SWITCH(use_packing_layout)
QUOLL_C_SWITCH(use_fp16_packed)
QUOLL_C_SWITCH(use_fp16_storage)
QUOLL_C_SWITCH(use_fp16_arithmetic)
QUOLL_C_SWITCH(use_int8_packed)
QUOLL_C_SWITCH(use_int8_storage)
QUOLL_C_SWITCH(use_int8_arithmetic)
QUOLL_C_SWITCH(use_int16_packed)
QUOLL_C_SWITCH(use_int16_storage)
QUOLL_C_SWITCH(use_bf16_packed)
QUOLL_C_SWITCH(use_bf16_storage)
QUOLL_C_SWITCH(use_shader_local_memory)
QUOLL_C_SWITCH(use_cooperative_matrix)
QUOLL_C_SWITCH(use_graph_fusion)
QUOLL_C_SWITCH(use_reference_layers)
QUOLL_C_SWITCH(check_finite)
QUOLL_C_SWITCH(lightmode)
#undef QUOLL_C_SWITCH

// ---------------------------------------------------------------- nets

extern "C" quoll_net_t quoll_net_create(void) {
    return run_api(__func__, (quoll_net_t) nullptr, []() -> quoll_net_t { return new CNet; });
}
extern "C" void quoll_net_destroy(quoll_net_t net) { delete net_of(net); }

extern "C" quoll_option_t quoll_net_get_option(quoll_net_t net) {
    if (!net) null_argument(__func__);
    return net ? handle_of(&net_of(net)->net.opt) : nullptr;
}
extern "C" void quoll_net_set_option(quoll_net_t net, quoll_option_t opt) {
    if (net && opt)
        net_of(net)->net.opt = *option_of(opt);
    else
        null_argument(__func__);
}
extern "C" void quoll_net_set_vulkan_device(quoll_net_t net, int device_index) {
    if (net)
        net_of(net)->net.set_vulkan_device(device_index);
    else
        null_argument(__func__);
}

static Layer* create_by_factory(void* userdata) {
    CLayerFactory* const factory = (CLayerFactory*)userdata;
    const quoll_layer_t made = factory->creator(factory->userdata);
    if (!made) return nullptr;
    factory->made[layer_of(made)] = made;
    return layer_of(made);
}

static void destroy_by_factory(Layer* layer, void* userdata) {
    CLayerFactory* const factory = (CLayerFactory*)userdata;
    const auto made = factory->made.find(layer);
    const quoll_layer_t handle = made->second;
    factory->made.erase(made);
    if (factory->destroyer)
        factory->destroyer(handle, factory->userdata);
    else
        quoll_layer_destroy(handle);
}

template <class Key>
static int register_layer(const char* function, quoll_net_t net, Key key,
                          quoll_layer_creator_t creator, quoll_layer_destroyer_t destroyer,
                          void* userdata) {
    if (!net || !creator) return null_argument(function);
    return run_api(function, [&] {
        CNet* const c = net_of(net);
        c->factories.push_back({creator, destroyer, userdata, {}});
        // The layer's userdata is its own.
        return c->net.register_custom_layer(key, create_by_factory, destroy_by_factory,
                                            &c->factories.back());
    });
}

extern "C" int quoll_net_register_custom_layer_by_type(quoll_net_t net, const char* type,
                                                       quoll_layer_creator_t creator,
                                                       quoll_layer_destroyer_t destroyer,
                                                       void* userdata) {
    if (!type) return null_argument(__func__);
    return register_layer(__func__, net, type, creator, destroyer, userdata);
}
extern "C" int quoll_net_register_custom_layer_by_typeindex(quoll_net_t net, int typeindex,
                                                            quoll_layer_creator_t creator,
                                                            quoll_layer_destroyer_t destroyer,
                                                            void* userdata) {
    return register_layer(__func__, net, typeindex, creator, destroyer, userdata);
}

static int loaded(int status) {
    return status == kOk || status == kOutOfMemory ? status : (int)QUOLL_BAD_DATA;
}

template <class F>
static int load_graph(const char* function, quoll_net_t net, const void* from, const F& load) {
    if (!net || !from) return null_argument(function);
    net_of(net)->has_weights = false;
    return run_api(function, [&] { return loaded(load(net_of(net)->net)); });
}

#if QUOLL_STDIO
extern "C" int quoll_net_load_param(quoll_net_t net, const char* path) {
    return load_graph(__func__, net, path, [&](Net& n) { return n.load_param(path); });
}
extern "C" int quoll_net_load_param_bin(quoll_net_t net, const char* path) {
    return load_graph(__func__, net, path, [&](Net& n) { return n.load_param_bin(path); });
}
extern "C" int quoll_net_load_param_memory(quoll_net_t net, const char* text) {
    return load_graph(__func__, net, text, [&](Net& n) { return n.load_param_mem(text); });
}
#endif
extern "C" int quoll_net_load_param_datareader(quoll_net_t net, const quoll_datareader_t dr) {
    return load_graph(__func__, net, dr, [&](Net& n) {
        return n.load_param(static_cast<CDataReader*>(dr)->reader());
    });
}
extern "C" int quoll_net_load_param_bin_datareader(quoll_net_t net, const quoll_datareader_t dr) {
    return load_graph(__func__, net, dr, [&](Net& n) {
        return n.load_param_bin(static_cast<CDataReader*>(dr)->reader());
    });
}

template <class F>
static int load_weights(const char* function, quoll_net_t net, const void* from, const F& load) {
    if (!net || !from) return null_argument(function);
    CNet* const c = net_of(net);
    if (c->net.layers().empty())
        return bad_state(function, "load_param has to come first, and to succeed");
    if (c->has_weights) return bad_state(function, "the weights are already loaded");
    const int status = run_api(function, [&] { return loaded(load(c->net)); });
    c->has_weights = status == kOk;
    return status;
}

#if QUOLL_STDIO
extern "C" int quoll_net_load_model(quoll_net_t net, const char* path) {
    return load_weights(__func__, net, path, [&](Net& n) { return n.load_model(path); });
}
#endif
extern "C" int quoll_net_load_model_datareader(quoll_net_t net, const quoll_datareader_t dr) {
    return load_weights(__func__, net, dr, [&](Net& n) {
        return n.load_model(static_cast<CDataReader*>(dr)->reader());
    });
}

extern "C" size_t quoll_net_load_param_bin_memory(quoll_net_t net, const unsigned char* mem) {
    size_t count = 0;
    load_graph(__func__, net, mem, [&](Net& n) {
        count = (size_t)n.load_param(mem);
        return count ? (int)kOk : (int)kError;
    });
    return count;
}
extern "C" size_t quoll_net_load_model_memory(quoll_net_t net, const unsigned char* mem) {
    size_t count = 0;
    load_weights(__func__, net, mem, [&](Net& n) {
        count = (size_t)n.load_model(mem);
        return count ? (int)kOk : (int)kError;
    });
    return count;
}

extern "C" int quoll_net_keep_blob(quoll_net_t net, const char* name) {
    if (!net || !name) return null_argument(__func__);
    return run_api(__func__, [&] { return net_of(net)->net.keep_blob(name); });
}
extern "C" void quoll_net_clear(quoll_net_t net) {
    if (!net) return;
    net_of(net)->net.clear();
    net_of(net)->has_weights = false;
}

static const Net& checked(quoll_net_t net, const char* function) {
    static const Net empty;
    if (!net) null_argument(function);
    return net ? net_of(net)->net : empty;
}
template <class T>
static T item(const std::vector<T>& list, int i, T none) {
    return i >= 0 && (size_t)i < list.size() ? list[i] : none;
}

extern "C" int quoll_net_get_input_count(const quoll_net_t net) {
    return (int)checked(net, __func__).input_indexes().size();
}
extern "C" int quoll_net_get_output_count(const quoll_net_t net) {
    return (int)checked(net, __func__).output_indexes().size();
}
extern "C" const char* quoll_net_get_input_name(const quoll_net_t net, int i) {
    return item(checked(net, __func__).input_names(), i, (const char*)nullptr);
}
extern "C" const char* quoll_net_get_output_name(const quoll_net_t net, int i) {
    return item(checked(net, __func__).output_names(), i, (const char*)nullptr);
}
extern "C" int quoll_net_get_input_index(const quoll_net_t net, int i) {
    return item(checked(net, __func__).input_indexes(), i, -1);
}
extern "C" int quoll_net_get_output_index(const quoll_net_t net, int i) {
    return item(checked(net, __func__).output_indexes(), i, -1);
}
extern "C" int quoll_net_get_blob_count(const quoll_net_t net) {
    return (int)checked(net, __func__).blobs().size();
}
extern "C" quoll_blob_t quoll_net_get_blob(const quoll_net_t net, int i) {
    const std::vector<Blob>& blobs = checked(net, __func__).blobs();
    if (i < 0 || (size_t)i >= blobs.size()) return nullptr;
    return reinterpret_cast<quoll_blob_t>(const_cast<Blob*>(&blobs[i]));
}

static const Blob& checked(quoll_blob_t blob, const char* function) {
    static const Blob empty;
    if (!blob) null_argument(function);
    return blob ? *reinterpret_cast<Blob*>(blob) : empty;
}
extern "C" const char* quoll_blob_get_name(const quoll_blob_t blob) {
    return checked(blob, __func__).name.c_str();
}
extern "C" int quoll_blob_get_producer(const quoll_blob_t blob) {
    return checked(blob, __func__).producer;
}
extern "C" int quoll_blob_get_consumer(const quoll_blob_t blob) {
    return checked(blob, __func__).consumer;
}
extern "C" void quoll_blob_get_shape(const quoll_blob_t blob, int* dims, int* w, int* h, int* c) {
    const Mat& shape = checked(blob, __func__).shape;
    if (dims) *dims = shape.dims;
    if (w) *w = shape.w;
    if (h) *h = shape.h;
    if (c) *c = shape.c;
}

// ---------------------------------------------------------------- runs

static CExtractor* extractor_of(quoll_extractor_t ex) { return reinterpret_cast<CExtractor*>(ex); }

extern "C" quoll_extractor_t quoll_extractor_create(quoll_net_t net) {
    if (!net) null_argument(__func__);
    if (!net) return nullptr;
    return run_api(__func__, (quoll_extractor_t) nullptr, [&] {
        const Net& from = net_of(net)->net;
        return reinterpret_cast<quoll_extractor_t>(new CExtractor{&from, from.create_extractor()});
    });
}
extern "C" void quoll_extractor_destroy(quoll_extractor_t ex) { delete extractor_of(ex); }

extern "C" void quoll_extractor_set_option(quoll_extractor_t ex, const quoll_option_t opt) {
    if (!ex || !opt) {
        null_argument(__func__);
        return;
    }
    const Option& o = *option_of(opt);
    Extractor& run = extractor_of(ex)->run;
    run.set_num_threads(o.num_threads);
    run.set_light_mode(o.lightmode);
    run.set_blob_allocator(o.blob_allocator);
    run.set_workspace_allocator(o.workspace_allocator);
}

template <class Key>
static int give(const char* function, quoll_extractor_t ex, Key blob, quoll_mat_t mat) {
    if (!ex || !mat) return null_argument(function);
    if (!extractor_of(ex)->net->is_ready()) return bad_state(function, "the net has no model");
    return run_api(function, [&] { return extractor_of(ex)->run.input(blob, *mat_of(mat)); });
}
template <class Key>
static int take(const char* function, quoll_extractor_t ex, Key blob, quoll_mat_t* mat) {
    if (!ex || !mat) return null_argument(function);
    if (!extractor_of(ex)->net->is_ready()) return bad_state(function, "the net has no model");
    return run_api(function, [&] {
        std::unique_ptr<Mat> made(new Mat);
        QUOLL_RETURN_IF_ERROR(extractor_of(ex)->run.extract(blob, *made));
        *mat = handle_of(made.release());
        return (int)kOk;
    });
}

extern "C" int quoll_extractor_input(quoll_extractor_t ex, const char* name,
                                     const quoll_mat_t mat) {
    return name ? give(__func__, ex, name, mat) : null_argument(__func__);
}
extern "C" int quoll_extractor_input_index(quoll_extractor_t ex, int index, const quoll_mat_t mat) {
    return give(__func__, ex, index, mat);
}
extern "C" int quoll_extractor_extract(quoll_extractor_t ex, const char* name, quoll_mat_t* mat) {
    return name ? take(__func__, ex, name, mat) : null_argument(__func__);
}
extern "C" int quoll_extractor_extract_index(quoll_extractor_t ex, int index, quoll_mat_t* mat) {
    return take(__func__, ex, index, mat);
}
