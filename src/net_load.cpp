// Reading params and weights into a Net.
#include <limits.h>
#include <string.h>

#include <memory>

#include "datareader.h"
#include "log.h"
#include "net_private.h"

namespace quoll {

// First token of a text param, first word of a binary one.
static const int kParamMagic = 7767517;
// More inputs or outputs than any layer has; guards counts.
static const int kMostBlobsPerLayer = 1 << 16;
// Longest layer type, layer name or blob name.
static const size_t kLongestName = 4096;

namespace {

bool is_space(int ch) { return ch == ' ' || ch == '\t' || ch == '\r' || ch == '\n'; }

// The next word, or "" at the end of the text. `same_line`: also "" at the end of the line, which
// stays unread. A word beyond kLongestName comes back cut, and the caller finds it wrong.
std::string read_word(const DataReader& dr, bool same_line) {
    int ch = dr.get_char();
    while (is_space(ch) && !(same_line && ch == '\n')) ch = dr.get_char();
    std::string word;
    while (ch != -1 && !is_space(ch) && word.size() < kLongestName) {
        word.push_back((char)ch);
        ch = dr.get_char();
    }
    if (ch != -1) dr.unget_char(ch);
    return word;
}

// A count from 0 to `most`.
bool parse_count(const std::string& word, int most, int* value) {
    long long v = 0;
    if (word.empty() || word.size() > 10) return false;
    for (char ch : word) {
        if (ch < '0' || ch > '9') return false;
        v = v * 10 + (ch - '0');
    }
    *value = (int)v;
    return v <= most;
}

struct OwnedLayer {
    Layer* layer;
    layer_destroyer_func destroyer;
    OwnedLayer() : layer(0), destroyer(0) {}
    ~OwnedLayer() {
        if (!layer) return;
        if (destroyer)
            destroyer(layer, layer->userdata);
        else
            delete layer;
    }
    Layer* release() {
        Layer* l = layer;
        layer = 0;
        return l;
    }
};

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

int Net::Private::load_text(const DataReader& dr, const Option& opt) {
#if QUOLL_STRING
    int magic = 0, layer_count = 0, blob_count = 0;
    const std::string first = read_word(dr, false);
    if (!parse_count(first, INT_MAX, &magic) || magic != kParamMagic) {
        QUOLL_LOGE("[Net] param: expected the magic number %d, got '%.40s'", kParamMagic,
                   first.c_str());
        return kError;
    }
    const std::string layer_word = read_word(dr, false), blob_word = read_word(dr, false);
    if (!parse_count(layer_word, INT_MAX, &layer_count) || layer_count == 0 ||
        !parse_count(blob_word, INT_MAX, &blob_count) || blob_count == 0) {
        QUOLL_LOGE("[Net] param: expected the layer count and the blob count, got '%.40s %.40s'",
                   layer_word.c_str(), blob_word.c_str());
        return kError;
    }
    for (int i = 0; i < layer_count; i++) {
        const int status = load_text_layer(dr, opt, i, blob_count);
        if (status == kOk) continue;
        QUOLL_LOGE("[Net] param: layer %d of %d could not be read", i + 1, layer_count);
        return status;
    }
    return finish_graph();
#else
    (void)dr;
    (void)opt;
    QUOLL_LOGE("[Net] text params are not part of this build (QUOLL_STRING is off)");
    return kError;
#endif
}

// "Type name inputs outputs input-names output-names id=value ..."
int Net::Private::load_text_layer(const DataReader& dr, const Option& opt, int index,
                                  size_t blob_count) {
    const std::string type = read_word(dr, false), name = read_word(dr, true);
    if (type.empty() || name.empty()) {
        QUOLL_LOGE("[Net] param: the text ends where layer %d should be", index + 1);
        return kError;
    }
    int counts[2] = {0, 0};
    for (int& count : counts) {
        const std::string word = read_word(dr, true);
        if (parse_count(word, kMostBlobsPerLayer, &count)) continue;
        QUOLL_LOGE("[%s %s] expected a number of inputs and of outputs (at most %d), got '%.40s'",
                   type.c_str(), name.c_str(), kMostBlobsPerLayer, word.c_str());
        return kError;
    }
    OwnedLayer owned;
    owned.layer = new_layer(type, opt, &owned.destroyer);
    if (!owned.layer) {
        QUOLL_LOGE("[%.80s %.80s] there is no layer of this type%s", type.c_str(), name.c_str(),
                   suggest_names(type, layer_types()).c_str());
        return kError;
    }
    Layer* layer = owned.layer;
    layer->type = type, layer->name = name;
    for (int i = 0; i < counts[0] + counts[1]; i++) {
        const std::string blob = read_word(dr, true);
        if (blob.empty()) {
            QUOLL_LOGE("[%s %s] expected %d inputs and %d outputs, got %d names", type.c_str(),
                       name.c_str(), counts[0], counts[1], i);
            return kError;
        }
        const auto known = blob_of_name.emplace(blob, (int)blobs.size());
        if (known.second) {
            blobs.push_back(Blob());
            blobs.back().name = blob;
        }
        const int id = known.first->second;
        if (blobs.size() > blob_count) {
            QUOLL_LOGE("[%s %s] blob '%s' is one more than the %zu that the header announces",
                       type.c_str(), name.c_str(), blob.c_str(), blob_count);
            return kError;
        }
        if (i >= counts[0]) QUOLL_RETURN_IF_ERROR(set_producer(id, index));
        (i < counts[0] ? layer->bottoms : layer->tops).push_back(id);
    }
    ParamDict pd;
    const std::string where = "[" + type + " " + name + "]";
    QUOLL_RETURN_IF_ERROR(pd.load_param(dr, where.c_str()));
    QUOLL_RETURN_IF_ERROR(load_layer_params(layer, pd));
    add_layer(owned.release(), owned.destroyer);
    return kOk;
}

static bool read_int(const DataReader& dr, int* v) { return dr.read(v, 4) == 4; }

int Net::Private::load_binary(const DataReader& dr, const Option& opt) {
    int magic = 0, layer_count = 0, blob_count = 0;
    if (!read_int(dr, &magic) || magic != kParamMagic) {
        QUOLL_LOGE("[Net] binary param: expected the magic number %d, got %d", kParamMagic, magic);
        return kError;
    }
    // A layer takes at least 16 bytes, and there are no blobs without a layer that makes them.
    if (!read_int(dr, &layer_count) || !read_int(dr, &blob_count) || layer_count <= 0 ||
        blob_count <= 0 || (size_t)layer_count > dr.remaining() / 16 ||
        (size_t)blob_count > dr.remaining() / 4) {
        QUOLL_LOGE("[Net] binary param: bad counts of layers and blobs: %d and %d", layer_count,
                   blob_count);
        return kError;
    }
    for (int i = 0; i < layer_count; i++) {
        const int status = load_binary_layer(dr, opt, i, blob_count);
        if (status == kOk) continue;
        QUOLL_LOGE("[Net] binary param: layer %d of %d could not be read", i + 1, layer_count);
        return status;
    }
    return finish_graph();
}

int Net::Private::load_binary_layer(const DataReader& dr, const Option& opt, int index,
                                    int blob_count) {
    int typeindex = 0, counts[2] = {0, 0};
    if (!read_int(dr, &typeindex) || !read_int(dr, &counts[0]) || !read_int(dr, &counts[1]) ||
        counts[0] < 0 || counts[1] < 0 || counts[0] > kMostBlobsPerLayer ||
        counts[1] > kMostBlobsPerLayer) {
        QUOLL_LOGE(
            "[Net] binary param: layer %d of type %d has %d inputs and %d outputs, or the file "
            "ends",
            index, typeindex, counts[0], counts[1]);
        return kError;
    }
    OwnedLayer owned;
    owned.layer = new_layer(typeindex, opt, &owned.destroyer);
    if (!owned.layer) {
        QUOLL_LOGE("[Net] binary param: layer %d has the unknown type index %d", index, typeindex);
        return kError;
    }
    Layer* layer = owned.layer;
    if (layer->type.empty()) layer->type = "layer type " + std::to_string(typeindex);
    layer->name = std::to_string(index);
    for (int i = 0; i < counts[0] + counts[1]; i++) {
        int id = -1;
        if (!read_int(dr, &id) || id < 0 || id >= blob_count) {
            QUOLL_LOGE("[%s %d] blob index: expected 0 to %d, got %d, or the file ends",
                       layer->type.c_str(), index, blob_count - 1, id);
            return kError;
        }
        // Indexes are given out in order of appearance; without a known length nothing else bounds them.
        if ((size_t)id > blobs.size() && dr.remaining() == (size_t)-1)
            return layer->fail("blob index %d comes before index %zu", id, blobs.size());
        if ((size_t)id >= blobs.size()) blobs.resize(id + 1);
        if (i >= counts[0]) QUOLL_RETURN_IF_ERROR(set_producer(id, index));
        (i < counts[0] ? layer->bottoms : layer->tops).push_back(id);
    }
    ParamDict pd;
    const std::string where = "[" + layer->type + " " + std::to_string(index) + "]";
    QUOLL_RETURN_IF_ERROR(pd.load_param_bin(dr, where.c_str()));
    QUOLL_RETURN_IF_ERROR(load_layer_params(layer, pd));
    add_layer(owned.release(), owned.destroyer);
    return kOk;
}

int Net::Private::finish_graph() {
    consumers.assign(blobs.size(), std::vector<int>());
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
        if (layer->one_blob_only && (layer->bottoms.size() != 1 || layer->tops.size() != 1))
            return layer->fail("expected 1 input and 1 output, got %zu and %zu",
                               layer->bottoms.size(), layer->tops.size());
    }
    for (Layer* layer : layers) {
        layer->bottom_shapes.clear();
        for (int id : layer->bottoms) layer->bottom_shapes.push_back(blobs[id].shape);
    }
    const int input_type = layer_to_index("Input");
    for (size_t i = 0; i < blobs.size(); i++) {
        if (blobs[i].producer < 0) continue;  // an index that the file skips
        if (layers[blobs[i].producer]->typeindex == input_type) input_indexes.push_back((int)i);
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

int Net::Private::load_weights(const DataReader& dr, const Option& opt) {
    ModelBinFromDataReader mb(dr);
    size_t made = 0;
    int status = kOk;
    loaded_opt = opt;
    for (; made < layers.size() && status == kOk; made++) {
        Layer* layer = layers[made];
        status = layer->load_model(mb);
        if (status == kOk) status = layer->create_pipeline(opt);
        if (status != kOk)
            QUOLL_LOGE("[%s %s] loading its weights failed (layer %zu of %zu)", layer->type.c_str(),
                       layer->name.c_str(), made + 1, layers.size());
    }
    weights_loaded = true;
    if (status == kOk) return kOk;
    weights_loaded = false;  // the pipelines made so far go first; clear() then must not touch them
    for (size_t i = 0; i < made; i++) layers[i]->destroy_pipeline(opt);
    return status < 0 ? status : (int)kError;
}

}  // namespace quoll
