#include <string.h>

#include "layer/control/memorydata.h"
#include "net/net_private.h"
#include "plan/executor.h"
#include "quoll/command.h"
#include "quoll/cpu.h"
#include "quoll/log.h"
#include "runtime/exceptions.h"
#include "runtime/ref_count.h"

namespace quoll {

struct Extractor::Private {
    const Net* net;
    std::shared_ptr<RunBuffers> buffers;  // before the blobs that lie in it
    // The unfused net, once a blob that was fused away has been asked for.
    std::shared_ptr<Net::Private> unfused;
    // The net with its weights on the host, once a layer has to run there.
    std::shared_ptr<Net::Private> on_host;
    Executor run;

    explicit Private(const Net* n)
        : net(n), buffers(n->d->buffers), run(*n->d, n->d->plans, buffers.get(), options(*n)) {}
    static Option options(const Net& net) {
        Option opt = net.opt;
        Allocator* const pool = opt.use_local_pool_allocator ? &net.d->buffers->pool : nullptr;
        opt.use_growing_cache = opt.use_growing_cache && !opt.blob_allocator;
        if (!opt.blob_allocator) opt.blob_allocator = pool;
        if (!opt.workspace_allocator) opt.workspace_allocator = pool;
        return opt;
    }
    template <class From>
    static Private* make(const From& from);
    int check_loaded(const char* what) const;
    int check_blob(int index, const char* what, bool given = false);
    void run_on(Net::Private& graph);
    int go_to_host();
    int blob_of_name(const char* name, const char* what) const;
    int input(int index, const Mat& in);
    int input(int index, const VkMat& in);
    int compute(int* index, VkCompute* commands);
    int extract(int index, Mat& feat, int type);
    int extract(int index, VkMat& feat, VkCompute& commands);
};

Extractor Net::create_extractor() const { return Extractor(this); }

// Null if there is no memory for it.
template <class From>
Extractor::Private* Extractor::Private::make(const From& from) {
    return catch_no_memory("Extractor", (Private*)nullptr, [&] { return new Private(from); });
}

Extractor::Extractor(const Net* net, size_t) : d(Private::make(net)) {}
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
    if (d->unfused || d->on_host) {
        d->unfused.reset();
        d->on_host.reset();
        d->run_on(*d->net->d);
    }
    d->run.reset();
}

// Starts anew on this graph, with the inputs that were given.
void Extractor::Private::run_on(Net::Private& graph) {
    Executor next(graph, graph.plans, buffers.get(), run.opt);
    next.observer = run.observer;
    for (size_t i = 0; i < run.blobs.size() && i < next.blobs.size(); i++)
        if (run.is_input[i]) next.blobs[i] = run.blobs[i], next.is_input[i] = 1;
    for (const auto& given : run.device_blobs)
        if (run.is_input[given.first]) next.set_device_blob(given.first, given.second);
    run = next;
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
    if (!d) return;
    const Option opt = Private::options(*d->net);
    d->run.opt.blob_allocator = allocator ? allocator : opt.blob_allocator;
    d->run.opt.use_growing_cache = !allocator && opt.use_growing_cache;
}
void Extractor::set_workspace_allocator(Allocator* allocator) {
    if (d)
        d->run.opt.workspace_allocator =
            allocator ? allocator : Private::options(*d->net).workspace_allocator;
}
void Extractor::set_blob_vkallocator(VkAllocator* allocator) {
    if (d) d->run.opt.blob_vkallocator = allocator;
}
void Extractor::set_staging_vkallocator(VkAllocator* allocator) {
    if (d) d->run.opt.staging_vkallocator = allocator;
}
void Extractor::set_layer_observer(LayerObserver* observer) {
    if (d) d->run.observer = observer;
}

int Extractor::Private::check_loaded(const char* what) const {
    if (net->d->is_ready(net->opt)) return kOk;
    QUOLL_LOGE(
        "[Extractor] %s: the Net has no model: load_param and load_model have to succeed first",
        what);
    return kError;
}

