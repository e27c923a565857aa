// Reading params and weights into a Net.

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <tuple>

#include "graph/layer_graph.h"
#include "graph/param_file.h"
#include "layer/common/registry.h"
#include "layer/common/schema.h"
#include "layer/common/traits.h"
#include "layer/control/input.h"
#include "layer/nn/innerproduct.h"
#include "layer/tensor/concat.h"
#include "layer/vulkan/create_backend.h"
#include "net/net_private.h"
#include "net/unfused.h"
#include "plan/custom_layer.h"
#include "plan/precise_blobs.h"
#include "quoll/backend.h"
#include "quoll/datareader.h"
#include "quoll/datawriter.h"
#include "quoll/gpu.h"
#include "quoll/log.h"
#include "runtime/exceptions.h"
#include "runtime/log_mute.h"
#include "runtime/thread_pool.h"
#include "runtime/weights_id.h"

namespace quoll {

namespace {

struct OwnedLayer {
    Layer* layer = nullptr;
    LayerDestroyer destroyer;
    ~OwnedLayer() {
        if (layer) destroyer(layer);
    }
    Layer* release() {
        Layer* l = layer;
        layer = 0;
        return l;
    }
};

// With fewer layers, starting threads takes longer than the layers' work.
const int kFewLayers = 16;

// Parameter 30 has, for each output, [dims, w, h, d, c]; in older files [dims, w, h, c], and with 4
// axes [dims, w, h, d, c]. Nothing relies on hints: one that makes no sense is ignored.
void read_shape_hints(const ParamDict& pd, Layer* layer) {
    const Mat hints = pd.get_ints(30, Mat());
    const int* p = hints;
    const int outputs = (int)layer->tops.size(), count = hints.empty() ? 0 : hints.w;
    for (int t = 0, i = 0; t < outputs && i < count; t++) {
        const bool long_form = count == 5 * outputs || p[i] == 4;
        const int length = long_form ? 5 : 4;
        Shape s;
        if (i + length <= count)
            s.dims = p[i], s.w = p[i + 1], s.h = p[i + 2], s.c = p[i + length - 1];
        s.d = s.dims == 4 ? p[i + 3] : 1;
        if (s.dims < 3) s.c = 1;
        if (s.dims < 2) s.h = 1;
        if (s.dims < 1 || s.dims > 4 || s.w < 1 || s.h < 1 || s.d < 1 || s.c < 1) {
            QUOLL_LOGD("[%s %s] the hint of an output's size makes no sense and is ignored",
                       layer->type.c_str(), layer->name.c_str());
            layer->top_shapes.clear();
            return;
        }
        layer->top_shapes.push_back(Mat::of_shape(s));
        i += length;
    }
}

bool same_sizes(const Shape& a, const Shape& b) {
    return a.dims == b.dims && a.w == b.w && a.h == b.h && a.d == b.d && a.c == b.c;
}

}  // namespace

void Net::Private::add_layer(Layer* layer, const LayerDestroyer& destroyer) {
    destroyers.push_back(destroyer);
    layers.push_back(layer);
}

int Net::Private::set_producer(int blob, int layer) {
    if (blobs[blob].producer < 0) {
        blobs[blob].producer = layer;
        return kOk;
    }
    QUOLL_LOGE("[Net] blob '%s' (%d) is produced twice: by layer %d and layer %d",
               blobs[blob].name.c_str(), blob, blobs[blob].producer, layer);
    return kError;
}

int Net::Private::load_layer_params(Layer* layer, const ParamDict& pd, const Option& opt) {
    read_shape_hints(pd, layer);
    layer->featmask = pd.get(31, 0);
#if QUOLL_VULKAN
    if (opt.use_vulkan_compute && layer->typeindex < 0) layer->vkdev = owner->vulkan_device();
#else
    (void)opt;
#endif
    const int status = layer->load_param(pd);
    if (status == kOk) return kOk;
    QUOLL_LOGE("[%s %s] load_param failed", layer->type.c_str(), layer->name.c_str());
    return status < 0 ? status : (int)kError;
}

int Net::Private::load_graph(const DataReader& dr, bool binary, const Option& opt) {
    ParamFileReader reader(dr, binary);
    QUOLL_RETURN_IF_ERROR(reader.read_header());
    const DataWriterToMemory copy(&unfused_param);
    const ParamFileWriter writer(copy, binary, false);
    unfused_is_binary = binary;
    QUOLL_RETURN_IF_ERROR(writer.write_header(reader.layer_count(), reader.blob_count()));
    for (int i = 0; i < reader.layer_count(); i++) {
        ParamRecord record;
        int status = reader.read_layer(&record);
        const std::vector<std::string>& names = reader.blob_names();
        add_blobs(names);
        const WeightsId id = take_weights_id(&record.params);
        if (id.size) weights_id = id;
        const WeightNumbers numbers = take_weight_numbers(&record.params);
        if (!numbers.empty()) shared_weights[i] = numbers;
        if (status == kOk && !unfused_param.empty() && writer.write_layer(record, names) != kOk)
            unfused_param.clear();
        if (status == kOk) status = load_layer(record, opt);
        if (status == kOk) continue;
        QUOLL_LOGE("[Net] %sparam: layer %d of %d could not be read", binary ? "binary " : "",
                   i + 1, reader.layer_count());
        return status;
    }
    return finish_graph();
}

// names: those of all blobs; the first of these blobs exist already.
void Net::Private::add_blobs(const std::vector<std::string>& names) {
    for (size_t id = blobs.size(); id < names.size(); id++) {
        blobs.push_back(Blob());
        blobs[id].name = names[id];
        if (!names[id].empty()) blob_of_name[names[id]] = (int)id;
        alias.push_back((int)id);
    }
}

int Net::Private::load_layer(const ParamRecord& record, const Option& opt) {
    OwnedLayer owned;
    const bool binary = record.type.empty();
    owned.layer = binary ? new_stored_layer(record.typeindex, opt, &owned.destroyer)
                         : new_layer(record.type, opt, &owned.destroyer);
    if (!owned.layer) {
        if (custom_of_stored_index(record.typeindex) >= 0)
            QUOLL_LOGE(
                "[Net] binary param: layer %s has type index %d, custom layer %d, which is not "
                "registered",
                record.name.c_str(), record.typeindex, custom_of_stored_index(record.typeindex));
        else if (binary)
            QUOLL_LOGE("[Net] binary param: layer %s has the unknown type index %d",
                       record.name.c_str(), record.typeindex);
        else  // F.pad, torch.sort, aten::numel: what pnnx writes when it has no layer for it
            QUOLL_LOGE("[%.80s %.80s] there is no layer of this type%s", record.type.c_str(),
                       record.name.c_str(),
                       record.type.find_first_of(".:") != std::string::npos
                           ? "; pnnx could not convert this operator"
                           : suggest_names(record.type, layer_types()).c_str());
        return kError;
    }
    Layer* layer = owned.layer;
    if (!binary) layer->type = record.type;
    if (layer->type.empty()) layer->type = "layer type " + std::to_string(record.typeindex);
    layer->name = record.name;
    layer->bottoms = record.bottoms;
    layer->tops = record.tops;
    for (int id : layer->tops) QUOLL_RETURN_IF_ERROR(set_producer(id, (int)layers.size()));
    QUOLL_RETURN_IF_ERROR(load_layer_params(layer, record.params, opt));
    if (layer->one_blob_only && (layer->bottoms.size() != 1 || layer->tops.size() != 1))
        return layer->fail("expected 1 input and 1 output, got %zu and %zu", layer->bottoms.size(),
                           layer->tops.size());
    add_layer(owned.layer, owned.destroyer);
    owned.release();
    return kOk;
}

int Net::Private::finish_graph() {
    consumers.assign(blobs.size(), std::vector<int>());
    input_indexes.clear();
    output_indexes.clear();
    input_names.clear();
    output_names.clear();
    for (size_t i = 0; i < layers.size(); i++) {
        Layer* layer = layers[i];
        for (int id : layer->bottoms) {
            if (blobs[id].producer < 0) {
                layer->fail("input '%s' (%d) is produced by no layer", blobs[id].name.c_str(), id);
                return kError;
            }
            blobs[id].consumer = (int)i;
            if (consumers[id].empty() || consumers[id].back() != (int)i)
                consumers[id].push_back((int)i);
        }
        for (size_t t = 0; t < layer->top_shapes.size(); t++)
            blobs[layer->tops[t]].shape = layer->top_shapes[t];
    }
    for (Layer* layer : layers) {
        layer->bottom_shapes.clear();
        for (int id : layer->bottoms) layer->bottom_shapes.push_back(blobs[id].shape);
    }
    for (size_t i = 0; i < blobs.size(); i++) {
        if (blobs[i].producer < 0) continue;  // an index that the file skips
        if (as<Input>(layers[blobs[i].producer])) input_indexes.push_back((int)i);
        if (blobs[i].consumer < 0) output_indexes.push_back((int)i);
    }
    for (int i : input_indexes) input_names.push_back(blobs[i].name.c_str());
    for (int i : output_indexes) output_names.push_back(blobs[i].name.c_str());
    return check_acyclic();
}

// Kahn's algorithm: every layer must become ready once all its inputs are.
int Net::Private::check_acyclic() const {
    std::vector<int> missing(layers.size()), ready;
    for (size_t i = 0; i < layers.size(); i++) {
        for (int id : layers[i]->bottoms) missing[i] += consumers[id].size() > 0;
        if (layers[i]->bottoms.empty()) ready.push_back((int)i);
    }
    size_t done = 0;
    while (!ready.empty()) {
        const Layer* layer = layers[ready.back()];
        ready.pop_back();
        done++;
        for (int id : layer->tops)
            for (int next : consumers[id])
                for (int bottom : layers[next]->bottoms)
                    if (bottom == id && --missing[next] == 0) ready.push_back(next);
    }
    if (done == layers.size()) return kOk;
    for (size_t i = 0; i < layers.size(); i++)
        if (missing[i] > 0) return layers[i]->fail("its inputs depend on its own output");
    return kError;
}

int Net::Private::load_layer_weights(const ModelBin& mb) {
    SharingModelBin sharing(mb, shared_weights);
    for (size_t i = 0; i < layers.size(); i++) {
        sharing.begin_layer((int)i);
        const int status =
            layers[i]->load_model(shared_weights.empty() ? mb : (const ModelBin&)sharing);
        if (status == kOk) continue;
        QUOLL_LOGE("[%s %s] loading its weights failed (layer %zu of %zu)", layers[i]->type.c_str(),
                   layers[i]->name.c_str(), i + 1, layers.size());
        return status;
    }
    return kOk;
}

int Net::Private::run_graph_passes(const Option& opt) {
    std::vector<std::string> names;
    for (const Blob& blob : blobs) names.push_back(blob.name);
    kept.resize(blobs.size(), 0);
    LayerGraph graph(layers, names, kept);
    graph.back_ends = kHasBackends && (!backends.empty() || opt.use_vulkan_compute);
    const bool reference = opt.use_reference_layers;
    const int status = run_passes(graph, false, [reference](const char* type) {
        return reference ? create_layer_reference(type) : create_layer(type);
    });
    if (status != kOk) QUOLL_LOGE("[Net] out of memory for fused weights");

    // A layer that was folded away stays in its place, without blobs, so that the indexes of
    // layers are those of the file.
    for (size_t i = 0; i < layers.size(); i++) {
        if (!graph.replaced((int)i)) continue;
        destroyers[i](layers[i]);
        layers[i] = graph.take_new_layer((int)i).release();
        destroyers[i] = LayerDestroyer();
    }
    followed.resize(blobs.size());
    for (size_t i = 0; i < blobs.size(); i++) {
        alias[i] = graph.alias((int)i);
        followed[i] = graph.follows((int)i);
        blobs[i].producer = blobs[i].consumer = -1;
    }
    for (size_t i = 0; i < layers.size(); i++)
        for (int id : layers[i]->tops) blobs[id].producer = (int)i;
    return status == kOk ? finish_graph() : status;
}

// Sizes that do not fit are reported when the net runs.
std::vector<Net::Private::SizesTold> Net::Private::infer_sizes(
    std::vector<Shape>* shapes, const std::vector<Shape>* hints) const {
    LogMute quiet;
    std::vector<SizesTold> told(layers.size(), kInputsUnknown);
    for (size_t k = 0; k < layers.size();
         k++) {  // files have them in an order in which they can run
        const Layer& layer = *layers[k];
        std::vector<Shape> in, tops;
        for (int id : layer.bottoms) in.push_back((*shapes)[id]);
        const bool known =
            std::all_of(in.begin(), in.end(), [](const Shape& s) { return s.dims != 0; });
        if (known && !is_folded(layer))
            told[k] = layer.infer_shapes(in, tops) == kOk ? kTold : kInputsDoNotFit;
        if (told[k] != kTold) tops.clear();
        tops.resize(layer.tops.size());
        for (size_t i = 0; i < layer.tops.size(); i++) {
            const int id = layer.tops[i];
            if ((*shapes)[id].dims == 0)
                (*shapes)[id] = tops[i].dims || !hints ? tops[i] : (*hints)[id];
        }
    }
    return told;
}

// Infers sizes from those of Input layers, for the choices that layers make when they are prepared.
// A hint counts only if nothing can be inferred, and its reader can take such an input.
void Net::Private::infer_missing_hints() {
    std::vector<Shape> shapes(blobs.size()), hints(blobs.size());
    for (size_t i = 0; i < blobs.size(); i++) hints[i] = blobs[i].shape.logical_shape();
    const std::vector<SizesTold> told = infer_sizes(&shapes, &hints);
    for (size_t i = 0; i < blobs.size(); i++)
        if (hints[i].dims && shapes[i].dims && !same_sizes(hints[i], shapes[i]))
            QUOLL_LOGD("[Net] blob '%s' (%zu): the hint %s is ignored, its size is %s",
                       blobs[i].name.c_str(), i, shape_text(hints[i]).c_str(),
                       shape_text(shapes[i]).c_str());
    for (size_t k = 0; k < layers.size(); k++) {
        const bool fits = told[k] != kInputsDoNotFit;
        layers[k]->bottom_shapes.clear();
        for (int id : layers[k]->bottoms)
            layers[k]->bottom_shapes.push_back(Mat::of_shape(fits ? shapes[id] : Shape()));
        if (!fits)
            QUOLL_LOGD("[%s %s] it cannot take inputs of the sizes that were hinted",
                       layers[k]->type.c_str(), layers[k]->name.c_str());
    }
}

int Net::Private::device_index(const Option& opt) const {
    if (vulkan_device >= 0) return vulkan_device;
    return opt.vulkan_device_index >= 0 ? opt.vulkan_device_index : get_default_gpu_index();
}

// Adds the Vulkan back end after those of the application.
void Net::Private::add_vulkan(const Option& opt) {
    const int device = kHasBackends ? device_index(opt) : -1;
    if (device >= 0) vulkan = create_vulkan_backend(device, opt);
    if (vulkan)
        backends.push_back(vulkan);
    else
        QUOLL_LOGW("use_vulkan_compute: no device, the CPU runs the net");
}

int Net::Private::prepare_backends(const Option& opt) {
    if (opt.use_vulkan_compute && !opt.use_reference_layers) add_vulkan(opt);
    for (size_t i = 0; kHasBackends && i < backends.size(); i++) {
        const int status = prepare_backend(*backends[i], opt);
        if (status == kOk) continue;
        if (status != kOutOfMemory || !opt.vulkan_fallback || backends[i] != vulkan) return status;
        QUOLL_LOGW("vulkan_fallback: the weights do not fit, the CPU runs the net");
        vulkan.reset();
        backends.erase(backends.begin() + (std::ptrdiff_t)i--);
    }
    return kOk;
}

int Net::Private::prepare_backend(Backend& backend, const Option& opt) {
    const bool leave = &backend == vulkan.get() && backends.size() == 1 && may_leave_host(opt);
    if (leave) off_host.assign(layers.size(), 0);
    for (size_t i = 0; i < layers.size(); i++) {
        Layer& layer = *layers[i];
        if (layer.typeindex < 0 || is_folded(layer)) continue;
        QUOLL_RETURN_IF_ERROR(backend.prepare(layer, opt));
        if (!leave || !leaves_host(layer, backend)) continue;
        release_weights(layer);
        off_host[i] = 1;
    }
    return kOk;
}

// Tells inner products that read the same weights, such as the steps of an unrolled loop, which is
// the first of them; without `tell` makes them forget it.
void Net::Private::match_weights(bool tell) {
    typedef std::tuple<const void*, const void*, int, int, int, int> Key;
    std::map<Key, const InnerProduct*> firsts;
    for (size_t i = 0; i < layers.size(); i++) {
        InnerProduct* const p = as<InnerProduct>(layers[i]);
        if (!p) continue;
        p->same_weights = nullptr;
        if (!tell || is_folded(*p) || is_off_host((int)i) || p->weight_data.empty()) continue;
        const Key key(p->weight_data.data, p->bias_data.data, p->num_output, p->weight_data_size,
                      p->weight_data.dims, p->featmask);
        const auto found = firsts.emplace(key, p);
        if (!found.second) p->same_weights = found.first->second;
    }
}

int Net::Private::create_pipelines(const Option& opt) {
    const int count = (int)layers.size();
    const int kNotTried = 1;
    std::vector<int> status(count, kNotTried);
    std::atomic<bool> failed(false);
    const auto create = [&](int i, const Option& with) {
        if (failed || is_folded(*layers[i]) || is_off_host(i)) return;
        status[i] = catch_no_memory(layers[i]->name.c_str(), [&] {
            return layers[i]->create_pipeline(masked_options(*layers[i], with));
        });
        if (status[i] != kOk) failed = true;
    };
    // Layers of the application need not be able to do that in several threads.
    const int threads = count < kFewLayers ? 1 : opt.num_threads;
    // The application's allocators may be for one thread only.
    Option shared = opt;
    if (threads > 1) shared.blob_allocator = shared.workspace_allocator = nullptr;
    match_weights(true);
    for (const bool after : {false, true}) {
        run_tasks(count, threads, [&](int64_t i, int) {
            const InnerProduct* const p = as<InnerProduct>(layers[i]);
            if (layers[i]->typeindex >= 0 && (p && p->same_weights) == after)
                create((int)i, shared);
        });
    }
    match_weights(false);
    for (int i = 0; i < count; i++)
        if (layers[i]->typeindex < 0) create(i, opt);
    if (!failed) return kOk;
    int result = kOk;
    for (int i = 0; i < count; i++) {
        if (status[i] == kNotTried) continue;
        // The pipelines that were made so far are destroyed first; clear() must not touch them
        // again.
        layers[i]->destroy_pipeline(opt);
        if (status[i] == kOk || result != kOk) continue;
        QUOLL_LOGE("[%s %s] preparing it failed (layer %d of %d)", layers[i]->type.c_str(),
                   layers[i]->name.c_str(), i + 1, count);
        result = status[i];
    }
    return result;
}

int Net::Private::upload_custom_layers(const Option& opt) {
    records = false;
#if QUOLL_VULKAN
    for (Layer* layer : layers) {
        if (!runs_on_device(*layer) || is_folded(*layer)) continue;
        QUOLL_RETURN_IF_ERROR(upload_custom_layer(*layer, opt));
        records = true;
    }
#else
    (void)opt;
#endif
    return kOk;
}

int Net::Private::load_weights(const ModelBin& mb, const DataReader& dr, bool whole,
                               const Option& opt) {
    const size_t size = dr.remaining();
    int status = load_layer_weights(mb);
    if (status == kOk && whole) status = check_all_read(dr, size);
    if (status == kOk) status = prepare_layers(opt);
    bool again = kHasBackends && !off_host.empty();
    for (size_t i = 0; i < blobs.size(); i++) again |= is_fused_away((int)i, true);
    if (!again) source = WeightSource(), unfused_param.clear(), unfused_param.shrink_to_fit();
    return status <= 0 ? status : (int)kError;
}

int Net::Private::prepare_layers(const Option& opt) {
    loaded_opt = opt;
    int status = opt.use_graph_fusion ? run_graph_passes(opt) : (int)kOk;
    if (status == kOk) {
        infer_missing_hints();
        status = prepare_backends(opt);
    }
    if constexpr (kHasPreciseBlobs) {
        precise.clear();
        if (status == kOk && opt.use_fp16_storage && backends.empty()) find_precise_blobs(this);
    }
    if (status == kOk) status = create_pipelines(opt);
    if constexpr (kHasPreciseBlobs) widen_inputs_of_precise_blobs(this);
    if (status == kOk) status = upload_custom_layers(opt);
    has_concats = !opt.use_reference_layers &&
                  std::any_of(layers.begin(), layers.end(),
                              [](const Layer* l) { return as<Concat>(l) != nullptr; });
    weights_loaded = status == kOk;
    return status;
}

}  // namespace quoll
