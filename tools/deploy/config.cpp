#include "deploy/config.h"

#include <ctype.h>
#include <limits.h>
#include <string.h>

#include <algorithm>
#include <sstream>

#include <yaml-cpp/eventhandler.h>

#include "common/model_files.h"
#include "deploy/yaml_map.h"
#include "mem/embed.h"
#include "quoll/gpu.h"

namespace quoll {

namespace {

const size_t kMostAxes = 5;

bool is_file_name(const std::string& text) {
    const char kMore[] = "_.-";
    for (char ch : text)
        if (!isalnum((unsigned char)ch) && !strchr(kMore, ch)) return false;
    return !text.empty() && text[0] != '.' && text[0] != '-';
}

class ConfigReader {
public:
    ConfigReader(const std::string& file, DeployConfig* config) : problems_(file), config_(config) {
        const size_t slash = file.rfind('/');
        if (slash != std::string::npos) folder_ = file.substr(0, slash + 1);
    }

    void read(const YAML::Node& root);
    YamlProblems problems_;

private:
    void read_formats(YamlMap& map);
    void read_model(const YAML::Node& node, const std::string& tag, const YAML::Mark& mark);
    void read_files(YamlMap& map, DeployModel* model);
    void read_options(YamlMap& map, DeployModel* model);
    void read_sharing(YamlMap& map, DeployModel* model);
    void read_subgraph(const YAML::Node& node, const std::string& path, DeployModel* model);
    void read_threshold(YamlMap& map, DeployModel* model);
    std::vector<DeployTensor> read_tensors(YamlMap& map, const std::string& kind, bool required);
    void read_formats_of(YamlMap& map, const std::string& key, std::vector<DeployTensor>* tensors);
    void read_arrays(YamlMap& map, const std::string& key, std::vector<DeployTensor>* tensors);
    void read_ranges_and_types(YamlMap& map, std::vector<DeployTensor>* inputs);
    std::string read_sha256(YamlMap& map, const std::string& key);
    std::string path_of(YamlMap& map, const std::string& key, const std::string& text);
    bool count_is(YamlMap& map, const std::string& key, size_t got, size_t wanted);
    void without_effect(YamlMap& map, const std::string& key,
                        const std::vector<std::string>& values, const std::string& why);
    void unsupported(YamlMap& map, const std::string& key, const std::string& why);
    bool read_switch(YamlMap& map, const std::string& key) {
        return map.one_of(key, {"0", "1"}) == "1";
    }