// Switches to the unfused net if it has to.
int Extractor::Private::check_blob(int index, const char* what, bool given) {
    QUOLL_RETURN_IF_ERROR(check_loaded(what));
    if (run.blobs.size() != net->d->blobs.size() || run.has_run.size() != net->d->layers.size() ||
        (unfused && unfused != net->d->unfused) || (on_host && on_host != net->d->on_host)) {
        QUOLL_LOGE("[Extractor] %s: the Net was loaded anew after this Extractor was created",
                   what);
        return kError;
    }
    const bool exists = index >= 0 && (size_t)index < run.blobs.size();
    const bool fused = exists && !unfused && net->d->is_fused_away(index, given);
    if (exists && !fused && (unfused ? *unfused : *net->d).blobs[index].producer >= 0) return kOk;
    if (fused) {
        unfused = net->d->unfuse();
        if (!unfused) return kError;
        on_host.reset();
        run_on(*unfused);
        return kOk;
    }
    QUOLL_LOGE("[Extractor] %s: blob index %d, expected 0 to %d", what, index,
               (int)run.blobs.size() - 1);
    return kError;
}

int Extractor::Private::go_to_host() {
    on_host = net->d->bring_to_host();
    if (!on_host) return kError;
    run_on(*on_host);
    return kOk;
}

// The index of a blob; negative, after a message, if there is none of that name.
int Extractor::Private::blob_of_name(const char* name, const char* what) const {
    QUOLL_RETURN_IF_ERROR(check_loaded(what));
    return net->find_blob_index_by_name(name);
}

int Extractor::input(const char* blob_name, const Mat& in) {
    if (!d) return kOutOfMemory;
    const int index = d->blob_of_name(blob_name, "input");
    return index < 0 ? (int)kError : input(index, in);
}

int Extractor::input(int index, const Mat& in) {
    if (!d) return kOutOfMemory;
    return catch_no_memory("Extractor", [&] { return d->input(index, in); });
}

int Extractor::input(const char* blob_name, const VkMat& in) {
    if (!d) return kOutOfMemory;
    const int index = d->blob_of_name(blob_name, "input");
    return index < 0 ? (int)kError : input(index, in);
}

int Extractor::input(int index, const VkMat& in) {
    if (!d) return kOutOfMemory;
    return catch_no_memory("Extractor", [&] { return d->input(index, in); });
}

int Extractor::Private::input(int index, const Mat& in) {
    QUOLL_RETURN_IF_ERROR(check_blob(index, "input", true));
    // A Mat with an axis of size 0 has no values, but it has sizes.
    if (in.empty() && (in.dims == 0 || in.logical_shape().total() != 0)) {
        QUOLL_LOGE("[Extractor] input '%s' (%d): the Mat is empty",
                   net->d->blobs[index].name.c_str(), index);
        return kError;
    }
    if (!in.empty() && (in.elempack < 1 || in.elemsize != dtype_size(in.dtype) * in.elempack)) {
        QUOLL_LOGE("[Extractor] input '%s' (%d): elements of %zu bytes are not %d of %s",
                   net->d->blobs[index].name.c_str(), index, in.elemsize, in.elempack,
                   dtype_name(in.dtype));
        return kError;
    }
    run.device_blobs.erase(index);
    run.blobs[index] = in;
    take_for_stored(&run.blobs[index], run.opt);
    run.is_input[index] = 1;
    return kOk;
}

static int without_devices(const char* what) {
    QUOLL_LOGE("[Extractor] %s: a VkMat, but QUOLL_BACKENDS is off in this build", what);
    return kError;
}

int Extractor::Private::input(int index, const VkMat& in) {
    if (!kHasBackends) return without_devices("input");
    QUOLL_RETURN_IF_ERROR(check_blob(index, "input", true));
    if (in.empty()) {
        QUOLL_LOGE("[Extractor] input '%s' (%d): the VkMat is empty",
                   net->d->blobs[index].name.c_str(), index);
        return kError;
    }
    run.set_device_blob(index, in);
    run.is_input[index] = 1;
    return kOk;
}

int Extractor::extract(const char* blob_name, Mat& feat, int type) {
    if (!d) return kOutOfMemory;
    const int index = d->blob_of_name(blob_name, "extract");
    return index < 0 ? (int)kError : extract(index, feat, type);
}

int Extractor::extract(const char* blob_name, VkMat& feat, VkCompute& cmd) {
    if (!d) return kOutOfMemory;
    const int index = d->blob_of_name(blob_name, "extract");
    return index < 0 ? (int)kError : extract(index, feat, cmd);
}

// Denormals slow kernels down by two orders of magnitude, so they are flushed while layers run.
// Workers take over the mode of the thread that they work for.
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

