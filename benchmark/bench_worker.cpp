// bench_worker: keeps one network loaded and times it on request. compare.py drives it together
// with workers of other engines (peer_worker.py), which have the same protocol.
//
//   bench_worker PARAM BIN INPUT [run options]
//   bench_worker MODEL.onnx --input NAME=FILE.npy ... [run options]
//   bench_worker (PARAM BIN | MODEL.onnx) --load-only
//
// INPUT: f32 values of the net's only input, in the order of its axes. After loading and one run it
// writes a line of JSON: load_ms, first_ms, base_mib (resident before loading), version. Then a
// line for each line of stdin, until that ends: `run N` -> times_ms and cpu_ms (of all
// threads) of N runs; `output FILE` -> the
// last answer as f32 values in FILE, and its shape; `outputs FOLDER` -> the last answers as 0.npy,
// 1.npy, ... in FOLDER, and their number; `memory` -> peak_mib since the start, mallocs: calls of
// the system's allocator in one more run; `profile N` -> type, name and best of N times of each
// layer. --load-only: load_ms and load_cpu_ms (of all threads), then the end.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/model_inputs.h"
#include "common/npy.h"
#include "common/run_options.h"
#include "count_allocations.h"
#include "layer/control/output.h"
#include "memory_use.h"
#include "onnx/load_onnx.h"
#include "profile.h"

using namespace quoll;
using nlohmann::json;

