// Running a Net: depth-first from the blob asked for, without recursion.
#include <string.h>

#include <algorithm>

#include "cpu.h"
#include "layer/input.h"
#include "layer/loop.h"
#include "layer/select.h"
#include "layer/tensor.h"
#include "log.h"
#include "net_private.h"
#include "places_private.h"
#include "zero_size.h"

namespace quoll {

struct Extractor::Private {
    const Net* net;
    std::shared_ptr<PoolAllocator> pool;  // before the blobs that lie in it
    Option opt;
    std::vector<Mat> blobs;
    std::vector<char> is_input;  // blobs that the user gave
    std::vector<char> has_run;   // layers that have run at least once
    int loop_depth = 0;
    bool extracted = false;
    LayerObserver* observer = nullptr;
    // What a run needs on the way, kept so that the next finds it allocated.
    std::vector<int> order, uses, stack;
    std::vector<char> state;
    std::vector<Mat> layer_inputs, layer_outputs;
    PlacePlans::Inputs given;
    Places places;
    int depth = 0;     // of run_within()
    int placing = -1;  // the layer that runs, if its output may be given a place

    explicit Private(const Net* n) : net(n), pool(n->d->pool), opt(n->opt) {
        if (!opt.blob_allocator) opt.blob_allocator = pool.get();
        if (!opt.workspace_allocator) opt.workspace_allocator = pool.get();
        reset();
    }

    void reset() {
        blobs.assign(net->d->blobs.size(), Mat());
        is_input.assign(net->d->blobs.size(), 0);
        has_run.assign(net->d->layers.size(), 0);
        extracted = false;
    }

