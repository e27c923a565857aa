#include "common/model_inputs.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

#include <algorithm>

#include "common/npy.h"
#include "common/run_options.h"
#include "graph/model.h"
#include "graph/param_file.h"
#include "layer/common/elementtype.h"
#include "layer/control/input.h"

namespace quoll {

namespace {

const int kBool = 9;  // as ONNX numbers types

ModelInput input_of(const std::string& name, const Layer& layer) {
    ModelInput input;
    input.name = name;
    std::vector<Shape> tops;
    if (layer.infer_shapes({}, tops) == kOk && !tops.empty()) input.size = tops[0];
    if (const Input* op = as<Input>(&layer)) input.array = op->array;
    return input;
}

const ModelInput* find_input(const std::vector<ModelInput>& inputs, const std::string& name) {
    for (const std::string& word : {name, param_word(name)})
        for (const ModelInput& input : inputs)
            if (input.name == word) return &input;
    return nullptr;
}

// "1,3,224,224"
bool parse_axes(const std::string& text, std::vector<int>* axes) {
    const char* p = text.c_str();
    for (;;) {
        char* end;
        errno = 0;
        const long value = strtol(p, &end, 10);
        if (end == p || errno || value < 1 || value > (1 << 24) || axes->size() == 64) return false;
        axes->push_back((int)value);
        if (*end == '\0') return true;
        if (*end != ',') return false;
        p = end + 1;
    }
}

// The blob of an array with these axes; false if it can have none.
bool blob_size(std::vector<int> axes, bool batch, Shape* shape) {
    *shape = Shape(1);
    if (batch && !axes.empty()) {
        shape->n = axes[0];
        axes.erase(axes.begin());
    }
    if (axes.empty()) axes.push_back(1);
    while (axes.size() > 4) {  // the outermost ones share an axis of the blob
        if (axes[0] > INT_MAX / axes[1]) return false;
        axes[1] *= axes[0];
        axes.erase(axes.begin());
    }
    shape->dims = (int)axes.size();
    for (int i = 0; i < shape->dims; i++) shape->set_size(i, axes[i]);
    return true;
}

bool size_of(const ModelInput* input, const std::vector<int>& axes, Shape* shape) {
    const int count = (int)axes.size();
    if (input && input->array.rank == count) return blob_size(axes, input->array.batch != 0, shape);
    const bool batch = input && input->size.dims > 0 && input->size.dims + 1 == count;
    return count <= (batch ? 5 : 4) && blob_size(axes, batch, shape);
}

}  // namespace

DType ModelInput::dtype() const {
    const ElementInfo* info = array.said() ? element_info(array.element_type) : nullptr;
    return info ? info->dtype : DType::f32;
}

Shape ModelInput::whole_size() const {
    Shape whole = size;
    if (whole.dims && array.said() && array.batch) whole.n = std::max(1, array.size(0));
    return whole;
}

void add_batches(const std::vector<ModelInput>& inputs, BlobSizes* sizes) {
    for (const ModelInput& input : inputs)
        if (input.whole_size().n > 1) sizes->emplace(input.name, input.whole_size());
}

std::vector<ModelInput> inputs_of(const Model& model) {
    std::vector<ModelInput> inputs;
    for (const std::string& blob : input_blobs(model)) {
        const std::unique_ptr<Layer> op = model.layers[model.producer(blob)].make_operator();
        if (op) inputs.push_back(input_of(blob, *op));
    }
    return inputs;
}

std::vector<ModelInput> inputs_of(const Net& net) {
    std::vector<ModelInput> inputs;
    for (int blob : net.input_indexes()) {
        const Blob& b = net.blobs()[blob];
        inputs.push_back(
            input_of(b.name.empty() ? std::to_string(blob) : b.name, *net.layers()[b.producer]));
        if (b.shape.dims != 0) inputs.back().size = b.shape.logical_shape();
    }
    return inputs;
}

void InputArguments::add_arrays_to(CommandLine* line) {
    line->option("-i,--input", arrays, "NAME=FILE.npy, once for each input").one_at_a_time();
}

void InputArguments::add_shapes_to(CommandLine* line) {
    line->option("--shape,--size", shapes,
                 "NAME=1,3,224,224: axes of an input array, once for each whose size the model "
                 "leaves open; C,H,W where it says no array")
        .one_at_a_time();
}

void InputArguments::add_range_to(CommandLine* line) {
    line->option("--range", range,
                 "LOW HIGH of random inputs; default -1 1, for integers 0 1, for bytes 0 127")
        .takes(2, 2);
}

int parse_shapes(const std::vector<std::string>& texts, const std::vector<ModelInput>& inputs,
                 BlobSizes* sizes, std::string* why) {
    for (const std::string& text : texts) {
        const size_t at = text.rfind('=');
        std::vector<int> axes;
        if (at == std::string::npos || at == 0 || !parse_axes(text.substr(at + 1), &axes)) {
            *why = "'" + text + "': expected NAME=SIZES, as data=3,224,224";
            return -1;
        }
        const std::string name = text.substr(0, at);
        const ModelInput* input = find_input(inputs, name);
        Shape shape;
        if (!size_of(input, axes, &shape)) {
            *why = "'" + text + "': " + std::to_string(axes.size()) + " axes, expected " +
                   (input && input->array.said() ? std::to_string(input->array.rank) : "1 to 4");
            return -1;
        }
        if (input) shape.dtype = input->dtype();
        (*sizes)[input ? input->name : name] = shape;
    }
    return 0;
}

int read_arrays(const std::vector<std::string>& texts, const std::vector<ModelInput>& inputs,
                const std::function<bool(const std::string&)>& known,
                std::map<std::string, Mat>* blobs, std::string* why) {
    for (const std::string& text : texts) {
        // A name may contain '='.
        size_t at = text.rfind('=');
        const ModelInput* input = nullptr;
        while (at != std::string::npos && at > 0) {
            input = find_input(inputs, text.substr(0, at));
            if (input || known(text.substr(0, at))) break;
            at = text.rfind('=', at - 1);
        }
        if (at == std::string::npos || at == 0) {
            *why = "'" + text + "': expected NAME=FILE.npy with the name of a blob";
            return -1;
        }
        *why = input ? input->name : text.substr(0, at);
        const std::string file = text.substr(at + 1);
        Mat* const mat = &(*blobs)[*why];
        if (input && input->array.said() ? read_npy(file, input->array, mat)
                                         : read_npy(file, false, mat))
            return -1;
    }
    return 0;
}

std::vector<std::string> paths_of(const std::vector<std::string>& texts) {
    std::vector<std::string> paths;
    for (const std::string& text : texts)
        for (size_t at = text.find('='); at != std::string::npos; at = text.find('=', at + 1))
            paths.push_back(text.substr(at + 1));
    return paths;
}

Mat random_input(const ModelInput& input, const Shape& size, const std::vector<double>& range,
                 const std::function<double()>& next) {
    Shape shape = size;
    shape.dtype = input.dtype();
    const bool floats = shape.dtype == DType::f32;
    const bool bytes = dtype_size(shape.dtype) == 1 && input.array.element_type != kBool;
    double low = range.empty() ? (floats ? -1 : 0) : range[0];
    double high = range.empty() ? (bytes ? 127 : 1) : range[1];
    if (!floats) low = ceil(low), high = floor(high);
    Mat m(shape);
    for (int n = 0; n < shape.n && !m.empty(); n++) {
        Mat item = shape.n > 1 ? m.batch(n) : m;
        for (int q = 0; q < item.c; q++) {
            Mat channel = item.channel(q);
            for (size_t i = 0; i < (size_t)item.w * item.h * item.d; i++) {
                const double u = next();
                const double v = floats ? low + u * (high - low)
                                        : std::min(high, low + floor(u * (high - low + 1)));
                if (floats)
                    ((float*)channel.data)[i] = (float)v;
                else if (shape.dtype == DType::s32)
                    ((int*)channel.data)[i] = (int)v;
                else if (shape.dtype == DType::s8)
                    ((signed char*)channel.data)[i] = (signed char)v;
                else
                    ((unsigned char*)channel.data)[i] = (unsigned char)v;
            }
        }
    }
    return m;
}

}  // namespace quoll
