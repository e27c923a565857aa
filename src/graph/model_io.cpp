// Reading and writing a Model.
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "graph/model.h"
#include "graph/param_file.h"
#include "layer/common/registry.h"
#include "layer/common/schema.h"
#include "quoll/datareader.h"
#include "quoll/datawriter.h"
#include "quoll/log.h"
#include "quoll/net.h"
#include "runtime/file_format.h"
#include "runtime/open_file.h"

namespace quoll {

namespace {

// Reads a layer's weights as they are stored.
class ReadWeights : public WeightVisitor {
public:
    // all: the weights of the file so far; numbers: which of them this layer shares.
    ReadWeights(const Layer& op, const DataReader& dr, const WeightNumbers& numbers,
                std::vector<StoredWeight>* all, ModelLayer* to)
        : op_(op), mb_(dr), numbers_(numbers), all_(all), to_(to) {}
    int status = kOk;

    void operator()(bool present, const char* name, Mat&, WeightSize size, WeightKind kind,
                    Doc) override {
        int count = 0;
        if (!present || status != kOk) return;
        status = weight_count(op_, name, size, &count);
        if (status != kOk) return;
        ModelWeight weight;
        weight.name = name;
        const int number = weight_number(numbers_, to_->weights.size());
        if (number > 0 && (size_t)number <= all_->size())
            weight.stored = (*all_)[(size_t)number - 1];
        else if (kind == WeightKind::kTagged)
            weight.stored = mb_.load_stored(count);
        else
            weight.stored.data = mb_.load(count, model_bin_type(kind));
        if (number == 0) all_->push_back(weight.stored);
        if (number < 0 || (size_t)number > all_->size() ||
            (number > 0 && weight.stored.data.logical_shape().total() != (size_t)count))
            status = op_.fail("%s: has %d values and is to be number %d of %zu weights", name,
                              count, number, all_->size());
        else if (weight.stored.data.empty())
            status = op_.fail("%s: needs %d values, the weights end or memory runs out before",
                              name, count);
        to_->weights.push_back(weight);
    }

private:
    const Layer& op_;
    const ModelBinFromDataReader mb_;
    const WeightNumbers numbers_;
    std::vector<StoredWeight>* all_;
    ModelLayer* to_;
};

// Checks a layer's weights, and writes them if there is a writer.
class WriteWeights : public WeightVisitor {
public:
    WriteWeights(const Layer& op, const ModelLayer& from, const WeightNumbers& numbers,
                 const DataWriter* dw)
        : op_(op), from_(from), numbers_(numbers), dw_(dw) {}
    int status = kOk;
    size_t count = 0;

    void operator()(bool present, const char* name, Mat&, WeightSize size, WeightKind kind,
                    Doc) override {
        int need = 0;
        if (!present || status != kOk) return;
        const bool shared = weight_number(numbers_, count++) != 0;
        status = weight_count(op_, name, size, &need);
        if (status != kOk) return;
        const StoredWeight* stored = from_.find_weight(name);
        const DType type = kind == WeightKind::kInt8 ? DType::s8 : DType::f32;
        const size_t got = stored ? stored->data.logical_shape().total() : 0;
        if (got != (size_t)need)
            status = op_.fail("%s: needs %d values, got %zu", name, need, got);
        else if (kind != WeightKind::kTagged && stored->data.dtype != type)
            status = op_.fail("%s: expected %s, got %s", name, dtype_name(type),
                              dtype_name(stored->data.dtype));
        else if (dw_ && !shared)
            status = stored->save(*dw_, kind == WeightKind::kTagged);
    }

private:
    const Layer& op_;
    const ModelLayer& from_;
    const WeightNumbers& numbers_;
    const DataWriter* dw_;
};

// Smaller weights cost more bytes to refer to than to write again.
const size_t kLeastShared = 256;

// Numbers the weights in file order. Those that share one block of memory are written where the
// first of them is.
class NumberWeights : public WeightVisitor {
public:
    std::vector<WeightNumbers> layers;

