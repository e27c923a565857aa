#include "graph/model.h"

#include <algorithm>

#include "graph/param_file.h"
#include "layer/common/registry.h"
#include "layer/common/schema.h"
#include "quoll/log.h"

namespace quoll {

namespace {

enum class ParamKind { kNone, kInt, kFloat, kInts, kFloats, kString };

const char* kind_name(ParamKind kind) {
    const char* const names[] = {"none", "an int", "a float", "ints", "floats", "a string"};
    return names[(int)kind];
}

// The id and kind of a parameter by its name.
class FindParam : public ParamVisitor {
public:
    explicit FindParam(const char* name) : name_(name) {}
    int id = -1;
    ParamKind kind = ParamKind::kNone;

    void operator()(int i, const char* n, int&, int, Doc, Range) override {
        seen(i, n, ParamKind::kInt);
    }
    void operator()(int i, const char* n, float&, float, Doc, Range) override {
        seen(i, n, ParamKind::kFloat);
    }
    void ints(int i, const char* n, Mat&, Doc, Range) override { seen(i, n, ParamKind::kInts); }
    void floats(int i, const char* n, Mat&, Doc, Range) override { seen(i, n, ParamKind::kFloats); }
    void operator()(int i, const char* n, std::string&, const char*, Doc) override {
        seen(i, n, ParamKind::kString);
    }

private:
    void seen(int i, const char* n, ParamKind k) {
        if (name_ == n) id = i, kind = k;
    }
    const std::string name_;
};

int not_there(const ModelLayer& layer, const char* what, const char* why) {
    QUOLL_LOGE("[%s %s] %s: %s", layer.type.c_str(), layer.name.c_str(), what, why);
    return kError;
}

// The id of a parameter that is of kind `wanted` (or float, for an int); negative after a message.
int param_id(const ModelLayer& layer, const char* param, ParamKind wanted, ParamKind* found) {
    const Layer* op = layer.prototype();
    if (!op) return not_there(layer, param, "only built-in operators have params with names");
    FindParam find(param);
    const_cast<Layer*>(op)->visit_params(find);  // which looks at names and kinds alone
    if (find.id < 0) return not_there(layer, param, "the operator has no parameter of this name");
    *found = find.kind;
    const bool widened = wanted == ParamKind::kInt && find.kind == ParamKind::kFloat;
    if (find.kind == wanted || widened) return find.id;
    const std::string why =
        std::string("expected ") + kind_name(find.kind) + ", got " + kind_name(wanted);
    return not_there(layer, param, why.c_str());
}

template <class T>
int set_array(ModelLayer* layer, const char* param, const std::vector<T>& values, DType dtype) {
    ParamKind kind;
    const int id =
        param_id(*layer, param, dtype == DType::s32 ? ParamKind::kInts : ParamKind::kFloats, &kind);
    if (id < 0) return id;
    Mat m;
    if (!values.empty()) {
        m.create(Shape((int)values.size(), dtype));
        if (m.empty()) return kOutOfMemory;
        std::copy(values.begin(), values.end(), (T*)m.data);
    }
    layer->params.set(id, m);
    return kOk;
}

}  // namespace

int ModelLayer::set(const char* param, int value) {
    ParamKind kind;
    const int id = param_id(*this, param, ParamKind::kInt, &kind);
    if (id < 0) return id;
    if (kind == ParamKind::kFloat)
        params.set(id, (float)value);
    else
        params.set(id, value);
    return kOk;
}

int ModelLayer::set(const char* param, float value) {
    ParamKind kind;
    const int id = param_id(*this, param, ParamKind::kFloat, &kind);
    if (id < 0) return id;
    params.set(id, value);
    return kOk;
}

int ModelLayer::set(const char* param, const std::string& value) {
    ParamKind kind;
    const int id = param_id(*this, param, ParamKind::kString, &kind);
    if (id < 0) return id;
    params.set(id, value);
    return kOk;
}

int ModelLayer::set(const char* param, const std::vector<int>& values) {
    return set_array(this, param, values, DType::s32);
}

int ModelLayer::set(const char* param, const std::vector<float>& values) {
    return set_array(this, param, values, DType::f32);
}

const StoredWeight* ModelLayer::find_weight(const char* weight) const {
    for (const ModelWeight& w : weights)
        if (w.name == weight) return &w.stored;
    return nullptr;
}

const Layer* ModelLayer::prototype() const { return layer_prototype(type.c_str()); }

void ModelLayer::set_weight(const char* weight, const Mat& values) {
    remove_weight(weight);
    weights.push_back({weight, StoredWeight(values)});
}

void ModelLayer::remove_weight(const char* weight) {
    weights.erase(std::remove_if(weights.begin(), weights.end(),
                                 [=](const ModelWeight& w) { return w.name == weight; }),
                  weights.end());
}

namespace {

// Hands a layer its weights by name, in the order in which the schema asks.
class CollectWeights : public WeightVisitor {
public:
    CollectWeights(const Layer& op, const ModelLayer& from) : op_(op), from_(from) {}
    int status = kOk;
    std::vector<Mat> mats;

