#include <string.h>

#include "layer/control/memorydata.h"
#include "net/net_private.h"
#include "plan/executor.h"
#include "quoll/cpu.h"
#include "quoll/log.h"
#include "runtime/exceptions.h"

namespace quoll {

struct Extractor::Private {
    const Net* net;
    std::shared_ptr<RunBuffers> buffers;  // before the blobs that lie in it
    bool extracted = false;
    Executor run;

    explicit Private(const Net* n)
        : net(n), buffers(n->d->buffers), run(*n->d, n->d->plans, buffers.get(), options(*n)) {}
    static Option options(const Net& net) {
        Option opt = net.opt;
        if (!opt.blob_allocator) opt.blob_allocator = &net.d->buffers->pool;
        if (!opt.workspace_allocator) opt.workspace_allocator = &net.d->buffers->pool;
        return opt;
    }
    template <class From>
    static Private* make(const From& from);
    int check_blob(int index, const char* what) const;
    int input(int index, const Mat& in);
    int extract(int index, Mat& feat, int type);
};

Extractor Net::create_extractor() const { return Extractor(this); }

// Null when there was no memory for it.
template <class From>
Extractor::Private* Extractor::Private::make(const From& from) {
    return catch_no_memory("Extractor", (Private*)nullptr, [&] { return new Private(from); });
}

Extractor::Extractor(const Net* net) : d(Private::make(net)) {}
Extractor::Extractor(const Extractor& other) : d(other.d ? Private::make(*other.d) : nullptr) {}
Extractor& Extractor::operator=(const Extractor& other) {
    if (this == &other) return *this;
    delete d;
    d = other.d ? Private::make(*other.d) : nullptr;
    return *this;
}
Extractor::~Extractor() { delete d; }

void Extractor::clear() {
    if (!d) return;
    d->run.reset();
    d->extracted = false;
}
void Extractor::set_light_mode(bool enable) {
    if (d) d->run.opt.lightmode = enable;
}
void Extractor::set_num_threads(int num_threads) {
    if (!d) return;
    if (num_threads < 1) {
        QUOLL_LOGE("[Extractor] set_num_threads: expected at least 1, got %d", num_threads);
        return;
    }
    d->run.opt.num_threads = num_threads;
}
void Extractor::set_blob_allocator(Allocator* allocator) {
    if (d) d->run.opt.blob_allocator = allocator ? allocator : &d->buffers->pool;
}
void Extractor::set_workspace_allocator(Allocator* allocator) {
    if (d) d->run.opt.workspace_allocator = allocator ? allocator : &d->buffers->pool;
}

void Extractor::set_layer_observer(LayerObserver* observer) {
    if (d) d->run.observer = observer;
}

int Extractor::Private::check_blob(int index, const char* what) const {
    if (!net->d->weights_loaded) {
        QUOLL_LOGE(
            "[Extractor] %s: the Net has no model: load_param and load_model have to succeed first",
            what);
        return kError;
    }
    if (run.blobs.size() != net->d->blobs.size() || run.has_run.size() != net->d->layers.size()) {
        QUOLL_LOGE("[Extractor] %s: the Net was loaded anew after this Extractor was created",
                   what);
        return kError;
    }
    const bool exists = index >= 0 && (size_t)index < run.blobs.size();
    const bool fused = exists && net->d->alias[index] != index;
    if (exists && !fused && net->d->blobs[index].producer >= 0) return kOk;
    if (fused) {
        QUOLL_LOGE(
            "[Extractor] %s: blob '%s' (%d) was fused away: call net.keep_blob(\"%s\") before "
            "load_model, or set net.opt.use_graph_fusion = false",
            what, net->d->blobs[index].name.c_str(), index, net->d->blobs[index].name.c_str());
        return kError;
    }
    QUOLL_LOGE("[Extractor] %s: blob index %d, expected 0 to %d", what, index,
               (int)run.blobs.size() - 1);
    return kError;
}

int Extractor::input(const char* blob_name, const Mat& in) {
    if (!d) return kOutOfMemory;
    QUOLL_RETURN_IF_ERROR(d->net->d->weights_loaded ? 0 : d->check_blob(0, "input"));
    const int index = d->net->find_blob_index_by_name(blob_name);
    return index < 0 ? (int)kError : input(index, in);
}

int Extractor::input(int index, const Mat& in) {
    return d ? d->input(index, in) : (int)kOutOfMemory;
}

int Extractor::Private::input(int index, const Mat& in) {
    QUOLL_RETURN_IF_ERROR(check_blob(index, "input"));
    const char* name = net->d->blobs[index].name.c_str();
    // One with an axis of size 0 has no values, but sizes.
    if (in.empty() && (in.dims == 0 || in.logical_shape().total() != 0)) {
        QUOLL_LOGE("[Extractor] input '%s' (%d): the Mat is empty", name, index);
        return kError;
    }
    if (extracted) {
        QUOLL_LOGE(
            "[Extractor] input '%s' (%d): this Extractor has already run; create a new one for the "
            "next image, or call clear()",
            name, index);
        return kError;
    }
    run.blobs[index] = in;
    run.is_input[index] = 1;
    return kOk;
}

int Extractor::extract(const char* blob_name, Mat& feat, int type) {
    if (!d) return kOutOfMemory;
    QUOLL_RETURN_IF_ERROR(d->net->d->weights_loaded ? 0 : d->check_blob(0, "extract"));
    const int index = d->net->find_blob_index_by_name(blob_name);
    return index < 0 ? (int)kError : extract(index, feat, type);
}

// Denormals slow kernels down by two orders of magnitude: flushed while layers run. Workers take
// over the mode of the thread that they work for.
namespace {
class DenormalGuard {
public:
    explicit DenormalGuard(const Option& opt) : old_(get_flush_denormals()) {
        set_flush_denormals(opt.flush_denormals);
    }
    ~DenormalGuard() { set_flush_denormals(old_); }

private:
    const int old_;
};
}  // namespace

// Into the Mat that the last run filled, where it fits and is nobody else's.
static void copy_out(const Mat& blob, Mat* feat) {
    const bool reusable =
        feat->refcount && feat->refcount->load() == 1 && feat->allocator != blob.allocator &&
        feat->data != blob.data && feat->dtype == blob.dtype && feat->elempack == blob.elempack &&
        feat->cstep == blob.cstep && feat->logical_shape() == blob.logical_shape();
    if (reusable)
        memcpy(feat->data, blob.data, blob.total() * blob.elemsize);
    else
        *feat = blob.clone();
}

// True for a weight that is a blob, or a part of one.
static bool is_constant(const std::vector<Layer*>& layers, const Mat& blob) {
    for (const Layer* layer : layers) {
        const MemoryData* constant = as<MemoryData>(layer);
        if (!constant) continue;
        const Mat& value = constant->value();
        const char *begin = (const char*)value.data, *at = (const char*)blob.data;
        if (at >= begin && at < begin + value.total() * value.elemsize) return true;
    }
    return false;
}

int Extractor::extract(int index, Mat& feat, int type) {
    if (!d) return kOutOfMemory;
    return catch_no_memory("Extractor", [&] { return d->extract(index, feat, type); });
}

int Extractor::Private::extract(int index, Mat& feat, int type) {
    // A blob that was left out because it equals another.
    if (index >= 0 && (size_t)index < net->d->alias.size() && net->d->alias[index] >= 0)
        index = net->d->alias[index];
    QUOLL_RETURN_IF_ERROR(check_blob(index, "extract"));
    extracted = true;
    if (run.blobs[index].dims == 0) {
        DenormalGuard guard(run.opt);
        set_kmp_blocktime(run.opt.openmp_blocktime);
        QUOLL_RETURN_IF_ERROR(run.run(index));
    }
    Mat blob = run.blobs[index];
    if (blob.empty()) {  // as a detection layer that found nothing
        feat = blob;
        if (type == 0) widen_empty(&feat);
        return kOk;
    }
    Option opt = run.opt;
    if (opt.blob_allocator != &buffers->pool) opt.blob_allocator = 0;
    if (type == 0 && is_storage_type(blob.dtype)) {
        Mat wide;
        widen_storage(blob, &wide, opt);
        blob = wide;
    }
    if (type == 0 && blob.elempack != 1) {
        Mat planar;
        convert_packing(blob, planar, 1, opt);
        blob = planar;
    }
    // What the user keeps must not sit in the Net's buffers; what the user may change is no weight.
    if (!buffers->owns(blob.allocator) && !is_constant(net->d->layers, blob))
        feat = blob;
    else
        copy_out(blob, &feat);
    return feat.empty() ? (int)kOutOfMemory : (int)kOk;
}

}  // namespace quoll
