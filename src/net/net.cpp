#include "quoll/net.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>

#include "gpu/limit_options.h"
#include "graph/param_file.h"
#include "layer/common/registry.h"
#include "net/net_private.h"
#include "net/unfused.h"
#include "quoll/backend.h"
#include "quoll/datareader.h"
#include "quoll/gpu.h"
#include "quoll/log.h"
#include "quoll/platform.h"
#include "runtime/exceptions.h"
#include "runtime/file_format.h"
#include "runtime/mapped_file.h"
#include "runtime/open_file.h"

namespace quoll {

Net::Net() : d(new Private(this)) {}

Net::~Net() { delete d; }

// Runs a loader, and empties the Net if it fails.
template <class Load>
int Net::Private::load(const char* what, const Load& load) {
    const int status = catch_no_memory(what, load);
    if (status != kOk) clear();
    return status;
}

static bool same_layer(const CustomLayer& a, const CustomLayer& b) {
    return a.index == b.index && a.type == b.type;
}

static int add_custom_layer(std::vector<CustomLayer>* list, const CustomLayer& layer) {
    if (!layer.creator) {
        QUOLL_LOGE("[Net] register_custom_layer: the creator is null");
        return kError;
    }
    for (CustomLayer& known : *list) {
        if (!same_layer(known, layer)) continue;
        known = layer;
        return kOk;
    }
    list->push_back(layer);
    return kOk;
}

int Net::register_custom_layer(const char* type, layer_creator_func creator,
                               layer_destroyer_func destroyer, void* userdata) {
    return catch_no_memory("Net", [&] {
        return add_custom_layer(&d->custom_layers, {type, -1, creator, destroyer, userdata});
    });
}

int Net::register_custom_layer(int index, layer_creator_func creator,
                               layer_destroyer_func destroyer, void* userdata) {
    return catch_no_memory("Net", [&] {
        return add_custom_layer(&d->custom_layers, {"", index, creator, destroyer, userdata});
    });
}

int Net::custom_layer_to_index(const char* type) {
    for (size_t i = 0; i < d->custom_layers.size(); i++)
        if (!d->custom_layers[i].type.empty() && d->custom_layers[i].type == type) return (int)i;
    return -1;
}

// Finds a custom layer by name, or by the type index of the built-in layer of that name.
const CustomLayer* Net::Private::find_custom_layer(const char* type) const {
    const int index = layer_to_index(type);
    for (const CustomLayer& custom : custom_layers)
        if (custom.type.empty() ? index >= 0 && custom.index == stored_index(index)
                                : custom.type == type)
            return &custom;
    return nullptr;
}

const CustomLayer* Net::Private::find_custom_layer(int stored) const {
    const int index = layer_of_stored_index(stored), custom_index = custom_of_stored_index(stored);
    const char* type = index >= 0 ? layer_type_name(index) : nullptr;
    for (const CustomLayer& custom : custom_layers)
        if (custom.type.empty() ? custom.index == stored : type && custom.type == type)
            return &custom;
    for (const CustomLayer& custom : custom_layers)  // registered without the bit
        if (custom_index >= 0 && custom.type.empty() && custom.index == custom_index)
            return &custom;
    return nullptr;
}

Layer* Net::Private::make(const CustomLayer* custom) {
    if (!custom) return nullptr;
    Layer* layer = custom->creator(custom->userdata);
    if (layer && !layer->userdata) layer->userdata = custom->userdata;
    new_destroyer.destroyer = custom->destroyer, new_destroyer.userdata = custom->userdata;
    return layer;
}

Layer* Net::create_overwrite_builtin_layer(const char* type) {
    return layer_to_index(type) < 0 ? nullptr : d->make(d->find_custom_layer(type));
}
Layer* Net::create_custom_layer(const char* type) {
    return layer_to_index(type) < 0 ? d->make(d->find_custom_layer(type)) : nullptr;
}
Layer* Net::create_overwrite_builtin_layer(int typeindex) {
    return layer_type_name(typeindex) ? d->make(d->find_custom_layer(stored_index(typeindex)))
                                      : nullptr;
}
Layer* Net::create_custom_layer(int index) {
    return d->make(d->find_custom_layer(kCustomLayerBit | index));
}

Layer* Net::Private::new_layer(const std::string& type, const Option& opt,
                               LayerDestroyer* destroyer) {
    LayerDestroyer& made_by = owner->d->new_destroyer;
    made_by = LayerDestroyer();
    Layer* layer = owner->create_overwrite_builtin_layer(type.c_str());
    const int index = layer_to_index(type.c_str());
    if (!layer)
        layer = opt.use_reference_layers ? create_layer_reference(index) : create_layer(index);
    if (!layer) layer = owner->create_custom_layer(type.c_str());
    *destroyer = made_by;
    return layer;
}

Layer* Net::Private::new_stored_layer(int stored, const Option& opt, LayerDestroyer* destroyer) {
    LayerDestroyer& made_by = owner->d->new_destroyer;
    made_by = LayerDestroyer();
    const int index = layer_of_stored_index(stored), custom_index = custom_of_stored_index(stored);
    Layer* layer = index >= 0 ? owner->create_overwrite_builtin_layer(index) : nullptr;
    if (!layer)
        layer = opt.use_reference_layers ? create_layer_reference(index) : create_layer(index);
    if (!layer && custom_index >= 0) layer = owner->create_custom_layer(custom_index);
    *destroyer = made_by;
    return layer;
}

void Net::add_backend(const std::shared_ptr<Backend>& backend) {
    if (kHasBackends)
        d->backends.push_back(backend);
    else
        QUOLL_LOGE(
            "[Net] add_backend: back ends are not part of this build (QUOLL_BACKENDS is off)");
}
void Net::set_vulkan_device(int device_index) { d->vulkan_device = device_index; }
void Net::set_vulkan_device(const VulkanDevice* vkdev) {
    d->vulkan_device = vkdev ? vkdev->device_index() : -1;
}
const VulkanDevice* Net::vulkan_device() const {
    if (d->vulkan_device < 0 && !opt.use_vulkan_compute && !d->vulkan) return nullptr;
    const int index = d->device_index(opt);
    return index < 0 ? nullptr : get_gpu_device(index);
}

void Net::Private::clear() {
    for (size_t i = 0; i < layers.size(); i++) {
        if (weights_loaded && !is_folded(*layers[i]) && !is_off_host((int)i))
            layers[i]->destroy_pipeline(loaded_opt);
        destroyers[i](layers[i]);
    }
    layers.clear();
    destroyers.clear();
    blobs.clear();
    consumers.clear();
    kept.clear();
    alias.clear();
    followed.clear();
    blob_of_name.clear();
    input_indexes.clear();
    output_indexes.clear();
    input_names.clear();
    output_names.clear();
    plans.clear();
    if (vulkan)
        backends.erase(std::remove(backends.begin(), backends.end(), vulkan), backends.end());
    vulkan.reset();
    for (const std::shared_ptr<Backend>& backend : backends) backend->release();
    weights_id = WeightsId();
    shared_weights.clear();
    weights_loaded = false;
    without_weights = has_concats = false;
    unfused.reset();
    on_host.reset();
    runs_on_host = layers_may_differ = false;
    off_host.clear();
    unfused_param.clear();
    source = WeightSource();
}

void Net::clear() { d->clear(); }
bool Net::is_ready() const { return d->is_ready(opt); }

void Net::release_buffers() const { d->buffers->release(); }
void Net::share_buffers(const Net& other) { d->buffers = other.d->buffers; }

// To what the net's device can follow.
static void limit_options(Net* net) {
#if QUOLL_VULKAN
    const VulkanDevice* device = net->opt.use_vulkan_compute ? net->vulkan_device() : nullptr;
    if (device) limit_options(device->info, &net->opt);
#else
    (void)net;
#endif
}

int Net::load_param(const DataReader& dr) {
    clear();
    limit_options(this);
    return d->load("Net load_param", [&] { return d->load_graph(dr, false, opt); });
}

int Net::load_param_bin(const DataReader& dr) {
    clear();
    limit_options(this);
    return d->load("Net load_param_bin", [&] { return d->load_graph(dr, true, opt); });
}

int Net::Private::load_records(const std::vector<ParamRecord>& records,
                               const std::vector<std::string>& names) {
    clear();
    limit_options(owner);
    const Option& opt = owner->opt;
    return load("Net", [&] {
        add_blobs(names);
        for (const ParamRecord& record : records) QUOLL_RETURN_IF_ERROR(load_layer(record, opt));
        return finish_graph();
    });
}

int Net::Private::load_model(const ModelBin& mb, const DataReader& dr, bool whole,
                             const Option& opt) {
    if (layers.empty()) {
        QUOLL_LOGE("[Net] load_model: load_param has to come first, and to succeed");
        return kError;
    }
    if (without_weights) return kOk;
    if (weights_loaded) {
        QUOLL_LOGE(
            "[Net] load_model: the weights are already loaded; clear() comes before another model");
        return kError;
    }
    return load("Net load_model", [&] {
        if (source.path.empty()) source.reader.reset(dr.reopen());
        return load_weights(mb, dr, whole, opt);
    });
}

int Net::load_model(const DataReader& dr) {
    if (!d->weights_loaded) d->source = WeightSource();
    return d->load_model(ModelBinFromDataReader(dr), dr, false, opt);
}

#if QUOLL_STDIO
namespace {

// A file that closes itself; says why it could not be opened.
struct File {
    FILE* fp;
    File(const char* path, const char* what) : fp(open_to_read(path)) {
        if (!fp) QUOLL_LOGE("[Net] %s: cannot open %s: %s", what, path, strerror(errno));
    }
    ~File() {
        if (fp) fclose(fp);
    }
};

}  // namespace

int Net::load_param(FILE* fp) { return load_param(DataReaderFromStdio(fp)); }
int Net::load_param_bin(FILE* fp) { return load_param_bin(DataReaderFromStdio(fp)); }
int Net::load_model(FILE* fp) { return load_model(DataReaderFromStdio(fp)); }

int Net::load_param(const char* path) {
    QUOLL_RETURN_IF_ERROR(catch_no_memory("Net load_param", [&] {
        return check_file_format(path, "load_param", FileKind::kTextParam);
    }));
    File file(path, "load_param");
    return file.fp ? load_param(file.fp) : (int)kError;
}

int Net::load_param_bin(const char* path) {
    QUOLL_RETURN_IF_ERROR(catch_no_memory("Net load_param_bin", [&] {
        return check_file_format(path, "load_param_bin", FileKind::kBinaryParam);
    }));
    File file(path, "load_param_bin");
    return file.fp ? load_param_bin(file.fp) : (int)kError;
}

int Net::load_model(const char* path) { return d->load_model_file(path, opt); }

int Net::Private::load_model_file(const char* path, const Option& opt) {
    if (!weights_loaded) {
        QUOLL_RETURN_IF_ERROR(load("Net load_model", [&] {
            source.path = path;
            describe_file(path, &source.path_size, &source.path_time);
            return check_file_format(path, "load_model", FileKind::kWeights, weights_id);
        }));
    }
    if (MappedFile* const mapped = MappedFile::open(path)) {
        const int status = load_model(ModelBinFromMappedFile(mapped), *mapped, true, opt);
        mapped->close();
        return status;
    }
    File file(path, "load_model");
    if (!file.fp) return kError;
    const DataReaderFromStdio reader(file.fp);
    return load_model(ModelBinFromDataReader(reader), reader, true, opt);
}

int Net::load_param_mem(const char* text) {
    const unsigned char* mem = (const unsigned char*)text;
    return load_param(DataReaderFromMemory(mem, strlen(text)));
}
#endif

static bool aligned(const unsigned char* mem, const char* what) {
    if (mem && (uintptr_t)mem % 4 == 0) return true;
    QUOLL_LOGE("[Net] %s: the memory at %p is not 4-byte aligned", what, (const void*)mem);
    return false;
}

// For memory whose size is known.
static bool right_format(const unsigned char* mem, size_t size, FileKind kind, const char* what) {
    if (size == (size_t)-1) return true;
    const char* const format = unexpected_format(mem, std::min<size_t>(size, 4096), size, kind);
    if (format) QUOLL_LOGE("[Net] %s: the %zu bytes are %s", what, size, format);
    return !format;
}

int Net::load_param(const unsigned char* mem) { return load_param(mem, (size_t)-1); }
int Net::load_model(const unsigned char* mem) { return load_model(mem, (size_t)-1); }

int Net::load_param(const unsigned char* mem, size_t size) {
    if (!aligned(mem, "load_param") ||
        !right_format(mem, size, FileKind::kBinaryParam, "load_param"))
        return 0;
    const unsigned char* p = mem;
    return load_param_bin(DataReaderFromMemory(p, size)) == kOk ? (int)(p - mem) : 0;
}

int Net::load_model(const unsigned char* mem, size_t size) {
    if (!aligned(mem, "load_model") || !right_format(mem, size, FileKind::kWeights, "load_model"))
        return 0;
    const WeightsId& id = d->weights_id;
    if (size != (size_t)-1 && id.size && !d->weights_loaded &&
        check_weights_id(id, weights_id_of(mem, (size_t)std::min<uint64_t>(id.size, size)))) {
        clear();
        return 0;
    }
    const unsigned char* p = mem;
    return load_model(DataReaderFromMemory(p, size)) == kOk ? (int)(p - mem) : 0;
}

int Net::keep_blob(const char* name) {
    if (d->weights_loaded) {
        QUOLL_LOGE("[Net] keep_blob('%s') has to come before load_model", name);
        return kError;
    }
    const int index = find_blob_index_by_name(name);
    return index < 0 ? (int)kError : keep_blob(index);
}

int Net::keep_blob(int index) {
    if (d->weights_loaded || index < 0 || (size_t)index >= d->blobs.size()) {
        QUOLL_LOGE(d->weights_loaded ? "[Net] keep_blob(%d) has to come before load_model"
                                     : "[Net] keep_blob: there is no blob with the index %d",
                   index);
        return kError;
    }
    return catch_no_memory("Net keep_blob", [&] {
        d->kept.resize(d->blobs.size(), 0);
        d->kept[index] = 1;
        return (int)kOk;
    });
}

const std::vector<int>& Net::input_indexes() const { return d->input_indexes; }
const std::vector<int>& Net::output_indexes() const { return d->output_indexes; }
const std::vector<const char*>& Net::input_names() const { return d->input_names; }
const std::vector<const char*>& Net::output_names() const { return d->output_names; }
const std::vector<Blob>& Net::blobs() const { return d->blobs; }
const std::vector<Layer*>& Net::layers() const { return d->layers; }
std::vector<Blob>& Net::mutable_blobs() { return d->blobs; }
std::vector<Layer*>& Net::mutable_layers() {
    // After load_model only an application's own layers may be changed.
    if (!d->weights_loaded || !d->custom_layers.empty()) d->layers_may_differ |= !d->layers.empty();
    return d->layers;
}

// Levenshtein's distance: insertions, deletions and replacements of one character.
static size_t edit_distance(const std::string& a, const std::string& b) {
    std::vector<size_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); j++) row[j] = j;
    for (size_t i = 1; i <= a.size(); i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.size(); j++) {
            const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = std::min(replaced, std::min(row[j], row[j - 1]) + 1);
        }
    }
    return row[b.size()];
}