    void operator()(bool present, const char* name, Mat&, WeightSize, WeightKind, Doc) override {
        if (!present || status != kOk) return;
        const StoredWeight* stored = from_.find_weight(name);
        mats.push_back(stored ? stored->widened() : Mat());
        if (mats.back().empty()) status = op_.fail("%s: it is missing, or memory runs out", name);
    }

private:
    const Layer& op_;
    const ModelLayer& from_;
};

}  // namespace

std::unique_ptr<Layer> ModelLayer::make_operator(bool with_weights) const {
    std::unique_ptr<Layer> op(create_layer_reference(type.c_str()));
    if (!op) {
        not_there(*this, "type", "there is no built-in operator of this type");
        return nullptr;
    }
    op->name = name;
    for (size_t i = 0; i < inputs.size(); i++) op->bottoms.push_back((int)i);
    for (size_t i = 0; i < outputs.size(); i++) op->tops.push_back((int)(inputs.size() + i));
    if (op->load_param(params) != kOk) return nullptr;
    if (!with_weights) return op;
    CollectWeights collect(*op, *this);
    op->visit_weights(collect);
    if (collect.status != kOk || op->load_model(ModelBinFromMatArray(collect.mats.data())) != kOk)
        return nullptr;
    return op;
}

void ModelLayer::set_params(Layer& op) {
    const ParamDict changed = params_of(op);
    const std::unique_ptr<Layer> scratch(create_layer_reference(type.c_str()));
    ParamDict merged;
    for (int id = 0; id <= kMaxParamId; id++)
        merged.copy(id, scratch && schema_knows(*scratch, id) ? changed : params);
    params = merged;
}

ModelLayer& Model::add(const std::string& type, const std::string& name,
                       const std::vector<std::string>& inputs,
                       const std::vector<std::string>& outputs) {
    layers.emplace_back();
    ModelLayer& layer = layers.back();
    layer.type = type, layer.name = name;
    layer.inputs = inputs, layer.outputs = outputs;
    return layer;
}

int Model::producer(const std::string& blob) const {
    for (size_t i = 0; i < layers.size(); i++)
        for (const std::string& output : layers[i].outputs)
            if (output == blob) return (int)i;
    return -1;
}

std::vector<int> Model::consumers(const std::string& blob) const {
    std::vector<int> indexes;
    for (size_t i = 0; i < layers.size(); i++) {
        const std::vector<std::string>& inputs = layers[i].inputs;
        if (std::find(inputs.begin(), inputs.end(), blob) != inputs.end())
            indexes.push_back((int)i);
    }
    return indexes;
}

std::vector<std::string> Model::blob_names() const {
    std::vector<std::string> names;
    std::unordered_map<std::string, int> seen;
    for (const ModelLayer& layer : layers)
        for (const auto* list : {&layer.inputs, &layer.outputs})
            for (const std::string& blob : *list)
                if (seen.emplace(blob, 0).second) names.push_back(blob);
    return names;
}

std::vector<std::string> Model::custom_types() const {
    std::vector<std::string> types;
    for (const ModelLayer& layer : layers) {
        if (!layer.custom() || layer.custom_index < 0) continue;
        if ((size_t)layer.custom_index >= types.size()) types.resize(layer.custom_index + 1);
        types[layer.custom_index] = layer.type;
    }
    for (const ModelLayer& layer : layers) {
        if (!layer.custom() || std::find(types.begin(), types.end(), layer.type) != types.end())
            continue;
        const auto free = std::find(types.begin(), types.end(), "");
        if (free != types.end())
            *free = layer.type;
        else
            types.push_back(layer.type);
    }
    return types;
}

int Model::check_blobs() const {
    std::unordered_map<std::string, const ModelLayer*> makers;
    for (const ModelLayer& layer : layers) {
        for (const std::string& blob : layer.outputs) {
            const auto known = makers.emplace(blob, &layer);
            if (known.second) continue;
            QUOLL_LOGE("[%s %s] output '%s' is made by [%s %s] too", layer.type.c_str(),
                       layer.name.c_str(), blob.c_str(), known.first->second->type.c_str(),
                       known.first->second->name.c_str());
            return kError;
        }
    }
    for (const ModelLayer& layer : layers)
        for (const std::string& blob : layer.inputs)
            if (!makers.count(blob))
                return not_there(layer, blob.c_str(), "no layer makes this input");
    return kOk;
}

int Model::check_names() const {
    if (layers.empty()) {
        QUOLL_LOGE("[Model] there are no layers");
        return kError;
    }
    for (const ModelLayer& layer : layers) {
        std::vector<const std::string*> words = {&layer.type, &layer.name};
        for (const auto* blobs : {&layer.inputs, &layer.outputs})
            for (const std::string& blob : *blobs) words.push_back(&blob);
        for (const std::string* word : words)
            if (!is_param_word(*word))
                return not_there(layer, ("'" + *word + "'").c_str(),
                                 "a name has to be a word without blanks, below 4096 bytes");
    }
    return kOk;
}

int Model::check() const {
    QUOLL_RETURN_IF_ERROR(check_names());
    for (const ModelLayer& layer : layers) {
        if (layer.custom()) continue;
        const std::unique_ptr<Layer> op = layer.make_operator();
        if (!op) return kError;
        if (op->one_blob_only && (layer.inputs.size() != 1 || layer.outputs.size() != 1))
            return op->fail("expected 1 input and 1 output, got %zu and %zu", layer.inputs.size(),
                            layer.outputs.size());
    }
    return check_blobs();
}

}  // namespace quoll