    DeployConfig* config_;
    std::string folder_;
};

void ConfigReader::without_effect(YamlMap& map, const std::string& key,
                                  const std::vector<std::string>& values, const std::string& why) {
    const std::string value = map.one_of(key, values);
    if (!value.empty() && value != values[0])
        config_->notes.push_back(problems_.place(map.mark(key)) + map.path(key) +
                                 ": has no effect: " + why);
}

void ConfigReader::unsupported(YamlMap& map, const std::string& key, const std::string& why) {
    map.node(key);
    if (map.has(key)) map.problem(key, "is not supported: " + why);
}

std::string ConfigReader::path_of(YamlMap& map, const std::string& key, const std::string& text) {
    if (text.find("://") != std::string::npos) {
        map.problem(key, "expected the path of a file here, got '" + text + "': download it first");
        return "";
    }
    return text.empty() || text[0] == '/' ? text : folder_ + text;
}

void ConfigReader::read(const YAML::Node& root) {
    YamlMap map(root, "", &problems_);
    config_->library = map.text("library_name", "the name of the library", true);
    if (!config_->library.empty() && !is_file_name(config_->library))
        map.problem("library_name",
                    "expected letters, digits, '_', '-' and '.', got '" + config_->library + "'");
    read_formats(map);
    const YAML::Node models = map.node("models");
    if (!map.has("models")) {
        map.problem("models", "is missing, expected a mapping from names to models");
    } else {
        YamlMap tags(models, "models", &problems_);
        if (models.IsMap() && models.size() == 0) map.problem("models", "expected one or more");
        // In the file's order.
        for (const auto& entry : models.IsMap() ? models : YAML::Node(YAML::NodeType::Map))
            if (entry.first.IsScalar())
                read_model(entry.second, entry.first.Scalar(), entry.first.Mark());
    }
    map.finish();
}

void ConfigReader::read_formats(YamlMap& map) {
    for (const YamlText& abi :
         map.has("target_abis")
             ? map.texts("target_abis", "host, arm64-v8a, armeabi-v7a, or a list of them")
             : std::vector<YamlText>{{"host", YAML::Mark()}}) {
        const std::vector<std::string> known = {"host", "arm64-v8a", "armeabi-v7a"};
        if (std::find(known.begin(), known.end(), abi.text) == known.end())
            map.problem("target_abis", "expected " + either_of(known) + ", got '" + abi.text + "'");
        else if (std::find(config_->abis.begin(), config_->abis.end(), abi.text) !=
                 config_->abis.end())
            map.problem("target_abis", "'" + abi.text + "' is there twice");
        config_->abis.push_back(abi.text);
    }
    map.node("target_abis");
    if (map.has("target_socs"))
        for (const YamlText& soc : map.texts("target_socs", "all"))
            if (soc.text != "all")
                map.problem("target_socs", "expected all, got '" + soc.text +
                                               "': kernels are chosen for the processor when the "
                                               "program runs");
    map.node("target_socs");
    config_->graph_as_code = map.one_of("model_graph_format", {"file", "code"}) == "code";
    config_->weights_as_code = map.one_of("model_data_format", {"file", "code"}) == "code";
    if (config_->weights_as_code && !config_->graph_as_code)
        map.problem("model_data_format", "expected file, as model_graph_format is file");
}

void ConfigReader::read_model(const YAML::Node& node, const std::string& tag,
                              const YAML::Mark& mark) {
    const std::string path = "models." + tag;
    DeployModel model;
    model.tag = tag;
    model.place = problems_.place(mark);
    if (config_->graph_as_code ? !is_namespace(tag) || tag.find(':') != std::string::npos
                               : !is_file_name(tag))
        problems_.add(mark, path,
                      config_->graph_as_code
                          ? "is no C++ identifier, which the name of a model in code has to be"
                          : "expected letters, digits, '_', '-' and '.'");
    YamlMap map(node, path, &problems_);
    if (!node.IsMap()) return;
    read_files(map, &model);
    read_options(map, &model);
    read_threshold(map, &model);
    const YAML::Node graphs = map.node("subgraphs");
    if (!map.has("subgraphs"))
        map.problem("subgraphs", "is missing, expected a list of one mapping");
    else if (!graphs.IsSequence() || graphs.size() != 1)
        map.problem("subgraphs", "expected a list of one mapping");
    else
        read_subgraph(graphs[0], path + ".subgraphs", &model);
    map.finish();
    config_->models.push_back(model);
}

std::string ConfigReader::read_sha256(YamlMap& map, const std::string& key) {
    const char kExpected[] = "64 hexadecimal digits, as sha256sum prints them";
    std::string sum = map.text(key, kExpected);
    for (char& ch : sum) ch = (char)tolower((unsigned char)ch);
    if (map.has(key) && !sum.empty() &&
        (sum.size() != 64 || sum.find_first_not_of("0123456789abcdef") != std::string::npos))
        map.problem(key, std::string("expected ") + kExpected + ", got '" + sum + "'");
    return sum;
}

void ConfigReader::read_files(YamlMap& map, DeployModel* model) {
    model->platform = map.one_of("platform", {"onnx", "caffe", "ncnn"});
    if (!map.has("platform")) map.problem("platform", "is missing, expected onnx, caffe or ncnn");
    const std::string& platform = model->platform;
    const std::string graph = platform == "caffe"  ? "the path of a .prototxt"
                              : platform == "ncnn" ? "the path of a .param"
                                                   : "the path of a model";
    model->graph = path_of(map, "model_file_path", map.text("model_file_path", graph, true));
    model->graph_sha256 = read_sha256(map, "model_sha256_checksum");
    const bool two_files = platform == "caffe" || platform == "ncnn";
    if (platform == "onnx") {
        unsupported(map, "weight_file_path", "an ONNX model says itself where its weights are");
        unsupported(map, "weight_sha256_checksum", "it goes with weight_file_path");
        return;
    }
    const std::string weights = platform == "caffe" ? "the path of a .caffemodel" : "of a .bin";
    model->weights =
        path_of(map, "weight_file_path", map.text("weight_file_path", weights, two_files));
    model->weights_sha256 = read_sha256(map, "weight_sha256_checksum");
}

void ConfigReader::read_options(YamlMap& map, DeployModel* model) {
    const std::string type = map.one_of("data_type", {"fp16_fp32", "bf16_fp32", "fp32_fp32"});
    if (!type.empty()) model->precision = type.substr(0, 4);
    const std::string runtime = map.one_of("runtime", {"cpu", "gpu", "cpu+gpu", "cpu_gpu"});
    model->gpu = !runtime.empty() && runtime != "cpu";
    if (model->gpu && get_gpu_count() == 0)
        config_->notes.push_back(problems_.place(map.mark("runtime")) + map.path("runtime") +
                                 ": no Vulkan device here: checked and timed on the CPU");
    model->backend = map.one_of("backend", {"onnxruntime", "quoll"});
    if (model->backend == "onnxruntime" && model->platform != "onnx")
        map.problem("backend", "expected quoll for a model that is not onnx");
    model->winograd = map.one_of("winograd", {"0", "2", "4"}) != "0";
    model->strip_names = read_switch(map, "obfuscate");
    without_effect(map, "nnlib_graph_mode", {"0", "1"}, "there is no DSP");
    read_sharing(map, model);
    for (const char* key : {"quantize", "quantize_large_weights"})
        if (read_switch(map, key))
            map.problem(key, "expected 0: give a model that is quantized already");
    unsupported(map, "quantize_range_file", "give a model that is quantized already");
}

// How the model shares the device with the screen.
void ConfigReader::read_sharing(YamlMap& map, DeployModel* model) {
    const char kSlices[] = "limit_opencl_kernel_time", kQueue[] = "opencl_queue_window_size";
    model->slices = read_switch(map, kSlices);
    double most = 0;
    if (map.has(kQueue) && map.number(kQueue, 0, INT_MAX, &most)) model->max_in_flight = (int)most;
    map.node(kQueue);
    const auto without_gpu = [&](const char* key, bool asked) {
        if (asked && !model->gpu)
            config_->notes.push_back(problems_.place(map.mark(key)) + map.path(key) +
                                     ": has no effect: the runtime is the CPU");
    };
    without_gpu(kSlices, model->slices);
    without_gpu(kQueue, model->max_in_flight > 0);
}

void ConfigReader::read_threshold(YamlMap& map, DeployModel* model) {
    const std::string key = "validation_threshold";
    const YAML::Node node = map.node(key);
    if (!map.has(key)) return;
    YamlMap devices(node, map.path(key), &problems_);
    if (devices.has("CPU")) devices.number("CPU", 0, 1, &model->threshold);
    for (const char* device : {"CPU", "GPU", "HEXAGON", "APU"}) devices.node(device);
    devices.finish();
}

bool ConfigReader::count_is(YamlMap& map, const std::string& key, size_t got, size_t wanted) {
    if (got == wanted) return true;
    if (map.has(key) && got > 0 && wanted > 0)  // else there is a message already
        map.problem(key, "expected " + std::to_string(wanted) + ", one for each tensor, got " +
                             std::to_string(got));
    return false;
}

// `kind`: input, output or check; the keys are <kind>_tensors and <kind>_shapes.
std::vector<DeployTensor> ConfigReader::read_tensors(YamlMap& map, const std::string& kind,
                                                     bool required) {
    std::vector<DeployTensor> tensors;
    const std::string names = kind + "_tensors", shapes = kind + "_shapes";
    for (const YamlText& name : map.texts(names, "names of tensors", required)) {
        for (const DeployTensor& other : tensors)
            if (other.name == name.text)
                problems_.add(name.mark, map.path(names), "'" + name.text + "' is there twice");
        DeployTensor tensor;
        tensor.name = name.text;
        tensor.place = problems_.place(name.mark);
        tensors.push_back(tensor);
    }
    const char kExpected[] = "sizes as 1,224,224,3";
    const bool wanted = kind == "input" && required;
    const std::vector<YamlText> sizes = map.texts(shapes, kExpected, wanted);
    if (sizes.empty() || !count_is(map, shapes, sizes.size(), tensors.size())) return tensors;
    for (size_t i = 0; i < tensors.size(); i++) {
        tensors[i].place = problems_.place(sizes[i].mark);
        for (const std::string& part : split_commas(sizes[i].text)) {
            int64_t size;
            if (parse_whole(part, 1, 1 << 24, &size)) {
                tensors[i].sizes.push_back(size);
                continue;
            }
            problems_.add(sizes[i].mark, map.path(shapes),
                          std::string("expected ") + kExpected + ", got '" + sizes[i].text + "'");
            break;
        }
        if (tensors[i].sizes.size() > kMostAxes)
            problems_.add(
                sizes[i].mark, map.path(shapes),
                "expected at most 5 axes, the batch included, got '" + sizes[i].text + "'");
    }
    return tensors;
}

void ConfigReader::read_formats_of(YamlMap& map, const std::string& key,
                                   std::vector<DeployTensor>* tensors) {
    for (DeployTensor& tensor : *tensors) tensor.format = "NHWC";
    map.node(key);
    if (!map.has(key)) return;
    const std::vector<YamlText> formats = map.texts(key, "NHWC, NCHW or NONE");
    for (const YamlText& format : formats) {
        if (format.text == "NHWC" || format.text == "NCHW" || format.text == "NONE") continue;
        problems_.add(format.mark, map.path(key),
                      "expected NHWC, NCHW or NONE, got '" + format.text + "'");
        return;
    }
    if (formats.size() != 1 && !count_is(map, key, formats.size(), tensors->size())) return;
    for (size_t i = 0; i < tensors->size(); i++)
        (*tensors)[i].format = formats[formats.size() == 1 ? 0 : i].text;
}

void ConfigReader::read_arrays(YamlMap& map, const std::string& key,
                               std::vector<DeployTensor>* tensors) {
    map.node(key);
    if (!map.has(key)) return;
    const std::vector<YamlText> paths = map.texts(key, "paths of .npy files");
    if (!count_is(map, key, paths.size(), tensors->size())) return;
    for (size_t i = 0; i < paths.size(); i++)
        (*tensors)[i].array = path_of(map, key, paths[i].text);
}

void ConfigReader::read_ranges_and_types(YamlMap& map, std::vector<DeployTensor>* inputs) {
    const std::string ranges_key = "input_ranges", types_key = "input_data_types";
    map.node(ranges_key), map.node(types_key);
    if (map.has(ranges_key)) {
        const std::vector<YamlText> ranges = map.texts(ranges_key, "ranges as -1,1");
        const bool fits = count_is(map, ranges_key, ranges.size(), inputs->size());
        for (size_t i = 0; fits && i < ranges.size(); i++) {
            const std::vector<std::string> ends = split_commas(ranges[i].text);
            DeployTensor& input = (*inputs)[i];
            if (ends.size() != 2 || !parse_real(ends[0], &input.low) ||
                !parse_real(ends[1], &input.high) || input.low > input.high)
                problems_.add(ranges[i].mark, map.path(ranges_key),
                              "expected LOW,HIGH as -1,1, got '" + ranges[i].text + "'");
        }
    }
    if (!map.has(types_key)) return;
    const std::vector<YamlText> types = map.texts(types_key, "float32 or int32");
    if (!count_is(map, types_key, types.size(), inputs->size())) return;
    for (size_t i = 0; i < types.size(); i++) {
        (*inputs)[i].integer = types[i].text == "int32";
        if (types[i].text != "int32" && types[i].text != "float32")
            problems_.add(types[i].mark, map.path(types_key),
                          "expected float32 or int32, got '" + types[i].text + "'");
    }
}

void ConfigReader::read_subgraph(const YAML::Node& node, const std::string& path,
                                 DeployModel* model) {
    YamlMap map(node, path, &problems_);
    if (!node.IsMap()) return;
    model->inputs = read_tensors(map, "input", true);
    model->outputs = read_tensors(map, "output", true);
    model->checks = read_tensors(map, "check", false);
    read_formats_of(map, "input_data_formats", &model->inputs);
    read_formats_of(map, "output_data_formats", &model->outputs);
    for (DeployTensor& check : model->checks) check.format = "NHWC";
    read_ranges_and_types(map, &model->inputs);
    read_arrays(map, "validation_inputs_data", &model->inputs);
    read_arrays(map, "validation_outputs_data", &model->outputs);
    if (map.has("validation_outputs_data") && !map.has("validation_inputs_data"))
        map.problem("validation_outputs_data", "needs validation_inputs_data");
    read_threshold(map, model);
    unsupported(map, "accuracy_validation_script",
                "give the right answers as validation_outputs_data");
    map.finish();
}

class IgnoreEvents : public YAML::EventHandler {
    void OnDocumentStart(const YAML::Mark&) override {}
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
    void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
    void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  const std::string&) override {}
    void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                         YAML::EmitterStyle::value) override {}
    void OnSequenceEnd() override {}
    void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                    YAML::EmitterStyle::value) override {}
    void OnMapEnd() override {}
};

// Two for any more. Not by YAML::LoadAll, which finds documents without end in some texts (", :").
int count_documents(const std::string& text) {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    IgnoreEvents events;
    int count = 0;
    while (count < 2 && parser.HandleNextDocument(events)) count++;
    return count;
}

}  // namespace

int read_deploy_config(const std::string& path, DeployConfig* config,
                       std::vector<std::string>* problems) {
    std::string text;
    if (read_text(path, "YAML", &text)) return -1;
    ConfigReader reader(path, config);
    try {
        const int documents = count_documents(text);
        if (documents == 1)
            reader.read(YAML::Load(text));
        else
            reader.problems_.add(
                YAML::Mark::null_mark(), "",
                std::string("expected one document, got ") + (documents ? "several" : "none"));
    } catch (const YAML::Exception& e) {
        reader.problems_.add(e.mark, "", "no YAML: " + e.msg);
    }
    *problems = reader.problems_.lines();
    return problems->empty() ? 0 : -1;
}

}  // namespace quoll
