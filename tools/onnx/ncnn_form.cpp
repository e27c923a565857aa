#include "onnx/ncnn_form.h"

#include <algorithm>
#include <map>
#include <set>

#include "graph/model_edit.h"
#include "layer/control/input.h"
#include "layer/control/output.h"
#include "layer/elementwise/binaryop.h"
#include "layer/elementwise/unaryop.h"
#include "layer/tensor/stridedslice.h"
#include "quoll/layer.h"
#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {
namespace onnx_tool {

namespace {

// Type indexes of ncnn's layers lie below those of our own.
const int kOwnTypes = 200;

// Parameters of ncnn's layers that ncnn does not read.
const struct {
    const char* type;
    std::vector<int> ids;
} kOwnParams[] = {
    {"Convolution", {26, 27, 28, 29}},
    {"Convolution1D", {8, 26, 27, 28, 29}},
    {"Convolution3D", {8, 19, 26, 27, 28, 29}},
    {"ConvolutionDepthWise", {26, 27, 28}},
    {"ConvolutionDepthWise1D", {8, 26, 27, 28}},
    {"ConvolutionDepthWise3D", {19}},
    {"Deconvolution3D", {28}},
    {"DeconvolutionDepthWise3D", {28}},
    {"Gemm", {23}},
    {"GridSample", {4}},
    {"InnerProduct", {24, 25, 26, 27}},
    {"MemoryData", {22}},
    {"Packing", {4, 5}},
    {"Reshape", {3}},
    {"ROIPooling", {20}},
    {"Swish", {0}},
};

// ncnn's outputs are blobs that no layer reads. An input that is an output needs a layer between.
void remove_outputs(Model* model) {
    for (ModelLayer& output : model->layers) {
        if (!output.is<Output>()) continue;
        const std::string from = output.inputs[0];
        const int producer = model->producer(from);
        if (producer < 0 || model->layers[producer].is<Input>() ||
            model->consumers(from).size() > 1) {
            output.type = "Noop";
            output.params = ParamDict();
            continue;
        }
        std::vector<std::string>& made = model->layers[producer].outputs;
        *std::find(made.begin(), made.end(), from) = output.outputs[0];
        output.type.clear();
    }
    model->layers.erase(std::remove_if(model->layers.begin(), model->layers.end(),
                                       [](const ModelLayer& layer) { return layer.type.empty(); }),
                        model->layers.end());
}

std::vector<int> ints(const ParamDict& params, int id) {
    const Mat list = params.get(id, Mat());
    const int* const p = list;
    return std::vector<int>(p, p + list.w);
}

// A slice in steps of 1 between numbers is Crop's, to which an end of 0 is the axis' end and -233
// is no number.
int crop_instead(ModelLayer* layer) {
    if (!layer->is<StridedSlice>() || layer->inputs.size() > 1) return kOk;
    const std::vector<int> starts = ints(layer->params, 0), ends = ints(layer->params, 1),
                           axes = ints(layer->params, 2), steps = ints(layer->params, 3);
    const auto special = [](int end) { return end == 0 || end == -233; };
    if (starts.empty() || std::count(starts.begin(), starts.end(), -233) > 0 ||
        std::any_of(ends.begin(), ends.end(), special) ||
        std::any_of(steps.begin(), steps.end(), [](int step) { return step != 1; }))
        return kOk;
    layer->type = "Crop";
    layer->params = ParamDict();
    QUOLL_RETURN_IF_ERROR(layer->set("starts", starts));
    QUOLL_RETURN_IF_ERROR(layer->set("ends", ends));
    return axes.empty() ? kOk : layer->set("axes", axes);
}

// Of numbers that are not positive, ncnn's vector kernels have no powers: these are of the usual
// exponents.
void powers_instead(Model* model) {
    const int kPow = 6, kMul = 2;
    static const std::map<float, int> kFunctions = {
        {-1.f, UnaryOp::RECIPROCAL}, {-0.5f, UnaryOp::RSQRT}, {0.5f, UnaryOp::SQRT},
        {2.f, UnaryOp::SQUARE},      {3.f, UnaryOp::SQUARE},  {4.f, UnaryOp::SQUARE}};
    std::set<std::string> taken;
    for (const std::string& blob : model->blob_names()) taken.insert(blob);
    std::deque<ModelLayer> all;
    for (ModelLayer& layer : model->layers) {
        const float exponent = layer.params.get(2, 0.f);
        const auto function = kFunctions.find(exponent);
        if (!layer.is<BinaryOp>() || layer.params.get(0, 0) != kPow ||
            layer.params.get(1, 0) == 0 || function == kFunctions.end()) {
            all.push_back(std::move(layer));
            continue;
        }
        const auto add = [&](const char* type, const std::vector<std::string>& inputs,
                             const std::vector<std::string>& outputs) -> ModelLayer& {
            all.emplace_back();
            all.back().type = type;
            all.back().name = outputs[0] == layer.outputs[0] ? layer.name : outputs[0];
            all.back().inputs = inputs, all.back().outputs = outputs;
            return all.back();
        };
        const std::string x = layer.inputs[0], y = layer.outputs[0];
        const std::string square = exponent > 2.f ? unique_name(y + "/square", &taken) : y;
        std::string base = x, factor;
        if (exponent == 3.f) {
            base = unique_name(y + "/base", &taken), factor = unique_name(y + "/factor", &taken);
            add("Split", {x}, {base, factor});
        }
        add("UnaryOp", {base}, {square}).set("op_type", function->second);
        if (exponent == 3.f) add("BinaryOp", {square, factor}, {y}).set("op_type", kMul);
        if (exponent == 4.f) add("UnaryOp", {square}, {y}).set("op_type", function->second);
    }
    model->layers.swap(all);
}

// What ncnn lacks of a layer: "StridedSlice", "param 22 of MemoryData", or "".
std::string missing_of(const ModelLayer& layer) {
    const int index = layer_to_index(layer.type.c_str());
    if (index < 0 || index >= kOwnTypes) return layer.type;
    for (const auto& own : kOwnParams)
        if (layer.type == own.type)
            for (const int id : own.ids)
                if (layer.params.type(id) != 0)
                    return "param " + std::to_string(id) + " of " + layer.type;
    return "";
}

}  // namespace

int to_ncnn(Model* model) {
    remove_outputs(model);
    powers_instead(model);
    std::map<std::string, std::vector<std::string>> missing;
    for (ModelLayer& layer : model->layers) {
        QUOLL_RETURN_IF_ERROR(crop_instead(&layer));
        const std::string what = missing_of(layer);
        if (!what.empty()) missing[what].push_back(layer.name);
    }
    if (missing.empty()) return kOk;
    std::string list;
    for (const auto& entry : missing) {
        list += (list.empty() ? "" : ", ") + entry.first + " ('" + entry.second[0] + "'";
        if (entry.second.size() > 1)
            list += " and " + std::to_string(entry.second.size() - 1) + " more";
        list += ")";
    }
    QUOLL_LOGE(
        "--ncnn: ncnn has no %s; --shape of every input leaves out layers that compute sizes",
        list.c_str());
    return kError;
}

}  // namespace onnx_tool
}  // namespace quoll
