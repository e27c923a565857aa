// The objects behind the handles of quoll/c_api.h, and how its functions return.
#ifndef QUOLL_C_API_OBJECTS_H
#define QUOLL_C_API_OBJECTS_H

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "quoll/c_api.h"
#include "quoll/datareader.h"
#include "quoll/gpu.h"
#include "quoll/log.h"
#include "quoll/net.h"
#include "runtime/exceptions.h"
#include "runtime/log_mute.h"

namespace quoll {

// The structs that C programs see, with what is behind them.
struct CAllocator : quoll_allocator, Allocator {
    std::unique_ptr<Allocator> pool;  // null: the system's memory
    void* fastMalloc(size_t size) override { return fast_malloc(this, size); }
    void fastFree(void* ptr) override { fast_free(this, ptr); }
};

struct CDataReader : quoll_datareader, DataReader {
    std::unique_ptr<DataReader> from;  // null: the program's functions alone
    int scan(const char* format, void* p) const override;
    size_t read(void* buf, size_t size) const override;
    // `from`, unless the program has put functions of its own in its place.
    const DataReader& reader() const;
};

struct CModelBin : quoll_modelbin, ModelBin {
    explicit CModelBin(const ModelBin* from);
    using ModelBin::load;
    Mat load(int w, int type) const override;
    const ModelBin* from;
    std::unique_ptr<ModelBin> owned;
    std::vector<Mat> weights;  // that `owned` hands out
};

struct CLayer : quoll_layer {
    std::unique_ptr<Layer> layer;
    // Which steps of a built-in layer have succeeded; they have to be called in this order.
    enum Stage { kMade, kHasParams, kHasWeights, kReady } stage = kMade;
};

// A creator of layers that was registered with a Net.
struct CLayerFactory {
    quoll_layer_creator_t creator;
    quoll_layer_destroyer_t destroyer;
    void* userdata;
    std::map<Layer*, quoll_layer_t> made;
};

struct CNet : quoll_net {
    CNet() { pthis = &net; }
    std::deque<CLayerFactory> factories;
    bool has_weights = false;  // load_model has succeeded
    Net net;
};

struct CExtractor {
    const Net* net;
    Extractor run;
};

inline Mat* mat_of(quoll_mat_t mat) { return reinterpret_cast<Mat*>(mat); }
inline quoll_mat_t handle_of(const Mat* mat) {
    return reinterpret_cast<quoll_mat_t>(const_cast<Mat*>(mat));
}
inline Option* option_of(quoll_option_t opt) { return reinterpret_cast<Option*>(opt); }
inline quoll_option_t handle_of(const Option* opt) {
    return reinterpret_cast<quoll_option_t>(const_cast<Option*>(opt));
}
inline PipelineCache* cache_of(quoll_pipelinecache_t cache) {
    return reinterpret_cast<PipelineCache*>(cache);
}
inline ParamDict* params_of(quoll_paramdict_t pd) { return reinterpret_cast<ParamDict*>(pd); }
inline CNet* net_of(quoll_net_t net) { return static_cast<CNet*>(net); }
inline Allocator* allocator_of(quoll_allocator_t allocator) {
    return static_cast<CAllocator*>(allocator);
}
inline Layer* layer_of(quoll_layer_t layer) { return static_cast<CLayer*>(layer)->layer.get(); }
// The C++ options; for null, the defaults.
inline Option options_of(quoll_option_t opt) { return opt ? *option_of(opt) : Option(); }

// A new Mat of the caller's; null, after a message, for an empty one.
quoll_mat_t new_mat(const Mat& mat, const char* function);

// Runs f, which returns a number or a handle, for a function of the API: its errors are kept for
// quoll_last_error, and no exception leaves it.
template <class R, class F>
R run_api(const char* function, R failed, const F& f) {
    KeepErrors keep;
    return catch_no_memory(function, failed, f);
}
template <class F>
int run_api(const char* function, const F& f) {
    return run_api(function, (int)QUOLL_OUT_OF_MEMORY, f);
}

// After a message.
inline int null_argument(const char* function) {
    KeepErrors keep;
    QUOLL_LOGE("[%s] an argument is NULL that must not be", function);
    return QUOLL_UNEXPECTED_NULL;
}
inline int bad_state(const char* function, const char* why) {
    KeepErrors keep;
    QUOLL_LOGE("[%s] %s", function, why);
    return QUOLL_BAD_STATE;
}

}  // namespace quoll

#endif