    void begin_layer(const ModelLayer& layer) {
        layer_ = &layer;
        layers.emplace_back();
    }
    void operator()(bool present, const char* name, Mat&, WeightSize, WeightKind kind,
                    Doc) override {
        const StoredWeight* stored = layer_->find_weight(name);
        if (!present || !stored) return;
        const Mat& m = stored->data;
        const size_t bytes = m.total() * m.elemsize;
        int number = 0;
        if (bytes >= kLeastShared) {
            const auto known =
                seen_.emplace(Key(m.data, bytes, (int)m.dtype, (int)kind, stored->tag), count_ + 1);
            if (!known.second) number = known.first->second;
        }
        count_ += number == 0;
        layers.back().push_back(number);
    }

private:
    typedef std::tuple<const void*, size_t, int, int, unsigned> Key;
    const ModelLayer* layer_ = nullptr;
    std::map<Key, int> seen_;
    int count_ = 0;
};

}  // namespace

int Model::load_graph(const DataReader& dr, bool binary) {
    layers.clear();
    weights_id_ = WeightsId();
    loaded_numbers_.clear();
    ParamFileReader reader(dr, binary);
    int status = reader.read_header();
    for (int i = 0; i < reader.layer_count() && status == kOk; i++) {
        ParamRecord record;
        status = reader.read_layer(&record);
        const WeightsId id = take_weights_id(&record.params);
        if (id.size) weights_id_ = id;
        const WeightNumbers numbers = take_weight_numbers(&record.params);
        if (!numbers.empty()) loaded_numbers_[i] = numbers;
        if (status == kOk) status = add_record(record, reader.blob_names());
    }
    if (status == kOk) status = check_blobs();
    if (status != kOk) layers.clear();
    shares_weights_ = !loaded_numbers_.empty();
    return status;
}

int Model::add_record(const ParamRecord& record, const std::vector<std::string>& blob_names) {
    ModelLayer layer;
    layer.type = record.type, layer.name = record.name;
    layer.params = record.params;
    if (record.typeindex >= 0) {
        layer.custom_index = custom_of_stored_index(record.typeindex);
        const bool custom = layer.custom_index >= 0;
        const char* known = layer_type_name(layer_of_stored_index(record.typeindex));
        if (!known && !custom) {
            QUOLL_LOGE("[Model] binary param: layer %s has the unknown type index %d",
                       record.name.c_str(), record.typeindex);
            return kError;
        }
        layer.type = known ? known : "Custom" + std::to_string(layer.custom_index);
    }
    for (const auto* blobs : {&record.bottoms, &record.tops})
        for (int id : *blobs)
            (blobs == &record.bottoms ? layer.inputs : layer.outputs)
                .push_back(blob_names[id].empty() ? std::to_string(id) : blob_names[id]);
    if (!layer.custom()) {
        if (!layer.make_operator()) return kError;
        const std::unique_ptr<Layer> scratch(create_layer_reference(layer.type.c_str()));
        layer.params = canonical_params(*scratch, record.params);
    }
    layers.push_back(layer);
    return kOk;
}

int Model::load_layer_weights(const DataReader& dr, bool* custom) {
    std::vector<StoredWeight> all;
    for (size_t i = 0; i < layers.size(); i++) {
        ModelLayer& layer = layers[i];
        layer.weights.clear();
        *custom |= layer.custom();
        if (layer.custom()) continue;
        const std::unique_ptr<Layer> op = layer.make_operator();
        if (!op) return kError;
        const auto numbers = loaded_numbers_.find((int)i);
        ReadWeights read(*op, dr,
                         numbers == loaded_numbers_.end() ? WeightNumbers() : numbers->second, &all,
                         &layer);
        op->visit_weights(read);
        QUOLL_RETURN_IF_ERROR(read.status);
    }
    return kOk;
}

int Model::load_model(const DataReader& dr, bool whole) {
    bool custom = false;
    const size_t size = dr.remaining();
    int status = load_layer_weights(dr, &custom);
    if (status == kOk && whole && !custom) status = check_all_read(dr, size);
    unsigned char byte;
    if (status == kOk && custom && dr.read(&byte, 1) == 1) {
        QUOLL_LOGE(
            "[Model] load_model: bytes are left over; weights of custom layers (%s ...) have "
            "no known size",
            custom_types()[0].c_str());
        status = kError;
    }
    if (status != kOk) layers.clear();
    return status;
}

int Model::number_shared(std::vector<WeightNumbers>* numbers) const {
    numbers->assign(layers.size(), WeightNumbers());
    if (!shares_weights_) return kOk;
    const bool loaded = std::any_of(layers.begin(), layers.end(),
                                    [](const ModelLayer& l) { return !l.weights.empty(); });
    if (!loaded) {  // of a param alone
        for (const auto& layer : loaded_numbers_)
            if ((size_t)layer.first < numbers->size())
                (*numbers)[(size_t)layer.first] = layer.second;
        return kOk;
    }
    NumberWeights visitor;
    for (const ModelLayer& layer : layers) {
        visitor.begin_layer(layer);
        if (layer.weights.empty()) continue;
        const std::unique_ptr<Layer> op = layer.make_operator();
        if (!op) return kError;
        op->visit_weights(visitor);
    }
    numbers->swap(visitor.layers);
    return kOk;
}

// If the weights are small, padding blanks would be a large part of both files.
static bool has_room_for_columns(const std::deque<ModelLayer>& layers) {
    const size_t kBytesPerLayer = 2048;
    size_t bytes = 0;
    for (const ModelLayer& layer : layers)
        for (const ModelWeight& weight : layer.weights)
            bytes += weight.stored.data.total() * weight.stored.data.elemsize;
    return bytes >= kBytesPerLayer * layers.size();
}

int Model::save_graph(const DataWriter& dw, bool binary) const {
    QUOLL_RETURN_IF_ERROR(check());
    std::vector<WeightNumbers> numbers;
    QUOLL_RETURN_IF_ERROR(number_shared(&numbers));
    const std::vector<std::string> names = blob_names(), custom = custom_types();
    std::unordered_map<std::string, int> ids;
    for (const std::string& name : names) ids.emplace(name, (int)ids.size());
    const ParamFileWriter writer(dw, binary, has_room_for_columns(layers));
    QUOLL_RETURN_IF_ERROR(writer.write_header(layers.size(), names.size()));
    size_t index = 0;
    for (const ModelLayer& layer : layers) {
        ParamRecord record;
        record.type = layer.type, record.name = layer.name;
        for (const std::string& blob : layer.inputs) record.bottoms.push_back(ids[blob]);
        for (const std::string& blob : layer.outputs) record.tops.push_back(ids[blob]);
        const std::unique_ptr<Layer> op(create_layer_reference(layer.type.c_str()));
        record.params = op ? canonical_params(*op, layer.params) : layer.params;
        record.typeindex = op ? stored_index(op->typeindex) : -1;
        for (size_t i = 0; i < custom.size() && !op; i++)
            if (custom[i] == layer.type) record.typeindex = (int)i | kCustomLayerBit;
        if (&layer == &layers[0]) put_weights_id(weights_id_, &record.params);
        put_weight_numbers(numbers[index++], &record.params);
        QUOLL_RETURN_IF_ERROR(writer.write_layer(record, names));
    }
    return kOk;
}

static int visit_weights(const ModelLayer& layer, Layer& op, const WeightNumbers& numbers,
                         const DataWriter* dw) {
    WriteWeights visitor(op, layer, numbers, dw);
    op.visit_weights(visitor);
    QUOLL_RETURN_IF_ERROR(visitor.status);
    if (visitor.count == layer.weights.size()) return kOk;
    return op.fail("with these params it has %zu weights, got %zu", visitor.count,
                   layer.weights.size());
}

static int visit_weights(const ModelLayer& layer, const WeightNumbers& numbers,
                         const DataWriter* dw) {
    if (layer.custom()) {
        if (layer.weights.empty()) return kOk;
        QUOLL_LOGE("[%s %s] weight %s: a custom layer's weights cannot be saved",
                   layer.type.c_str(), layer.name.c_str(), layer.weights[0].name.c_str());
        return kError;
    }
    const std::unique_ptr<Layer> op = layer.make_operator();
    return op ? visit_weights(layer, *op, numbers, dw) : (int)kError;
}

int Model::check_weights(const ModelLayer& layer, Layer& op) const {
    return visit_weights(layer, op, WeightNumbers(), nullptr);
}

int Model::check_weights() const {
    for (const ModelLayer& layer : layers)
        QUOLL_RETURN_IF_ERROR(visit_weights(layer, WeightNumbers(), nullptr));
    return kOk;
}

// Stops at the first layer with weights that its params do not ask for.
static int write_weights(const std::deque<ModelLayer>& layers,
                         const std::vector<WeightNumbers>& numbers, const DataWriter& dw) {
    for (size_t i = 0; i < layers.size(); i++)
        QUOLL_RETURN_IF_ERROR(visit_weights(layers[i], numbers[i], &dw));
    return kOk;
}

int Model::save_model(const DataWriter& dw) const {
    QUOLL_RETURN_IF_ERROR(check_weights());  // before anything is written
    std::vector<WeightNumbers> numbers;
    QUOLL_RETURN_IF_ERROR(number_shared(&numbers));
    return write_weights(layers, numbers, dw);
}

int Model::check_weights_id(const unsigned char* weights, size_t size) const {
    return quoll::check_weights_id(weights_id_, weights_id_of(weights, size));
}

namespace {

// A hash of the weight's size, type, and values at evenly spread places: weights with equal values
// have the same.
uint64_t sample_of(const StoredWeight& weight) {
    const Mat& m = weight.data;
    const size_t bytes = m.total() * m.elemsize, step = bytes / 64 + 1;
    uint64_t hash = bytes * 31 + (uint64_t)m.dtype * 7 + weight.tag;
    for (size_t i = 0; i < bytes; i += step)
        hash = (hash ^ ((const unsigned char*)m.data)[i]) * 0x9e3779b97f4a7c15ull;
    return hash;
}

bool same_values(const StoredWeight& a, const StoredWeight& b) {
    const auto equal = [](const Mat& x, const Mat& y) {
        const size_t bytes = x.total() * x.elemsize;
        return x.dtype == y.dtype && bytes == y.total() * y.elemsize &&
               (x.data == y.data || memcmp(x.data, y.data, bytes) == 0);
    };
    return a.tag == b.tag && equal(a.data, b.data) && equal(a.table, b.table);
}

}  // namespace

void Model::share_weights() {
    std::unordered_map<uint64_t, std::vector<const StoredWeight*>> known;
    for (ModelLayer& layer : layers) {
        for (ModelWeight& weight : layer.weights) {
            StoredWeight& stored = weight.stored;
            if (stored.data.total() * stored.data.elemsize < kLeastShared) continue;
            std::vector<const StoredWeight*>& alike = known[sample_of(stored)];
            const auto same = std::find_if(alike.begin(), alike.end(), [&](const StoredWeight* w) {
                return same_values(*w, stored);
            });
            if (same == alike.end())
                alike.push_back(&stored);
            else
                stored = **same;
        }
    }
    shares_weights_ = true;
}

int Model::number_weights() {
    std::vector<WeightNumbers> numbers;
    QUOLL_RETURN_IF_ERROR(number_shared(&numbers));
    const CountBytes size;
    QUOLL_RETURN_IF_ERROR(write_weights(layers, numbers, size));
    const WeightsHash hash(size.count);
    if (size.count > 0) QUOLL_RETURN_IF_ERROR(write_weights(layers, numbers, hash));
    weights_id_.size = size.count, weights_id_.hash = hash.hash();
    return kOk;
}

int Model::save_param(const DataWriter& dw) const { return save_graph(dw, false); }
int Model::save_param_bin(const DataWriter& dw) const { return save_graph(dw, true); }
int Model::load_param(const DataReader& dr) { return load_graph(dr, false); }
int Model::load_param_bin(const DataReader& dr) { return load_graph(dr, true); }

#if QUOLL_STDIO
namespace {

// A file opened for reading or writing that closes itself.
struct File {
    File(const char* path, bool read, const char* what)
        : fp(read ? open_to_read(path) : fopen(path, "wb")) {
        if (!fp) QUOLL_LOGE("[Model] %s: cannot open %s: %s", what, path, strerror(errno));
    }
    ~File() { close(); }
    // False if something that was written did not reach the file.
    bool close() {
        const bool ok = !fp || fclose(fp) == 0;
        fp = nullptr;
        return ok;
    }
    FILE* fp;
};

template <class Load>
int load_path(const char* path, const char* what, FileKind kind, const WeightsId& id,
              const Load& load) {
    if (check_file_format(path, what, kind, id) != kOk) return kError;
    File file(path, true, what);
    return file.fp ? load(DataReaderFromStdio(file.fp)) : (int)kError;
}

template <class Save>
int save_path(const char* path, const char* what, const Save& save) {
    File file(path, false, what);
    if (!file.fp) return kError;
    struct stat st;
    const bool regular = fstat(fileno(file.fp), &st) == 0 && S_ISREG(st.st_mode);
    int status = save(DataWriterToStdio(file.fp));
    if (!file.close() && status == kOk) {
        QUOLL_LOGE("[Model] %s: cannot write %s: %s", what, path, strerror(errno));
        status = kError;
    }
    if (status != kOk && regular) remove(path);  // no device, no pipe
    return status;
}

}  // namespace

int Model::load_param(const char* path) {
    return load_path(path, "load_param", FileKind::kTextParam, WeightsId(),
                     [&](const DataReader& dr) { return load_param(dr); });
}
int Model::load_param_bin(const char* path) {
    return load_path(path, "load_param_bin", FileKind::kBinaryParam, WeightsId(),
                     [&](const DataReader& dr) { return load_param_bin(dr); });
}
int Model::load_model(const char* path) {
    return load_path(path, "load_model", FileKind::kWeights, weights_id_,
                     [&](const DataReader& dr) { return load_model(dr, true); });
}
int Model::save_param(const char* path) const {
    return save_path(path, "save_param", [&](const DataWriter& dw) { return save_param(dw); });
}
int Model::save_param_bin(const char* path) const {
    return save_path(path, "save_param_bin",
                     [&](const DataWriter& dw) { return save_param_bin(dw); });
}
int Model::save_model(const char* path) const {
    return save_path(path, "save_model", [&](const DataWriter& dw) { return save_model(dw); });
}
#endif

}  // namespace quoll