    int check_blob(int index, const char* what) const;
    int run_for(int blob);
    void begin_places();
    void find_layers_needed(int blob);
    int run_choice(const Select& layer);
    int run_within(int blob);
    const LoopEnd* as_loop(const Layer* layer) const;
    std::vector<int> blobs_of_body(const Layer& start, const Layer& end) const;
    int run_loop(int index, const LoopEnd& end);
    int run_iteration(const Layer& start, const LoopEnd& end, int number,
                      const std::vector<int>& body, double* going,
                      std::vector<std::vector<Mat>>* scans);
    int run_layer(int index, int wanted);
    int run_layer_on_blobs(int index, int wanted);
    int prepare_bottom(const Layer* layer, Mat* m) const;
    int forward_in_place(const Layer* layer, std::vector<Mat>* bottoms, std::vector<Mat>* tops);
    int forward(const Layer* layer, std::vector<Mat>* bottoms, std::vector<Mat>* tops, bool inplace,
                const Option& with) const;
    int forward_without_values(const Layer* layer, const std::vector<Mat>& bottoms,
                               std::vector<Mat>* tops) const;
    int forward_batch(const Layer* layer, const std::vector<Mat>& bottoms, int n,
                      std::vector<Mat>* tops) const;
    int store_top(const Layer* layer, size_t i, Mat* m);
};

Extractor Net::create_extractor() const { return Extractor(this); }

Extractor::Extractor(const Net* net) : d(new Private(net)) {}
Extractor::Extractor(const Extractor& other) : d(new Private(*other.d)) {}
Extractor& Extractor::operator=(const Extractor& other) {
    Private copy(*other.d);
    std::swap(*d, copy);  // the old blobs go before the pool that they lie in
    return *this;
}
Extractor::~Extractor() { delete d; }

void Extractor::clear() { d->reset(); }
void Extractor::set_light_mode(bool enable) { d->opt.lightmode = enable; }
void Extractor::set_num_threads(int num_threads) {
    if (num_threads < 1) {
        QUOLL_LOGE("[Extractor] set_num_threads: expected at least 1, got %d", num_threads);
        return;
    }
    d->opt.num_threads = num_threads;
}
void Extractor::set_blob_allocator(Allocator* allocator) {
    d->opt.blob_allocator = allocator ? allocator : d->pool.get();
}
void Extractor::set_workspace_allocator(Allocator* allocator) {
    d->opt.workspace_allocator = allocator ? allocator : d->pool.get();
}

void Extractor::set_layer_observer(LayerObserver* observer) { d->observer = observer; }

int Extractor::Private::check_blob(int index, const char* what) const {
    if (!net->d->weights_loaded) {
        QUOLL_LOGE(
            "[Extractor] %s: the Net has no model: load_param and load_model have to succeed first",
            what);
        return kError;
    }
    if (blobs.size() != net->d->blobs.size() || has_run.size() != net->d->layers.size()) {
        QUOLL_LOGE("[Extractor] %s: the Net was loaded anew after this Extractor was created",
                   what);
        return kError;
    }
    if (index >= 0 && (size_t)index < blobs.size() && net->d->blobs[index].producer >= 0)
        return kOk;
    if (index >= 0 && (size_t)index < blobs.size() && net->d->alias[index] != index) {
        QUOLL_LOGE(
            "[Extractor] %s: blob '%s' (%d) was fused away: call net.keep_blob(\"%s\") before "
            "load_model, or set net.opt.use_graph_fusion = false",
            what, net->d->blobs[index].name.c_str(), index, net->d->blobs[index].name.c_str());
        return kError;
    }
    QUOLL_LOGE("[Extractor] %s: blob index %d, expected 0 to %d", what, index,
               (int)blobs.size() - 1);
    return kError;
}

int Extractor::input(const char* blob_name, const Mat& in) {
    QUOLL_RETURN_IF_ERROR(d->net->d->weights_loaded ? 0 : d->check_blob(0, "input"));
    const int index = d->net->find_blob_index_by_name(blob_name);
    return index < 0 ? (int)kError : input(index, in);
}

int Extractor::input(int index, const Mat& in) {
    QUOLL_RETURN_IF_ERROR(d->check_blob(index, "input"));
    const char* name = d->net->d->blobs[index].name.c_str();
    // One with an axis of size 0 has no values, but sizes.
    if (in.empty() && (in.dims == 0 || in.logical_shape().total() != 0)) {
        QUOLL_LOGE("[Extractor] input '%s' (%d): the Mat is empty", name, index);
        return kError;
    }
    if (d->extracted) {
        QUOLL_LOGE(
            "[Extractor] input '%s' (%d): this Extractor has already run; create a new one for the "
            "next image, or call clear()",
            name, index);
        return kError;
    }
    d->blobs[index] = in;
    d->is_input[index] = 1;
    return kOk;
}

int Extractor::extract(const char* blob_name, Mat& feat, int type) {
    QUOLL_RETURN_IF_ERROR(d->net->d->weights_loaded ? 0 : d->check_blob(0, "extract"));
    const int index = d->net->find_blob_index_by_name(blob_name);
    return index < 0 ? (int)kError : extract(index, feat, type);
}

static bool is_storage_type(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

// f16 and bf16 become f32; others are left alone.
static void widen(const Mat& in, Mat* out, const Option& opt) {
    if (in.dtype == DType::f16)
        cast_float16_to_float32(in, *out, opt);
    else
        cast_bfloat16_to_float32(in, *out, opt);
}

// Denormals slow kernels down by two orders of magnitude: flushed while layers run, in all threads.
namespace {
class DenormalGuard {
public:
    explicit DenormalGuard(const Option& opt)
        : threads_(opt.num_threads), old_(get_flush_denormals()) {
        set(opt.flush_denormals);
    }
    ~DenormalGuard() { set(old_); }

private:
    void set(int mode) {
#pragma omp parallel num_threads(threads_) if (threads_ > 1)
        set_flush_denormals(mode);
    }
    int threads_, old_;
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

int Extractor::extract(int index, Mat& feat, int type) {
    // A blob that was left out because it equals another.
    if (index >= 0 && (size_t)index < d->net->d->alias.size() && d->net->d->alias[index] >= 0)
        index = d->net->d->alias[index];
    QUOLL_RETURN_IF_ERROR(d->check_blob(index, "extract"));
    d->extracted = true;
    if (d->blobs[index].dims == 0) {
        DenormalGuard guard(d->opt);
        set_kmp_blocktime(d->opt.openmp_blocktime);
        const int status = d->run_for(index);
        d->places.end();
        QUOLL_RETURN_IF_ERROR(status);
    }
    Mat blob = d->blobs[index];
    if (blob.empty()) {  // as a detection layer that found nothing
        feat = blob;
        return kOk;
    }
    Option opt = d->opt;
    if (opt.blob_allocator != d->pool.get()) opt.blob_allocator = 0;
    if (type == 0 && is_storage_type(blob.dtype)) {
        Mat wide;
        widen(blob, &wide, opt);
        blob = wide;
    }
    if (type == 0 && blob.elempack != 1) {
        Mat planar;
        convert_packing(blob, planar, 1, opt);
        blob = planar;
    }
    // What the user keeps must not sit in the Net's pool.
    if (blob.allocator != d->pool.get())
        feat = blob;
    else
        copy_out(blob, &feat);
    return feat.empty() ? (int)kOutOfMemory : (int)kOk;
}

// Its inputs behind the first are computed only when they are chosen.
static const Select* as_select(const Layer* layer) {
    return layer->bottoms.empty() ? 0 : as<Select>(layer);
}

// The end of a loop whose start is there: the other inputs are made by each iteration. Without a
// start it is a layer as any other.
const LoopEnd* Extractor::Private::as_loop(const Layer* layer) const {
    const LoopEnd* end = as<LoopEnd>(layer);
    if (!end || layer->bottoms.size() < 2) return 0;
    const Layer* first = net->d->layers[net->d->blobs[layer->bottoms[0]].producer];
    return as<LoopStart>(first) && first->tops[0] == layer->bottoms[0] ? end : 0;
}

// The layers to run, into `order`, and how often each blob is read on the way, into `uses`.
void Extractor::Private::find_layers_needed(int blob) {
    const std::vector<Layer*>& layers = net->d->layers;
    order.clear();
    stack.assign(1, net->d->blobs[blob].producer);
    state.assign(layers.size(), 0);  // 1: inputs asked for, 2: in the order
    uses.assign(blobs.size(), 0);
    while (!stack.empty()) {
        const int index = stack.back();
        if (state[index]) {
            stack.pop_back();
            if (state[index] == 1) order.push_back(index);
            state[index] = 2;
            continue;
        }
        state[index] = 1;
        const std::vector<int>& ids = layers[index]->bottoms;
        const bool only_first = as_select(layers[index]) || as_loop(layers[index]);
        for (size_t i = only_first ? 1 : ids.size(); i-- > 0;) {
            uses[ids[i]]++;
            const int producer = net->d->blobs[ids[i]].producer;
            if (blobs[ids[i]].dims == 0 && state[producer] == 0) stack.push_back(producer);
        }
    }
}

// Users' allocators may count on blobs that do not share memory.
void Extractor::Private::begin_places() {
    if (!net->d->has_concats || opt.blob_allocator != pool.get()) return;
    given.clear();
    for (size_t i = 0; i < blobs.size(); i++)
        if (is_input[i]) given.push_back({(int)i, blobs[i].logical_shape()});
    places.begin(net->d->place_plan(given), net->d->layers, order, opt);
}

int Extractor::Private::run_for(int blob) {
    find_layers_needed(blob);
    if (depth == 0) begin_places();
    for (size_t i = 0; i < order.size(); i++) {
        const Layer* layer = net->d->layers[order[i]];
        // What a choice had computed in the meantime is there.
        const bool done = std::all_of(layer->tops.begin(), layer->tops.end(),
                                      [&](int id) { return blobs[id].dims != 0; });
        if (done && !layer->tops.empty()) continue;
        const Select* select = as_select(layer);
        if (select) QUOLL_RETURN_IF_ERROR(run_choice(*select));
        const LoopEnd* loop = as_loop(layer);
        QUOLL_RETURN_IF_ERROR(loop ? run_loop(order[i], *loop) : run_layer(order[i], blob));
    }
    return kOk;
}

// Computes the input that a Select wants, now that its condition is there.
int Extractor::Private::run_choice(const Select& layer) {
    if (layer.bottoms.size() != 3)
        return layer.fail("expected 3 inputs, got %zu", layer.bottoms.size());
    Mat condition = blobs[layer.bottoms[0]];
    QUOLL_RETURN_IF_ERROR(prepare_bottom(&layer, &condition));
    const int chosen = layer.choose_input(condition);
    if (chosen < 0) return chosen;
    const int blob = layer.bottoms[(size_t)chosen];
    return run_within(blob);
}

// Computes a blob while another one is being computed.
int Extractor::Private::run_within(int blob) {
    if (blobs[blob].dims != 0) return kOk;
    std::vector<int> outer_order, outer_uses;
    outer_order.swap(order);
    outer_uses.swap(uses);
    // Layers outside the branch may still want what it computes on the way.
    const bool lightmode = opt.lightmode;
    opt.lightmode = false;
    depth++;
    const int status = run_for(blob);
    depth--;
    opt.lightmode = lightmode;
    order.swap(outer_order);
    uses.swap(outer_uses);
    return status;
}

// Iterations after which a loop is taken for one that never ends, and loops within loops.
static const int kMostIterations = 1 << 20;
static const int kDeepestLoop = 32;

// The blobs that depend on what a loop's start gives, its end aside.
std::vector<int> Extractor::Private::blobs_of_body(const Layer& start, const Layer& end) const {
    std::vector<char> seen(net->d->layers.size(), 0);
    std::vector<int> open = start.tops, found;
    while (!open.empty()) {
        const int blob = open.back();
        open.pop_back();
        for (int reader : net->d->consumers[blob]) {
            const Layer* layer = net->d->layers[reader];
            if (layer == &end || seen[reader]) continue;
            seen[reader] = 1;
            open.insert(open.end(), layer->tops.begin(), layer->tops.end());
            found.insert(found.end(), layer->tops.begin(), layer->tops.end());
        }
    }
    return found;
}

// Runs the body of a loop as often as its count and condition say.
int Extractor::Private::run_loop(int index, const LoopEnd& end) {
    const Layer& start = *net->d->layers[net->d->blobs[end.bottoms[0]].producer];
    const size_t most = end.bottoms.size() - 2;
    const size_t states = most - std::min(most, (size_t)end.scans);
    if (start.tops.size() != states + 3 || end.tops.size() != states + (size_t)end.scans)
        return end.fail("its LoopStart has %zu outputs, expected %zu", start.tops.size(),
                        states + 3);
    if (loop_depth >= kDeepestLoop) return end.fail("more than %d loops in loops", kDeepestLoop);
    // What the start gives, and what was computed from it, is that of iteration 0 whenever no
    // iteration runs.
    std::vector<Mat> first, before;
    for (int id : start.tops) first.push_back(blobs[id]);
    double count = 0, going = 0;
    QUOLL_RETURN_IF_ERROR(read_number(start, first[0], &count));
    QUOLL_RETURN_IF_ERROR(read_number(start, first[2], &going));
    const std::vector<int> body = blobs_of_body(start, end);
    for (int id : body) before.push_back(blobs[id]);
    std::vector<std::vector<Mat>> scans((size_t)end.scans);
    int status = kOk;
    loop_depth++;
    for (int i = 0; status == kOk && i < count && going != 0; i++) {
        if (i >= kMostIterations)
            status = end.fail("more than %d iterations", kMostIterations);
        else
            status = run_iteration(start, end, i, body, &going, &scans);
    }
    loop_depth--;
    std::vector<Mat> carried;
    for (size_t i = 0; i < states; i++) carried.push_back(blobs[start.tops[3 + i]]);
    for (size_t i = 0; i < first.size(); i++) blobs[start.tops[i]] = first[i];
    for (size_t i = 0; i < body.size(); i++) blobs[body[i]] = before[i];
    QUOLL_RETURN_IF_ERROR(status);
    has_run[index] = 1;
    for (size_t i = 0; i < states; i++) blobs[end.tops[i]] = carried[i];
    for (size_t i = 0; i < scans.size(); i++) {
        Mat all;
        QUOLL_RETURN_IF_ERROR(end.stack(scans[i], (int)i, &all, opt));
        QUOLL_RETURN_IF_ERROR(store_top(&end, states + i, &all));
    }
    return kOk;
}

int Extractor::Private::run_iteration(const Layer& start, const LoopEnd& end, int number,
                                      const std::vector<int>& body, double* going,
                                      std::vector<std::vector<Mat>>* scans) {
    if (number > 0)
        for (int id : body)
            if (!is_input[id]) blobs[id].release();
    Mat& at = blobs[start.tops[1]];
    QUOLL_RETURN_IF_ERROR(create_tensor(Shape(1, DType::s32), &at, opt));
    *(int32_t*)at.data = number;
    std::vector<Mat> made;
    for (size_t i = 1; i < end.bottoms.size(); i++) {
        QUOLL_RETURN_IF_ERROR(run_within(end.bottoms[i]));
        made.push_back(blobs[end.bottoms[i]]);
    }
    Mat condition = made[0];
    QUOLL_RETURN_IF_ERROR(prepare_bottom(&end, &condition));
    QUOLL_RETURN_IF_ERROR(read_number(end, condition, going));
    blobs[start.tops[2]] = made[0];
    const size_t states = start.tops.size() - 3;
    for (size_t i = 0; i < states; i++) blobs[start.tops[3 + i]] = made[1 + i];
    for (size_t i = 0; i < scans->size(); i++) {
        Mat& part = made[1 + states + i];
        QUOLL_RETURN_IF_ERROR(prepare_bottom(&end, &part));
        (*scans)[i].push_back(part);
    }
    return kOk;
}

int Extractor::Private::prepare_bottom(const Layer* layer, Mat* m) const {
    if (m->dims == 0 && layer->support_absent_inputs) return kOk;
    if (m->empty() && m->dims > 0 && layer->support_zero_size) return kOk;
    if (m->empty()) return layer->fail("an input has no values");
    const bool widening = (m->dtype == DType::f16 && !layer->support_fp16_storage) ||
                          (m->dtype == DType::bf16 && !layer->support_bf16_storage);
    if (widening) {
        Mat wide;
        widen(*m, &wide, opt);
        *m = wide;
    }
    if (m->elempack != 1 && !layer->support_packing) {
        Mat planar;
        convert_packing(*m, planar, 1, opt);
        *m = planar;
    }
    return m->empty() ? (int)kOutOfMemory : (int)kOk;
}

// An f32 blob that the user gave, beside stored ones, is stored too where the layer takes both.
static int store_like_others(std::vector<Mat>* bottoms, const Option& opt) {
    DType stored = DType::f32;
    for (const Mat& m : *bottoms)
        if (is_storage_type(m.dtype)) stored = m.dtype;
    for (Mat& m : *bottoms) {
        if (m.dtype != DType::f32 || m.empty() || stored == DType::f32) continue;
        Mat narrow;
        if (stored == DType::f16)
            cast_float32_to_float16(m, narrow, opt);
        else
            cast_float32_to_bfloat16(m, narrow, opt);
        if (narrow.empty()) return kOutOfMemory;
        m = narrow;
    }
    return kOk;
}

static bool owned_alone(const std::vector<Mat>& mats) {
    for (const Mat& m : mats)
        if (!m.refcount || m.refcount->load() != 1) return false;
    return true;
}

static bool is_input_layer(const Layer& layer) {
    return layer.bottoms.empty() && as<Input>(&layer);
}

// An empty blob that is more than the layer knows how to deal with.
static bool lacks_values(const Layer& layer, const Mat& m) {
    return m.dims > 0 && m.logical_shape().total() == 0 &&
           (!layer.support_zero_size || (m.n == 0 && !layer.support_batch));
}

int Extractor::Private::run_layer_on_blobs(int index, int wanted) {
    const Layer* layer = net->d->layers[index];
    if (is_input_layer(*layer)) {
        for (int id : layer->tops) {
            const std::vector<int>& readers = net->d->consumers[id];
            const bool optional =
                id != wanted && std::all_of(readers.begin(), readers.end(), [&](int r) {
                    return net->d->layers[r]->support_absent_inputs;
                });
            if (blobs[id].dims == 0 && !optional)
                return layer->fail("input '%s' (%d) was not given", net->d->blobs[id].name.c_str(),
                                   id);
        }
        return kOk;
    }
    layer_inputs.resize(layer->bottoms.size());
    has_run[index] = 1;
    int batch = 1;
    bool without_values = false;
    for (int id : layer->bottoms) without_values |= lacks_values(*layer, blobs[id]);
    for (size_t i = 0; i < layer_inputs.size(); i++) {
        const int id = layer->bottoms[i];
        layer_inputs[i] = blobs[id];
        const std::vector<int>& readers = net->d->consumers[id];
        const bool last =
            --uses[id] == 0 && id != wanted && !is_input[id] &&
            std::all_of(readers.begin(), readers.end(), [&](int r) { return has_run[r]; });
        if (opt.lightmode && last) blobs[id].release();
        if (!without_values) QUOLL_RETURN_IF_ERROR(prepare_bottom(layer, &layer_inputs[i]));
        batch = std::max(batch, layer_inputs[i].n);
    }
    QUOLL_RETURN_IF_ERROR(store_like_others(&layer_inputs, opt));
    placing = depth == 0 && batch == 1 && !without_values ? index : -1;
    int status = kOk;
    if (without_values)
        status = forward_without_values(layer, layer_inputs, &layer_outputs);
    else if (batch > 1 && !layer->support_batch)
        status = forward_batch(layer, layer_inputs, batch, &layer_outputs);
    else
        status = forward_in_place(layer, &layer_inputs, &layer_outputs);
    if (status != kOk) {
        std::string shapes;
        for (int id : layer->bottoms) shapes += " '" + net->d->blobs[id].name + "'";
        layer->fail("could not run on%s (layer %d)", shapes.empty() ? " no input" : shapes.c_str(),
                    index);
        return status < 0 ? status : (int)kError;
    }
    if (layer_outputs.size() != layer->tops.size())
        return layer->fail("expected %zu outputs, got %zu", layer->tops.size(),
                           layer_outputs.size());
    for (size_t i = 0; i < layer_outputs.size(); i++)
        QUOLL_RETURN_IF_ERROR(store_top(layer, i, &layer_outputs[i]));
    return kOk;
}

int Extractor::Private::run_layer(int index, int wanted) {
    const Layer& layer = *net->d->layers[index];
    const bool observed = observer && !is_input_layer(layer);
    if (observed) observer->before(layer);
    const int status = run_layer_on_blobs(index, wanted);
    if (observed && status == kOk) observer->after(layer, layer_outputs);
    layer_inputs.clear();
    layer_outputs.clear();
    placing = -1;
    return status;
}

// Into the output's place in that of a Concat, over the inputs, or into new memory.
int Extractor::Private::forward_in_place(const Layer* layer, std::vector<Mat>* bottoms,
                                         std::vector<Mat>* tops) {
    Mat top;
    Option with = opt;
    if (placing < 0 || !places.offer(placing, *bottoms, blobs, &top, &with))
        return forward(layer, bottoms, tops, layer->support_inplace && owned_alone(*bottoms), opt);
    tops->resize(1);
    (*tops)[0] = static_cast<Mat&&>(top);
    const int status = forward(layer, bottoms, tops, false, with);
    if (tops->empty()) tops->resize(1);
    places.settle(placing, &(*tops)[0]);
    return status;
}

int Extractor::Private::forward(const Layer* layer, std::vector<Mat>* bottoms,
                                std::vector<Mat>* tops, bool inplace, const Option& with) const {
    if (layer->one_blob_only) {
        tops->resize(1);
        if (!inplace) return layer->forward((*bottoms)[0], (*tops)[0], with);
        (*tops)[0] = static_cast<Mat&&>((*bottoms)[0]);
        return layer->forward_inplace((*tops)[0], with);
    }
    if (inplace && !bottoms->empty()) {
        tops->swap(*bottoms);
        return layer->forward_inplace(*tops, with);
    }
    tops->resize(layer->tops.size());
    return layer->forward(*bottoms, *tops, with);
}

// Outputs without values, of the sizes that go with the inputs'.
int Extractor::Private::forward_without_values(const Layer* layer, const std::vector<Mat>& bottoms,
                                               std::vector<Mat>* tops) const {
    std::vector<Shape> in, out;
    for (const Mat& m : bottoms) in.push_back(m.logical_shape());
    QUOLL_RETURN_IF_ERROR(shapes_without_values(*layer, in, &out));
    tops->resize(out.size());
    for (size_t i = 0; i < out.size(); i++)
        QUOLL_RETURN_IF_ERROR(create_tensor(out[i], &(*tops)[i], opt));
    return kOk;
}

// Runs the layer for each item and stacks the results; inputs with n = 1 serve every item.
int Extractor::Private::forward_batch(const Layer* layer, const std::vector<Mat>& bottoms, int n,
                                      std::vector<Mat>* tops) const {
    for (const Mat& m : bottoms)
        if (m.n != 1 && m.n != n) return layer->fail("inputs with batch counts %d and %d", m.n, n);
    for (int b = 0; b < n; b++) {
        std::vector<Mat> item_bottoms, item_tops;
        for (const Mat& m : bottoms) item_bottoms.push_back(m.n == 1 ? m : m.batch(b));
        QUOLL_RETURN_IF_ERROR(forward(layer, &item_bottoms, &item_tops, false, opt));
        if (b == 0) tops->resize(item_tops.size());
        for (size_t i = 0; i < item_tops.size(); i++) {
            const Mat& m = item_tops[i];
            Mat& all = (*tops)[i];
            if (b == 0) {
                Shape shape = m.logical_shape();
                shape.n = n;
                if (m.dims > 0 && shape.total() == 0) {
                    QUOLL_RETURN_IF_ERROR(create_tensor(shape, &all, opt));
                    continue;
                }
                if (!m.empty()) all.create(shape, m.elempack, opt.blob_allocator);
                if (all.empty()) return kOutOfMemory;
            }
            if (m.empty() && all.empty() && m.dims == all.dims) continue;
            Mat slot = all.batch(b);
            if (m.logical_shape() != slot.logical_shape() || m.elempack != slot.elempack)
                return layer->fail("output %zu has another shape for batch item %d", i, b);
            for (int q = 0; q < m.c; q++)
                memcpy((char*)slot.data + q * slot.cstep * slot.elemsize,
                       (const char*)m.data + q * m.cstep * m.elemsize,
                       (size_t)m.w * m.h * m.d * m.elemsize);
        }
    }
    return kOk;
}

int Extractor::Private::store_top(const Layer* layer, size_t i, Mat* m) {
    const int id = layer->tops[i];
    if (is_input[id]) return kOk;  // the user's, beside one that is wanted
    if (m->dims == 0)
        return layer->fail("output '%s' (%d) came out empty", net->d->blobs[id].name.c_str(), id);
    if (!m->empty() && m->dtype == DType::f32 && (opt.use_fp16_storage || opt.use_bf16_storage)) {
        Mat narrow;
        Option with = opt;
        const bool placed =
            placing >= 0 && places.offer(placing, layer_inputs, blobs, &narrow, &with);
        if (opt.use_fp16_storage)
            cast_float32_to_float16(*m, narrow, with);
        else
            cast_float32_to_bfloat16(*m, narrow, with);
        if (placed) places.settle(placing, &narrow);
        if (narrow.empty()) return kOutOfMemory;
        *m = narrow;
    }
    blobs[id] = *m;
    return kOk;
}

}  // namespace quoll
