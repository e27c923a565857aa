// The steps from a model's own files to those that are packed.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <fstream>

#include "common/model_files.h"
#include "common/model_inputs.h"
#include "common/npy.h"
#include "common/process.h"
#include "common/run_options.h"
#include "common/sha256.h"
#include "deploy/deploy.h"
#include "deploy/tensors.h"
#include "quoll/gpu.h"
#include "quoll/log.h"

using nlohmann::json;

namespace quoll {

ModelDeployment::ModelDeployment(const DeployConfig& config, const DeployModel& model,
                                 const DeployOptions& options)
    : config_(config), model_(model), options_(options), folder_(options.work + "/" + model.tag) {
    report_["name"] = model.tag;
    report_["platform"] = model.platform;
    report_["storage"] = model.precision;
}

static void pass_on(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    while (std::getline(file, line))
        if (!line.empty()) fprintf(stderr, "%s\n", line.c_str());
}

DeployStatus ModelDeployment::run(std::vector<std::string> words, const std::string& out,
                                  int allowed, int* code) {
    const std::string program = words[0], errors = path("errors.txt");
    words[0] = options_.programs + program;
    *code = run_process(words, out.empty() ? path("out.txt") : out, errors);
    if (*code < 0) return fail(model_.place + "models." + model_.tag);
    pass_on(errors);
    if (*code == 0 || *code == allowed) return kDeployed;
    const std::string line = last_line(errors);
    const std::string why =
        line.empty() ? program + " ended with code " + std::to_string(*code) : line;
    return fail(model_.place + "models." + model_.tag + ": " + why);
}

DeployStatus ModelDeployment::check_sum(const std::string& file, const std::string& sum,
                                        const std::string& key) {
    const std::string got = sha256_of_file(file);
    const std::string where = model_.place + "models." + model_.tag + "." + key;
    if (got.empty()) return fail(where);
    report_["sources"].push_back({{"file", file.substr(file.rfind('/') + 1)}, {"sha256", got}});
    if (sum.empty() || got == sum) return kDeployed;
    return fail(where + ": expected " + sum + ", " + file + " has " + got);
}

DeployStatus ModelDeployment::check_files() {
    if (mkdir(folder_.c_str(), 0777) && errno != EEXIST)
        return fail(folder_ + ": " + strerror(errno));
    if (DeployStatus s = check_sum(model_.graph, model_.graph_sha256, "model_sha256_checksum"))
        return s;
    if (model_.weights.empty()) return kDeployed;
    return check_sum(model_.weights, model_.weights_sha256, "weight_sha256_checksum");
}

bool ModelDeployment::is_batched(const DeployTensor& tensor) const {
    return model_.platform != "ncnn" || tensor.format != "NONE";
}

static std::vector<std::string> joined(std::vector<std::string> words,
                                       const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

// Of programs that run the model as it will be run.
std::vector<std::string> ModelDeployment::run_options() const {
    std::vector<std::string> words = {"--precision", model_.precision};
    if (options_.threads) words = joined(words, {"--threads", std::to_string(options_.threads)});
    if (model_.gpu && get_gpu_count() > 0)
        words = joined(words, {"--gpu", std::to_string(get_default_gpu_index())});
    return words;
}

std::vector<std::string> ModelDeployment::size_options() const {
    std::vector<std::string> words;
    for (size_t i = 0; i < shapes_.size(); i++) {
        const std::string axes = axes_text(shapes_[i]);
        words.insert(words.end(),
                     {"--size", model_.inputs[i].name + "=" + axes.substr(1, axes.size() - 2)});
    }
    return words;
}

std::vector<std::string> ModelDeployment::cut_options(bool with_checks) const {
    std::vector<std::string> words;
    for (const DeployTensor& input : model_.inputs)
        words.insert(words.end(), {"--input", input.name});
    for (const DeployTensor& output : model_.outputs)
        words.insert(words.end(), {"--output", output.name});
    for (size_t i = 0; with_checks && i < model_.checks.size(); i++)
        words.insert(words.end(), {"--output", model_.checks[i].name});
    return words;
}

static std::string list_of(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text.empty() ? "none" : text;
}

// The tensors are blobs of the model; the inputs get their sizes.
DeployStatus ModelDeployment::find_inputs(const Model& model) {
    BlobSizes known, given;
    infer_blob_sizes(model, {}, &known);
    for (const auto& tensors : {model_.inputs, model_.outputs, model_.checks})
        for (const DeployTensor& tensor : tensors)
            if (model.producer(tensor.name) < 0)
                return fail_at(tensor, "no tensor '" + tensor.name + "' is in the model; inputs: " +
                                           list_of(input_blobs(model)) +
                                           "; outputs: " + list_of(output_blobs(model)));
    for (const DeployTensor& input : model_.inputs) {
        const auto found = known.find(input.name);
        Shape shape;
        std::string why;
        if (blob_shape(input, is_batched(input), found == known.end() ? Shape() : found->second,
                       &shape, &why))
            return fail_at(input, "input_shapes: " + why);
        shapes_.push_back(shape);
        given[input.name] = shape;
        report_["inputs"].push_back({{"name", input.name}, {"shape", size_text(shape)}});
    }
    return kDeployed;
}

// To <folder>/reference.param and .bin, all of fp32, nothing merged.
DeployStatus ModelDeployment::convert() {
    std::string param = path("converted.param"), bin = path("converted.bin");
    int code;
    DeployStatus status = kDeployed;
    if (model_.platform == "onnx") {
        std::vector<std::string> words =
            joined({"onnx2engine", model_.graph, param, bin}, cut_options(true));
        for (const DeployTensor& input : model_.inputs)
            words.insert(words.end(),
                         {"--shape", input.name + "=" + sizes_text(engine_order(input))});
        status = run(words, "", 0, &code);
    } else if (model_.platform == "caffe") {
        status = run({"caffe2engine", model_.graph, model_.weights, param, bin}, "", 0, &code);
    } else {
        param = model_.graph, bin = model_.weights;
    }
    if (status) return status;
    Model model;
    if (load_model_files(param, bin, &model)) return fail(model_.place + "models." + model_.tag);
    if ((status = find_inputs(model))) return status;
    std::vector<std::string> words = {
        "engineoptimize",      param,  bin,           path("reference.param"),
        path("reference.bin"), "fp32", "--no-fusion", "--no-hints"};
    words = joined(joined(words, size_options()), cut_options(true));
    if ((status = run(words, "", 0, &code))) return status;
    Model cut;
    if (load_model_files(path("reference.param"), "", &cut))
        return fail(model_.place + "models." + model_.tag);
    const std::vector<std::string> inputs = input_blobs(cut);
    for (const std::string& input : inputs) {
        bool named = false;
        for (const DeployTensor& tensor : model_.inputs) named |= tensor.name == input;
        if (!named)
            return fail_at(model_.inputs[0], "input_tensors: the outputs need '" + input + "' too");
    }
    return kDeployed;
}

DeployStatus ModelDeployment::optimize() {
    int code;
    const std::vector<std::string> words = {"engineoptimize", path("reference.param"),
                                            path("reference.bin")};
    std::vector<std::string> more = joined({model_.precision}, size_options());
    if (!model_.checks.empty()) {
        std::vector<std::string> out = {path("checked.param"), path("checked.bin")};
        out = joined(out, more);
        for (const DeployTensor& check : model_.checks) out = joined(out, {"--keep", check.name});
        if (DeployStatus s = run(joined(words, out), "", 0, &code)) return s;
    }
    more = joined({path(model_.tag + ".param"), path(model_.tag + ".bin")}, more);
    more = joined(more, cut_options(false));
    if (model_.strip_names) more.push_back("--strip-names");
    if (DeployStatus s = run(joined(words, more), path("optimize.txt"), 0, &code)) return s;
    std::ifstream file(path("optimize.txt"));
    std::string line;
    while (std::getline(file, line)) printf("  %s\n", line.c_str());
    return check_outputs();
}

DeployStatus ModelDeployment::check_outputs() {
    Model model;
    if (load_model_files(path(model_.tag + ".param"), "", &model))
        return fail(model_.place + "models." + model_.tag);
    BlobSizes given;
    for (size_t i = 0; i < shapes_.size(); i++) given[model_.inputs[i].name] = shapes_[i];
    infer_blob_sizes(model, given, &sizes_);
    for (const DeployTensor& output : model_.outputs) {
        const auto found = sizes_.find(output.name);
        const Shape shape = found == sizes_.end() ? Shape() : found->second;
        report_["outputs"].push_back({{"name", output.name}, {"shape", size_text(shape)}});
        if (output.sizes.empty() || shape.dims == 0 || same_but_ones(engine_order(output), shape))
            continue;
        return fail_at(output, "output_shapes: '" + output.name + "' is " +
                                   sizes_text(output.sizes) + " " + output.format +
                                   " here, the model gives " + size_text(shape));
    }
    return kDeployed;
}

// Writes the inputs' arrays; *inputs are the options that name them.
DeployStatus ModelDeployment::make_arrays(std::vector<std::string>* inputs) {
    Model model;
    if (load_model_files(path(model_.tag + ".param"), "", &model))
        return fail(model_.place + "models." + model_.tag);
    const std::vector<ModelInput> specs = inputs_of(model);
    for (size_t i = 0; i < model_.inputs.size(); i++) {
        const std::string file = path("in" + std::to_string(i) + ".npy");
        Mat blob;
        std::string why;
        // As the converted model's Input says, if it does.
        const auto spec = std::find_if(specs.begin(), specs.end(), [&](const ModelInput& input) {
            return input.name == model_.inputs[i].name && input.array.said();
        });
        if (make_blob(model_.inputs[i], shapes_[i], (unsigned)i + 1, &blob, &why) ||
            (spec == specs.end() ? write_npy(file, blob) : write_npy(file, spec->array, blob)))
            return fail_at(model_.inputs[i], "validation_inputs_data: " + why);
        inputs->insert(inputs->end(), {"-i", model_.inputs[i].name + "=" + file});
    }
    return kDeployed;
}

namespace {

// What enginevalidate says of an output: "PASS prob: similarity 1.000000, ..., max error 1.2e-07".
struct Verdict {
    bool passed;
    std::string output, similarity, max_error;
};

// False for lines that say something else.
bool read_verdict(const std::string& line, Verdict* verdict) {
    const std::string head = line.substr(0, 5), similarity = ": similarity ", error = "max error ";
    const size_t at = line.rfind(similarity), error_at = line.rfind(error);
    if ((head != "PASS " && head != "FAIL ") || at == line.npos || error_at == line.npos)
        return false;
    const auto text = [&](size_t begin, char end) {
        return line.substr(begin, line.find(end, begin) - begin);
    };
    verdict->passed = head == "PASS ";
    verdict->output = line.substr(head.size(), at - head.size());
    verdict->similarity = text(at + similarity.size(), ',');
    verdict->max_error = text(error_at + error.size(), ' ');
    return true;
}

}  // namespace

// One run of enginevalidate; its lines go to stdout and into the report.
DeployStatus ModelDeployment::compare(const std::string& param,
                                      const std::vector<std::string>& reference,
                                      const std::vector<std::string>& inputs,
                                      const std::string& against) {
    std::vector<std::string> words = {"enginevalidate", path(param + ".param"),
                                      path(param + ".bin")};
    words = joined(joined(words, inputs), reference);
    if (model_.threshold > 0) {
        char text[40];
        snprintf(text, sizeof(text), "%.9g", model_.threshold);
        words = joined(words, {"--threshold", text});
    }
    words = joined(words, run_options());
    int code;
    if (DeployStatus s = run(words, path("validate.txt"), kDeployWrongAnswers, &code)) return s;
    printf("  against %s:\n", against.c_str());
    std::ifstream file(path("validate.txt"));
    std::string line;
    while (std::getline(file, line)) {
        printf("    %s\n", line.c_str());
        Verdict verdict;
        if (read_verdict(line, &verdict))
            report_["validation"].push_back({{"output", verdict.output},
                                             {"against", against},
                                             {"similarity", verdict.similarity},
                                             {"max_error", verdict.max_error},
                                             {"passed", verdict.passed}});
    }
    if (code == 0) return kDeployed;
    what_ = model_.place + "models." + model_.tag +
            ": the answers are wrong: " + last_line(path("validate.txt"));
    return kDeployWrongAnswers;
}

// Why ONNX Runtime cannot be the yardstick, "" if it can.
std::string ModelDeployment::onnx_trouble() {
    const char kScript[] =
        "import sys\n"
        "try:\n"
        "    import numpy, onnxruntime\n"
        "    s = onnxruntime.InferenceSession(sys.argv[1], providers=['CPUExecutionProvider'])\n"
        "except Exception as e:\n"
        "    sys.exit(type(e).__name__ + ': ' + (str(e).splitlines() or [''])[0])\n"
        "print('\\n'.join(['input ' + v.name for v in s.get_inputs()] +\n"
        "                ['output ' + v.name for v in s.get_outputs()]))\n";
    const std::string out = path("onnx.txt"), errors = path("errors.txt");
    if (run_process({options_.python, "-c", kScript, model_.graph}, out, errors))
        return "ONNX Runtime does not run in " + options_.python + ": " + last_line(errors);
    std::ifstream file(out);
    std::string line;
    size_t inputs = 0, outputs = 0;
    while (std::getline(file, line)) {
        for (const DeployTensor& input : model_.inputs) inputs += line == "input " + input.name;
        for (const DeployTensor& output : model_.outputs)
            outputs += line == "output " + output.name;
    }
    if (inputs == model_.inputs.size() && outputs == model_.outputs.size()) return "";
    return "ONNX Runtime takes a model's own inputs and outputs only";
}

DeployStatus ModelDeployment::compare_all(const std::vector<std::string>& inputs) {
    std::vector<std::string> expected;
    for (size_t i = 0; i < model_.outputs.size(); i++) {
        const DeployTensor& output = model_.outputs[i];
        if (output.array.empty()) continue;
        if (output.sizes.empty())
            return fail_at(output, "validation_outputs_data needs output_shapes");
        const auto known = sizes_.find(output.name);
        Shape shape;
        Mat blob;
        std::string why;
        const std::string file = path("out" + std::to_string(i) + ".npy");
        if (blob_shape(output, is_batched(output), known == sizes_.end() ? Shape() : known->second,
                       &shape, &why) ||
            make_blob(output, shape, 0, &blob, &why) || write_npy(file, blob))
            return fail_at(output, "validation_outputs_data: " + why);
        expected = joined(expected, {"--expect", output.name + "=" + file});
    }
    if (!expected.empty())
        if (DeployStatus s = compare(model_.tag, expected, inputs, "validation_outputs_data"))
            return s;
    const std::vector<std::string> reference = {"--against-model", path("reference.param"),
                                                path("reference.bin")};
    if (model_.platform == "onnx" && model_.backend != "quoll") {
        const std::string trouble = onnx_trouble();
        if (trouble.empty())
            return compare(model_.tag, {"--onnx", model_.graph, "--python", options_.python},
                           inputs, "ONNX Runtime");
        if (!model_.backend.empty())
            return fail(model_.place + "models." + model_.tag + ".backend: " + trouble);
        fprintf(stderr, "%smodels.%s: compared with the model before optimisation instead: %s\n",
                model_.place.c_str(), model_.tag.c_str(), trouble.c_str());
    }
    return compare(model_.tag, reference, inputs, "the model before optimisation");
}

DeployStatus ModelDeployment::validate() {
    std::vector<std::string> inputs;
    if (DeployStatus s = make_arrays(&inputs)) return s;
    if (DeployStatus s = compare_all(inputs)) return s;
    if (model_.checks.empty()) return kDeployed;
    std::vector<std::string> reference = {"--against-model", path("reference.param"),
                                          path("reference.bin"), "--no-fusion"};
    for (const DeployTensor& check : model_.checks)
        reference = joined(reference, {"--blob", check.name});
    return compare("checked", reference, inputs, "the model before optimisation, check_tensors");
}

DeployStatus ModelDeployment::benchmark() {
    std::string shapes;
    Model model;
    if (load_model_files(path(model_.tag + ".param"), "", &model))
        return fail(model_.place + "models." + model_.tag);
    for (const std::string& blob : input_blobs(model)) {
        for (size_t i = 0; i < model_.inputs.size(); i++) {
            if (model_.inputs[i].name != blob) continue;
            shapes += shapes.empty() ? "[" : ",[";
            for (int axis = shapes_[i].dims - 1; axis >= 0; axis--)
                shapes += std::to_string(shapes_[i].size(axis)) + (axis ? "," : "]");
        }
    }
    const std::string rounds = std::to_string(options_.rounds), file = path("benchmark.json");
    std::vector<std::string> words = {"benchmark",
                                      rounds,
                                      "param=" + path(model_.tag + ".param"),
                                      "bin=" + path(model_.tag + ".bin"),
                                      "shape=" + shapes,
                                      "--json",
                                      file};
    words = joined(words, run_options());
    int code;
    if (DeployStatus s = run(words, "", 0, &code)) return s;
    std::ifstream in(file);
    const json all = json::parse(in, nullptr, false);
    if (all.is_discarded() || !all.contains("rows") || all["rows"].size() != 1)
        return fail(file + ": no report of the benchmark");
    const json& row = all["rows"][0];
    json& report = report_["benchmark"] = row;
    report.erase("times_ms"), report.erase("inputs"), report.erase("model");
    report["rounds"] = options_.rounds;
    report["threads"] = all.value("threads", 0);
    report["machine"] = all.value("machine", json());
    printf("  %d runs: min %.3f, average %.3f ms; %.1f MiB at most\n", options_.rounds,
           row.value("min_ms", 0.), row.value("avg_ms", 0.), row.value("peak_mib", 0.));
    return kDeployed;
}

DeployStatus ModelDeployment::embed() {
    const std::string base = path(model_.tag);
    std::vector<std::string> words = {
        "ncnn2mem",          base + ".param", base + ".bin",
        base + ".id.h",      base + ".mem.h", "--param-bin",
        base + ".param.bin", "--namespace",   library_namespace(config_.library)};
    if (!config_.weights_as_code) words.push_back("--external-weights");
    int code;
    if (config_.graph_as_code)
        if (DeployStatus s = run(words, "", 0, &code)) return s;
    for (const std::string& file : files()) {
        const std::string sum = sha256_of_file(path(file));
        struct stat st;
        if (sum.empty() || stat(path(file).c_str(), &st)) return fail(path(file));
        report_["files"].push_back(
            {{"file", file}, {"sha256", sum}, {"bytes", (long long)st.st_size}});
    }
    return kDeployed;
}

std::vector<std::string> ModelDeployment::files() const {
    if (!config_.graph_as_code) return {model_.tag + ".param", model_.tag + ".bin"};
    std::vector<std::string> files = {model_.tag + ".id.h", model_.tag + ".mem.h"};
    if (!config_.weights_as_code) files.push_back(model_.tag + ".bin");
    return files;
}

std::string ModelDeployment::interface_text(const std::vector<DeployTensor>& tensors) const {
    std::string text;
    for (const DeployTensor& tensor : tensors) {
        const auto found = sizes_.find(tensor.name);
        text += (text.empty() ? "" : ", ") + tensor.name + " " +
                size_text(found == sizes_.end() ? Shape() : found->second);
    }
    return text;
}

}  // namespace quoll
