#include "graph/optimize.h"

#include <math.h>

#include <algorithm>
#include <map>
#include <set>

#include "graph/model_edit.h"
#include "layer/common/schema.h"
#include "layer/control/input.h"
#include "layer/control/memorydata.h"
#include "quoll/log.h"

namespace quoll {

void OptimizeReport::count(const std::string& what, int times) {
    for (auto& entry : counts_) {
        if (entry.first != what) continue;
        entry.second += times;
        return;
    }
    counts_.emplace_back(what, times);
}

std::vector<std::string> OptimizeReport::lines() const {
    std::vector<std::string> lines;
    for (const auto& entry : counts_)
        lines.push_back(entry.first + " (" + std::to_string(entry.second) + ")");
    return lines;
}

void strip_names(Model* model, const std::vector<std::string>& kept) {
    std::set<std::string> taken(kept.begin(), kept.end());
    for (const std::string& blob : input_blobs(*model)) taken.insert(blob);
    for (const std::string& blob : output_blobs(*model)) taken.insert(blob);
    std::map<std::string, std::string> renamed;
    for (const std::string& blob : taken) renamed[blob] = blob;
    int number = 0, position = 0;
    for (const std::string& blob : model->blob_names()) {
        if (renamed.count(blob)) continue;
        while (!taken.insert(std::to_string(number)).second) number++;
        renamed[blob] = std::to_string(number);
    }
    for (ModelLayer& layer : model->layers) {
        layer.name = std::to_string(position++);
        for (std::string& blob : layer.inputs) blob = renamed[blob];
        for (std::string& blob : layer.outputs) blob = renamed[blob];
    }
}

int remove_dead_layers(Model* model, const std::vector<std::string>& kept, OptimizeReport* report) {
    std::vector<std::string> outputs;
    std::set<int> keep;
    for (const std::string& blob : output_blobs(*model))
        if (std::count(kept.begin(), kept.end(), blob) ||
            !model->layers[model->producer(blob)].is<MemoryData>())
            outputs.push_back(blob);
    if (outputs.empty()) return kOk;
    for (int index : execution_order(*model, outputs)) keep.insert(index);
    for (size_t i = 0; i < model->layers.size(); i++)
        if (model->layers[i].is<Input>()) keep.insert((int)i);
    const int removed = keep_layers(model, keep, outputs);
    if (removed > 0) report->count("layers that nothing needs removed", removed);
    return kOk;
}

namespace {

// Id of the shape hints; of no operator's own.
const int kHints = 30;

// Stores tagged weights of floats as another type.
class StoreWeights : public WeightVisitor {
public:
    StoreWeights(ModelLayer* layer, DType dtype, OptimizeReport* report)
        : layer_(layer), dtype_(dtype), report_(report) {}
    int status = kOk;

    void operator()(bool present, const char* name, Mat&, WeightSize, WeightKind kind,
                    Doc) override {
        const StoredWeight* stored = layer_->find_weight(name);
        if (!present || status != kOk || kind != WeightKind::kTagged || !stored) return;
        if (stored->data.dtype == DType::s8 || stored->data.dtype == dtype_) return;
        const Mat wide = stored->widened();
        Mat narrow = wide;
        if (dtype_ == DType::f16 && !fits_f16(wide)) {
            QUOLL_LOGW("[%s %s] %s: values beyond 65504 do not fit into f16, it stays %s",
                       layer_->type.c_str(), layer_->name.c_str(), name,
                       dtype_name(stored->data.dtype));
            return;
        }
        if (dtype_ == DType::f16) cast_float32_to_float16(wide, narrow);
        if (dtype_ == DType::bf16) cast_float32_to_bfloat16(wide, narrow);
        if (narrow.empty()) {
            status = kOutOfMemory;
            return;
        }
        layer_->set_weight(name, narrow);
        report_->count(std::string("weights stored as ") + dtype_name(dtype_));
    }

private:
    static bool fits_f16(const Mat& values) {
        for (int i = 0; i < values.w; i++)
            if (fabsf(values[i]) > 65504.f) return false;
        return true;
    }
    ModelLayer* layer_;
    DType dtype_;
    OptimizeReport* report_;
};

bool rounds_to_int8(const ModelLayer& layer) {
    for (const ModelWeight& weight : layer.weights)
        if (weight.name.find("int8_scale") != std::string::npos) return true;
    return false;
}

}  // namespace

int store_weights(Model* model, DType dtype, OptimizeReport* report) {
    for (ModelLayer& layer : model->layers) {
        if (layer.custom() || rounds_to_int8(layer)) continue;
        const std::unique_ptr<Layer> op = layer.make_operator();
        if (!op) return kError;
        StoreWeights store(&layer, dtype, report);
        op->visit_weights(store);
        QUOLL_RETURN_IF_ERROR(store.status);
    }
    return kOk;
}

void write_shape_hints(Model* model, const BlobSizes& sizes) {
    for (ModelLayer& layer : model->layers) {
        std::vector<int> hints;
        for (const std::string& blob : layer.outputs) {
            const auto found = sizes.find(blob);
            if (found == sizes.end() || found->second.dims > 3) break;
            const Shape& s = found->second;
            hints.insert(hints.end(), {s.dims, s.w, s.h, s.c});
        }
        const std::unique_ptr<Layer> op(create_layer_reference(layer.type.c_str()));
        if (op && schema_knows(*op, kHints)) continue;
        layer.params.copy(kHints, ParamDict());
        if (hints.empty() || hints.size() != 4 * layer.outputs.size()) continue;
        Mat values(Shape((int)hints.size(), DType::s32));
        if (values.empty()) return;  // hints are not worth an error
        std::copy(hints.begin(), hints.end(), (int*)values.data);
        layer.params.set(kHints, values);
    }
}

}  // namespace quoll