namespace {

// Of all threads of the process.
double cpu_ms() {
    timespec t = {};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

// Where the network and its inputs come from.
struct Source {
    std::string model, bin, input;  // an ONNX model has neither bin nor input
    InputArguments inputs;
    bool load_only = false;
};

class Worker {
public:
    int load(const Source& source, const RunOptions& run, std::string* why);
    json command(const std::string& line);

private:
    int load_net(const Source& source);
    int read_inputs(const Source& source, std::string* why);
    int read_values(const std::string& path, std::string* why);
    std::vector<int> answers() const;
    const TensorSpec* array_of(int blob) const;
    int run_once(double* ms, LayerObserver* observer = nullptr);
    json write_output(const std::string& path) const;
    json write_outputs(const std::string& folder) const;
    json profile(int count);

    Net net_;
    std::vector<int> answers_;  // blobs
    std::vector<Mat> in_, out_;
};

int Worker::run_once(double* ms, LayerObserver* observer) {
    const double begin = now_ms();
    Extractor ex = net_.create_extractor();
    ex.set_layer_observer(observer);
    for (size_t i = 0; i < in_.size(); i++)
        QUOLL_RETURN_IF_ERROR(ex.input(net_.input_indexes()[i], in_[i]));
    for (size_t i = 0; i < out_.size(); i++)
        QUOLL_RETURN_IF_ERROR(ex.extract(answers_[i], out_[i]));
    *ms = now_ms() - begin;
    return kOk;
}

int Worker::load_net(const Source& source) {
    if (is_onnx(source.model)) return load_onnx_or_say(source.model, &net_);
    QUOLL_RETURN_IF_ERROR(net_.load_param(source.model.c_str()));
    return net_.load_model(source.bin.c_str());
}

// f32 values of the only input.
int Worker::read_values(const std::string& path, std::string* why) {
    *why = "expected a net with one input of known size, of 32-bit floats";
    if (net_.input_indexes().size() != 1 || net_.output_indexes().empty()) return -1;
    Mat in(input_shape(net_, net_.input_indexes()[0]));
    if (in.empty() || in.dtype != DType::f32) return -1;
    *why = path + ": expected " + std::to_string(in.total()) + " values for " +
           axes_text(in.logical_shape());
    std::ifstream file(path, std::ios::binary);
    for (int q = 0; q < in.c; q++)
        file.read((char*)in.channel(q).data, (std::streamsize)sizeof(float) * in.w * in.h);
    if (!file || file.peek() != EOF) return -1;
    in_.push_back(in);
    return 0;
}

int Worker::read_inputs(const Source& source, std::string* why) {
    if (!is_onnx(source.model)) return read_values(source.input, why);
    const std::vector<ModelInput> inputs = inputs_of(net_);
    std::map<std::string, Mat> blobs;
    const auto none = [](const std::string&) { return false; };
    QUOLL_RETURN_IF_ERROR(read_arrays(source.inputs.arrays, inputs, none, &blobs, why));
    for (const ModelInput& input : inputs) {
        *why = "give --input " + input.name + "=FILE.npy";
        if (!blobs.count(input.name)) return -1;
        in_.push_back(blobs[input.name]);
    }
    return 0;
}

// What the model declares as outputs, without blobs that nobody reads; for a plain net the first
// output.
std::vector<int> Worker::answers() const {
    std::vector<int> declared;
    for (int blob : net_.output_indexes())
        if (array_of(blob)) declared.push_back(blob);
    return declared.empty() ? std::vector<int>(1, net_.output_indexes()[0]) : declared;
}

const TensorSpec* Worker::array_of(int blob) const {
    const Output* output = as<Output>(net_.layers()[net_.blobs()[blob].producer]);
    return output && output->array.said() ? &output->array : nullptr;
}

int Worker::load(const Source& source, const RunOptions& run, std::string* why) {
    if (run.apply(&net_, why)) return -1;
    reset_peak_memory();
    const double base = resident_memory(), begin = now_ms();
    const double cpu_begin = cpu_ms();
    if (load_net(source)) return -1;
    const double load = now_ms() - begin;
    if (source.load_only) {
        std::cout << json{{"load_ms", load}, {"load_cpu_ms", cpu_ms() - cpu_begin}} << std::endl;
        return 0;
    }
    if (run.check(net_, why) || read_inputs(source, why)) return -1;
    why->clear();
    answers_ = answers();
    out_.resize(answers_.size());
    double first = 0;
    QUOLL_RETURN_IF_ERROR(run_once(&first));
    std::cout << json{{"load_ms", load},
                      {"first_ms", first},
                      {"base_mib", base},
                      {"version", QUOLL_VERSION_STRING}}
              << std::endl;
    return 0;
}

json Worker::write_output(const std::string& path) const {
    const Mat& out = out_[0];
    std::ofstream file(path, std::ios::binary);
    for (int q = 0; q < out.c; q++)
        file.write((const char*)out.channel(q).data,
                   (std::streamsize)sizeof(float) * out.w * out.h);
    file.close();
    if (file.fail()) return {{"error", path + " cannot be written"}};
    json shape = json::array();
    const Shape axes = out.logical_shape();
    for (int i = 0; i < axes.dims; i++) shape.push_back(axes.size(i));
    return {{"shape", shape}};
}

json Worker::write_outputs(const std::string& folder) const {
    for (size_t i = 0; i < out_.size(); i++) {
        const std::string path = folder + "/" + std::to_string(i) + ".npy";
        const TensorSpec* array = array_of(answers_[i]);
        if (array ? write_npy(path, *array, out_[i]) : write_npy(path, out_[i]))
            return {{"error", path + " cannot be written"}};
    }
    return {{"count", out_.size()}};
}

json Worker::profile(int count) {
    LayerProfile profile(net_);
    double ms = 0;
    for (int i = 0; i < count; i++) {
        profile.begin_run();
        if (run_once(&ms, &profile)) return {{"error", "the run failed"}};
        profile.end_run();
    }
    const json all = profile.to_json();
    json layers = json::array();
    for (const json& layer : all["layers"]) {
        const std::vector<double> times = layer["ms"];
        layers.push_back({{"type", layer["type"]},
                          {"name", layer["name"]},
                          {"what", layer["filter"].get<std::string>() + " " +
                                       layer["output"].get<std::string>()},
                          {"ms", *std::min_element(times.begin(), times.end())}});
    }
    return {{"layers", layers}};
}

json Worker::command(const std::string& line) {
    double ms = 0;
    if (line == "memory") {
        const size_t blocks = block_allocations(), small = small_allocations();
        if (run_once(&ms)) return {{"error", "the run failed"}};
        return {{"peak_mib", peak_memory()},
                {"blocks", block_allocations() - blocks},
                {"small", small_allocations() - small}};
    }
    if (line.compare(0, 7, "output ") == 0) return write_output(line.substr(7));
    if (line.compare(0, 8, "outputs ") == 0) return write_outputs(line.substr(8));
    if (line.compare(0, 8, "profile ") == 0) return profile(std::max(atoi(line.c_str() + 8), 1));
    const int count = line.compare(0, 4, "run ") == 0 ? atoi(line.c_str() + 4) : 0;
    if (count < 1)
        return {
            {"error",
             "'" + line + "': expected run N, output FILE, outputs FOLDER, profile N or memory"}};
    json times = json::array(), cpu = json::array();
    for (int i = 0; i < count; i++) {
        const double begin = cpu_ms();
        if (run_once(&ms)) return {{"error", "the run failed"}};
        times.push_back(ms);
        cpu.push_back(cpu_ms() - begin);
    }
    return {{"times_ms", times}, {"cpu_ms", cpu}};
}

}  // namespace

int main(int argc, char** argv) {
    Source source;
    std::string why;
    RunOptions run;
    CommandLine command_line("Runs one network as it is told on stdin.", "bench_worker");
    command_line.option("MODEL", source.model, "PARAM, or an ONNX model").required();
    command_line.option("BIN", source.bin);
    command_line.option("INPUT", source.input, "f32 values of the input");
    command_line.flag("--load-only", source.load_only,
                      "write the time that loading takes, run nothing");
    source.inputs.add_arrays_to(&command_line);
    run.add_to(&command_line);
    int exit_code = 0;
    if (!command_line.parse(argc, argv, &exit_code)) return exit_code;
    MessageLog log;
    Worker worker;
    if (worker.load(source, run, &why)) {
        if (why.empty()) why = log.reason();
        std::cout << json{{"error", why}} << std::endl;
        return log.fail("bench_worker", why);
    }
    if (source.load_only) return 0;
    for (std::string line; std::getline(std::cin, line);)
        std::cout << worker.command(line) << std::endl;
    return 0;
}