// Copies into the Mat that the last run filled, if it fits and nobody else refers to it.
static void copy_out(const Mat& blob, Mat* feat) {
    const bool reusable = feat->refcount && references(feat->refcount) == 1 &&
                          feat->allocator != blob.allocator && feat->data != blob.data &&
                          feat->dtype == blob.dtype && feat->elempack == blob.elempack &&
                          feat->cstep == blob.cstep && (blob.n == 1 || feat->nstep == blob.nstep) &&
                          feat->logical_shape() == blob.logical_shape();
    if (reusable)
        memcpy(feat->data, blob.data, blob.total() * blob.elemsize);
    else
        *feat = blob.clone();
}

// True for a weight that is a blob, or a part of one.
static bool is_constant(const std::vector<Layer*>& layers, const Mat& blob) {
    for (const Layer* layer : layers) {
        const MemoryData* constant = as<MemoryData>(layer);
        if (constant && constant->holds(blob)) return true;
    }
    return false;
}

int Extractor::extract(int index, Mat& feat, int type) {
    if (!d) return kOutOfMemory;
    return catch_no_memory("Extractor", [&] { return d->extract(index, feat, type); });
}

int Extractor::extract(int index, VkMat& feat, VkCompute& cmd) {
    if (!d) return kOutOfMemory;
    return catch_no_memory("Extractor", [&] { return d->extract(index, feat, cmd); });
}

int Extractor::Private::compute(int* blob, VkCompute* commands) {
    QUOLL_RETURN_IF_ERROR(check_loaded("extract"));
    // A blob that was removed because it equals another one, unless that one was behind it in the
    // model and the application gave something else in its place.
    if (!unfused && *blob >= 0 && (size_t)*blob < net->d->alias.size()) {
        const int same = net->d->alias[*blob];
        const bool given = same >= 0 && (size_t)same < run.is_input.size() && run.is_input[same] &&
                           !is_input_layer(*net->d->layers[net->d->blobs[same].producer]);
        if (same >= 0 && !given) *blob = same;
    }
    QUOLL_RETURN_IF_ERROR(check_blob(*blob, "extract"));
    if (run.blobs[*blob].dims != 0) return kOk;
    // Other Extractors have found out that layers have to run on the host.
    if (kHasBackends && !unfused && !on_host && net->d->runs_on_host)
        QUOLL_RETURN_IF_ERROR(go_to_host());
    DenormalGuard guard(run.opt);
    set_kmp_blocktime(run.opt.openmp_blocktime);
    run.commands = commands;
    int status = run.run(*blob);
    if (kHasBackends && status == kNeedsHostWeights) {
        QUOLL_RETURN_IF_ERROR(go_to_host());
        run.commands = commands;
        status = run.run(*blob);
    }
    run.commands = nullptr;
    return status;
}

int Extractor::Private::extract(int index, VkMat& feat, VkCompute& commands) {
    if (!kHasBackends) return without_devices("extract");
    QUOLL_RETURN_IF_ERROR(compute(&index, &commands));
    const auto made = run.device_blobs.find(index);
    if (made != run.device_blobs.end()) {
        feat = made->second;
        return kOk;
    }
    return commands.record_upload(run.blobs[index], feat, run.opt);
}

int Extractor::Private::extract(int index, Mat& feat, int type) {
    const bool records = kHasBackends && (!run.device_blobs.empty() || net->d->records);
    if (!records) {
        QUOLL_RETURN_IF_ERROR(compute(&index, nullptr));
    } else {
        VkCompute commands(run.device_blobs.empty()
                               ? net->vulkan_device()
                               : run.device_blobs.begin()->second.allocator->vkdev);
        QUOLL_RETURN_IF_ERROR(compute(&index, &commands));
        run.commands = &commands;
        const int status = run.fetch(index);
        run.commands = nullptr;
        QUOLL_RETURN_IF_ERROR(status);
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
    // What the user keeps must not be in the Net's buffers, and what the user may change must not
    // be a weight.
    if (!buffers->owns(blob.allocator) && !is_constant((on_host   ? *on_host
                                                        : unfused ? *unfused
                                                                  : *net->d)
                                                           .layers,
                                                       blob))
        feat = blob;
    else
        copy_out(blob, &feat);
    return feat.empty() ? (int)kOutOfMemory : (int)kOk;
}

}  // namespace quoll