std::string suggest_names(const std::string& name, const std::vector<std::string>& candidates) {
    if (!QUOLL_STRING) return "";  // binary params have no names
    // Enough to be useful; names beyond these would only slow the message down.
    const size_t kMostCandidates = 4096, kMostNames = 3, kLongest = 128;
    std::vector<std::pair<size_t, std::string>> near;
    if (name.size() <= kLongest) {
        for (size_t i = 0; i < candidates.size() && i < kMostCandidates; i++) {
            if (candidates[i].empty() || candidates[i].size() > kLongest) continue;
            const size_t distance = edit_distance(name, candidates[i]);
            if (distance <= std::max<size_t>(2, name.size() / 2))
                near.emplace_back(distance, candidates[i]);
        }
    }
    std::stable_sort(near.begin(), near.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::string text;
    for (size_t i = 0; i < near.size() && i < kMostNames; i++)
        text += (i ? ", " : "; did you mean ") + near[i].second;
    return text.empty() ? text : text + "?";
}

// "; inputs: data, state; outputs: prob", the first ones of each.
static std::string input_and_output_names(const std::vector<const char*>& inputs,
                                          const std::vector<const char*>& outputs) {
    if (!QUOLL_STRING) return "";
    const size_t kMost = 8;
    std::string text;
    for (const auto* names : {&inputs, &outputs}) {
        text += names == &inputs ? "; inputs: " : "; outputs: ";
        for (size_t i = 0; i < names->size() && i < kMost; i++)
            text += (i ? ", " : "") + std::string((*names)[i]);
        text += names->size() > kMost ? ", ..." : names->empty() ? "none" : "";
    }
    return text;
}

int Net::find_blob_index_by_name(const char* name) const {
    return catch_no_memory("Net find_blob_index_by_name", -1, [&] {
        const auto it = d->blob_of_name.find(name);
        if (it != d->blob_of_name.end()) return it->second;
        const auto escaped = d->blob_of_name.find(param_word(name));
        if (escaped != d->blob_of_name.end()) return escaped->second;
        std::vector<std::string> names;
        for (const Blob& blob : d->blobs)
            if (QUOLL_STRING) names.push_back(blob.name);
        QUOLL_LOGE("[Net] there is no blob '%s'%s%s", name, suggest_names(name, names).c_str(),
                   input_and_output_names(d->input_names, d->output_names).c_str());
        return -1;
    });
}

int Net::find_layer_index_by_name(const char* name) const {
    return catch_no_memory("Net find_layer_index_by_name", -1, [&] {
        std::vector<std::string> names;
        for (size_t i = 0; i < d->layers.size(); i++) {
            if (d->layers[i]->name == name) return (int)i;
            if (QUOLL_STRING) names.push_back(d->layers[i]->name);
        }
        QUOLL_LOGE("[Net] there is no layer '%s'%s", name, suggest_names(name, names).c_str());
        return -1;
    });
}

}  // namespace quoll
