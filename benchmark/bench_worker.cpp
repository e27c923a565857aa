// bench_worker: one network, kept loaded, timed when it is told to. compare.py drives it beside
// workers of other engines (peer_worker.py), which speak the same language.
//
//   bench_worker PARAM BIN INPUT [run options]
//
// INPUT: f32 values of the net's only input, in the order of its axes. After loading and one run it
// writes a line of JSON: load_ms, first_ms, base_mib (resident before loading), version. Then a
// line for each line of stdin, until that ends: `run N` -> times_ms of N runs; `output FILE` -> the
// last answer as f32 values in FILE, and its shape; `memory` -> peak_mib since the start, mallocs:
// calls of the system's allocator in one more run.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/run_options.h"
#include "count_allocations.h"
#include "memory_use.h"

using namespace quoll;
using nlohmann::json;

namespace {

double now_ms() {
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::milli>(time).count();
}

class Worker {
public:
    int load(const std::string& param, const std::string& bin, const std::string& input,
             const RunOptions& run, std::string* why);
    json command(const std::string& line);

private:
    int run_once(double* ms);
    json write_output(const std::string& path) const;

    Net net_;
    Mat in_, out_;
};

int Worker::run_once(double* ms) {
    const double begin = now_ms();
    Extractor ex = net_.create_extractor();
    QUOLL_RETURN_IF_ERROR(ex.input(net_.input_indexes()[0], in_));
    QUOLL_RETURN_IF_ERROR(ex.extract(net_.output_indexes()[0], out_));
    *ms = now_ms() - begin;
    return kOk;
}

int Worker::load(const std::string& param, const std::string& bin, const std::string& input,
                 const RunOptions& run, std::string* why) {
    if (run.apply(&net_, why)) return -1;
    reset_peak_memory();
    const double base = resident_memory(), begin = now_ms();
    if (net_.load_param(param.c_str()) || net_.load_model(bin.c_str())) return -1;
    const double load = now_ms() - begin;
    if (run.check(net_, why)) return -1;
    *why = param + ": expected a net with one input of known size";
    if (net_.input_indexes().size() != 1 || net_.output_indexes().empty()) return -1;
    in_.create(input_shape(net_, net_.input_indexes()[0]));
    if (in_.empty()) return -1;
    *why = input + ": expected " + std::to_string(in_.total()) + " values for " +
           axes_text(in_.logical_shape());
    std::ifstream file(input, std::ios::binary);
    for (int q = 0; q < in_.c; q++)
        file.read((char*)in_.channel(q).data, (std::streamsize)sizeof(float) * in_.w * in_.h);
    if (!file || file.peek() != EOF) return -1;
    why->clear();
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
    std::ofstream file(path, std::ios::binary);
    for (int q = 0; q < out_.c; q++)
        file.write((const char*)out_.channel(q).data,
                   (std::streamsize)sizeof(float) * out_.w * out_.h);
    file.close();
    if (file.fail()) return {{"error", path + " cannot be written"}};
    json shape = json::array();
    const Shape axes = out_.logical_shape();
    for (int i = 0; i < axes.dims; i++) shape.push_back(axes.size(i));
    return {{"shape", shape}};
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
    const int count = line.compare(0, 4, "run ") == 0 ? atoi(line.c_str() + 4) : 0;
    if (count < 1) return {{"error", "'" + line + "': expected run N, output FILE or memory"}};
    json times = json::array();
    for (int i = 0; i < count; i++) {
        if (run_once(&ms)) return {{"error", "the run failed"}};
        times.push_back(ms);
    }
    return {{"times_ms", times}};
}

}  // namespace

int main(int argc, char** argv) {
    std::string param, bin, input, why;
    RunOptions run;
    CommandLine command_line("Runs one network as it is told on stdin.", "bench_worker");
    command_line.option("PARAM", param).required();
    command_line.option("BIN", bin).required();
    command_line.option("INPUT", input, "f32 values of the input").required();
    run.add_to(&command_line);
    int exit_code = 0;
    if (!command_line.parse(argc, argv, &exit_code)) return exit_code;
    MessageLog log;
    Worker worker;
    if (worker.load(param, bin, input, run, &why)) return log.fail("bench_worker", why);
    for (std::string line; std::getline(std::cin, line);)
        std::cout << worker.command(line) << std::endl;
    return 0;
}
