// Reading params and weights into a Net.

#include <algorithm>
#include <atomic>
#include <memory>

#include "datareader.h"
#include "graph/layer_graph.h"
#include "graph/param_file.h"
#include "layer/concat.h"
#include "layer/input.h"
#include "log.h"
#include "log_private.h"
#include "net_private.h"

namespace quoll {

namespace {

struct OwnedLayer {
    Layer* layer;
    layer_destroyer_func destroyer;
    OwnedLayer() : layer(0), destroyer(0) {}
    ~OwnedLayer() {
        if (layer) destroy_layer(layer, destroyer);
    }
    Layer* release() {
        Layer* l = layer;
        layer = 0;
        return l;
    }
};

// Below this starting threads takes longer than what they do.
const int kFewLayers = 16;

// Parameter 30: [dims, w, h, c] of each output, or [dims, w, h, d, c] with 4 axes. Ignored if odd.
void read_shape_hints(const ParamDict& pd, Layer* layer) {
    const Mat hints = pd.get_ints(30, Mat());
    const int* p = hints;
    int i = 0;
    for (size_t t = 0; t < layer->tops.size(); t++) {
        if (i + 4 > hints.w) return;
        Shape s;
        s.dims = p[i], s.w = p[i + 1], s.h = p[i + 2];
        if (s.dims < 1 || s.dims > 4 || (s.dims == 4 && i + 5 > hints.w)) return;
        s.d = s.dims == 4 ? p[i + 3] : 1;
        s.c = s.dims == 4 ? p[i + 4] : p[i + 3];
        layer->top_shapes.push_back(s);
        i += s.dims == 4 ? 5 : 4;
    }
}

}  // namespace

void Net::Private::add_layer(Layer* layer, layer_destroyer_func destroyer) {
    layers.push_back(layer);
    destroyers.push_back(destroyer);
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

int Net::Private::load_layer_params(Layer* layer, const ParamDict& pd) {
    read_shape_hints(pd, layer);
    const int status = layer->load_param(pd);
    if (status == kOk) return kOk;
    QUOLL_LOGE("[%s %s] load_param failed", layer->type.c_str(), layer->name.c_str());
    return status < 0 ? status : (int)kError;
}

int Net::Private::load_graph(const DataReader& dr, bool binary, const Option& opt) {
    ParamFileReader reader(dr, binary);
    QUOLL_RETURN_IF_ERROR(reader.read_header());
    for (int i = 0; i < reader.layer_count(); i++) {
        ParamRecord record;
        int status = reader.read_layer(&record);
        const std::vector<std::string>& names = reader.blob_names();
        for (size_t id = blobs.size(); id < names.size(); id++) {
            blobs.push_back(Blob());
            blobs[id].name = names[id];
            if (!names[id].empty()) blob_of_name[names[id]] = (int)id;
        }
        if (status == kOk) status = load_layer(record, opt);
        if (status == kOk) continue;
        QUOLL_LOGE("[Net] %sparam: layer %d of %d could not be read", binary ? "binary " : "",
                   i + 1, reader.layer_count());
        return status;
    }
    for (size_t id = 0; id < blobs.size(); id++) alias.push_back((int)id);
    return finish_graph();
}

int Net::Private::load_layer(const ParamRecord& record, const Option& opt) {
    OwnedLayer owned;
    const bool binary = record.type.empty();
    owned.layer = binary ? new_layer(record.typeindex, opt, &owned.destroyer)
                         : new_layer(record.type, opt, &owned.destroyer);
    if (!owned.layer) {
        if (binary)
            QUOLL_LOGE("[Net] binary param: layer %s has the unknown type index %d",
                       record.name.c_str(), record.typeindex);
        else
            QUOLL_LOGE("[%.80s %.80s] there is no layer of this type%s", record.type.c_str(),
                       record.name.c_str(), suggest_names(record.type, layer_types()).c_str());
        return kError;
    }
    Layer* layer = owned.layer;
    if (!binary) layer->type = record.type;
    if (layer->type.empty()) layer->type = "layer type " + std::to_string(record.typeindex);
    layer->name = record.name;
    layer->bottoms = record.bottoms;
    layer->tops = record.tops;
    for (int id : layer->tops) QUOLL_RETURN_IF_ERROR(set_producer(id, (int)layers.size()));
    QUOLL_RETURN_IF_ERROR(load_layer_params(layer, record.params));
    if (layer->one_blob_only && (layer->bottoms.size() != 1 || layer->tops.size() != 1))
        return layer->fail("expected 1 input and 1 output, got %zu and %zu", layer->bottoms.size(),
                           layer->tops.size());
    add_layer(owned.release(), owned.destroyer);
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
    for (size_t i = 0; i < layers.size(); i++) {
        const int status = layers[i]->load_model(mb);
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
    const bool reference = opt.use_reference_layers;
    const int status = run_passes(graph, false, [reference](const char* type) {
        return reference ? create_layer_reference(type) : create_layer(type);
    });
    if (status != kOk) QUOLL_LOGE("[Net] out of memory for fused weights");

    // A layer that was folded away stays in its place, without blobs, so that the indexes of
    // layers are those of the file.
    for (size_t i = 0; i < layers.size(); i++) {
        if (!graph.replaced((int)i)) continue;
        destroy_layer(layers[i], destroyers[i]);
        layers[i] = graph.take_new_layer((int)i).release();
        destroyers[i] = 0;
    }
    for (size_t i = 0; i < blobs.size(); i++) {
        alias[i] = graph.alias((int)i);
        blobs[i].producer = blobs[i].consumer = -1;
    }
    for (size_t i = 0; i < layers.size(); i++)
        for (int id : layers[i]->tops) blobs[id].producer = (int)i;
    return status == kOk ? finish_graph() : status;
}

// What does not fit is found out, and said, when it runs.
std::vector<char> Net::Private::infer_sizes(std::vector<Shape>* shapes) const {
    LogMute quiet;
    std::vector<char> told(layers.size(), 0);
    for (size_t k = 0; k < layers.size();
         k++) {  // files have them in an order in which they can run
        const Layer& layer = *layers[k];
        std::vector<Shape> in, tops;
        for (int id : layer.bottoms) in.push_back((*shapes)[id]);
        const bool known =
            std::all_of(in.begin(), in.end(), [](const Shape& s) { return s.dims != 0; });
        if (!known || is_folded(layer) || layer.infer_shapes(in, tops) != kOk) continue;
        told[k] = 1;
        for (size_t i = 0; i < tops.size() && i < layer.tops.size(); i++) {
            Shape& shape = (*shapes)[layer.tops[i]];
            if (shape.dims == 0) shape = tops[i];
        }
    }
    return told;
}

// Sizes that follow from those of Input layers, for the choices that layers make when they are
// prepared.
void Net::Private::infer_missing_hints() {
    std::vector<Shape> shapes;
    for (const Blob& blob : blobs) shapes.push_back(blob.shape);
    const std::vector<char> told = infer_sizes(&shapes);
    for (size_t k = 0; k < layers.size(); k++) {
        if (!told[k]) continue;
        layers[k]->bottom_shapes.clear();
        for (int id : layers[k]->bottoms) layers[k]->bottom_shapes.push_back(shapes[id]);
    }
}

std::shared_ptr<const PlacePlan> Net::Private::place_plan(const PlacePlans::Inputs& inputs) {
    std::shared_ptr<const PlacePlan> known = plans.find(inputs);
    if (known) return known;
    std::vector<Shape> shapes(blobs.size());
    for (const std::pair<int, Shape>& in : inputs) {
        shapes[in.first] = in.second;
        DType& dtype = shapes[in.first].dtype;
        if (dtype == DType::f16 || dtype == DType::bf16) dtype = DType::f32;
    }
    infer_sizes(&shapes);
    const std::shared_ptr<PlacePlan> plan =
        std::make_shared<PlacePlan>(make_place_plan(layers, consumers, shapes, loaded_opt));
    plan->inputs = inputs;
    plans.keep(plan);
    return plan;
}

int Net::Private::create_pipelines(const Option& opt) {
    const int count = (int)layers.size();
    const int kNotTried = 1;
    std::vector<int> status(count, kNotTried);
    std::atomic<bool> failed(false);
    const auto create = [&](int i, const Option& with) {
        if (failed || is_folded(*layers[i])) return;
        status[i] = layers[i]->create_pipeline(with);
        if (status[i] != kOk) failed = true;
    };
    // Layers of the application are not asked to be ready for that.
    const int threads = count < kFewLayers ? 1 : opt.num_threads;
    // The application's allocators may be such as serve one thread only.
    Option shared = opt;
    if (threads > 1) shared.blob_allocator = shared.workspace_allocator = nullptr;
#pragma omp parallel for num_threads(threads) schedule(dynamic) if (threads > 1)
    for (int i = 0; i < count; i++)
        if (layers[i]->typeindex >= 0) create(i, shared);
    for (int i = 0; i < count; i++)
        if (layers[i]->typeindex < 0) create(i, opt);
    if (!failed) return kOk;
    int result = kOk;
    for (int i = 0; i < count; i++) {
        if (status[i] == kNotTried) continue;
        // The pipelines made so far go first; clear() then must not touch them.
        layers[i]->destroy_pipeline(opt);
        if (status[i] == kOk || result != kOk) continue;
        QUOLL_LOGE("[%s %s] preparing it failed (layer %d of %d)", layers[i]->type.c_str(),
                   layers[i]->name.c_str(), i + 1, count);
        result = status[i];
    }
    return result;
}

int Net::Private::load_weights(const ModelBin& mb, const Option& opt) {
    loaded_opt = opt;
    int status = load_layer_weights(mb);
    if (status == kOk && opt.use_graph_fusion) status = run_graph_passes(opt);
    if (status == kOk) {
        infer_missing_hints();
        status = create_pipelines(opt);
    }
    has_concats = !opt.use_reference_layers &&
                  std::any_of(layers.begin(), layers.end(),
                              [](const Layer* l) { return as<Concat>(l) != nullptr; });
    weights_loaded = status == kOk;
    return status <= 0 ? status : (int)kError;
}

}  // namespace quoll
