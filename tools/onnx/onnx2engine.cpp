// onnx2engine: converts an ONNX model.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/cli.h"
#include "common/model_files.h"
#include "common/output_files.h"
#include "common/process.h"
#include "common/progress.h"
#include "common/sha256.h"
#include "onnx/check_script.h"
#include "onnx/compact.h"
#include "onnx/convert.h"
#include "onnx/ncnn_form.h"
#include "onnx/run_model.h"
#include "quoll/datawriter.h"
#include "quoll/log.h"

using namespace quoll;

namespace {

struct Arguments {
    std::string onnx, param, bin, report, page_to_check;
    std::vector<std::string> shapes, constants, inputs, outputs;
    bool operators = false, fp16 = false, bf16 = false, keep_names = false, check = false;
    bool sha256 = false, suggest = false, ncnn = false, no_limits = false;
};

const char kFooter[] =
    "The model's inputs and outputs keep their names, shapes and types: enginerun takes and gives "
    "arrays as\nONNX has them. Exit code: 0, 1 when the model is at fault (all nodes that cannot "
    "be "
    "converted are listed,\nand nothing is written), 2 for a wrong command line.\n";

void add_options(CommandLine* line, Arguments* a) {
    line->footer(kFooter);
    line->option("MODEL.onnx", a->onnx, "the model; its data files lie beside it");
    line->option("MODEL.param", a->param, "the graph to write");
    line->option("MODEL.bin", a->bin, "the weights to write");
    line->option("--shape", a->shapes, "NAME=1,3,224,224: sizes of an input; -1: known later")
        .one_at_a_time();
    line->option("--constant", a->constants,
                 "NAME=FILE.npy, or NAME=16000: an input that becomes a constant")
        .one_at_a_time();
    line->option("--input", a->inputs, "NAME: a value to take as input").one_at_a_time();
    line->option("--output", a->outputs, "NAME: a value to take as output").one_at_a_time();
    const CommandOption fp16 = line->flag("--fp16", a->fp16,
                                          "store weights as float16 where it can "
                                          "hold them");
    line->flag("--bf16", a->bf16, "store weights as bfloat16").excludes(fp16);
    line->flag("--ncnn", a->ncnn,
               "only what ncnn loads: its layers, weights that nodes share for each of them; where "
               "the model needs others it is refused");
    line->flag("--keep-names", a->keep_names,
               "call layers after the nodes that they come from, not after their outputs");
    line->flag("--check", a->check,
               "run the model in ONNX Runtime (Python packages onnxruntime and numpy) and in "
               "enginerun, and print cosine, max error and SQNR of the outputs; 1 if they differ");
    line->flag(
        "--suggest", a->suggest,
        "where the model cannot be converted: try sizes and constants, however long it takes, "
        "and print the options with which it can");
    line->flag("--no-limits", a->no_limits,
               "convert a model however many nodes and constants its functions and loops make");
    line->flag("--sha256", a->sha256, "print the SHA-256 of the three files");
    line->option("--report", a->report, "FILE: what was done, and how often");
    line->flag("--operators", a->operators, "print the table of supported operators");
    line->option("--check-operators", a->page_to_check,
                 "FILE: compare it with the table of supported operators")
        .hidden();  // for the tests
}

bool parse_shape(const std::string& text, OnnxOptions* options) {
    const size_t at = text.rfind('=');
    if (at == std::string::npos || at == 0) return false;
    std::vector<int64_t> sizes;
    std::string rest = text.substr(at + 1);
    while (!rest.empty()) {
        const size_t comma = rest.find(',');
        const std::string word = rest.substr(0, comma);
        char* end = nullptr;
        const long long v = strtoll(word.c_str(), &end, 10);
        if (word.empty() || *end || v < -1 || v > 2147483647) return false;
        sizes.push_back(v);
        rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    }
    options->shapes[text.substr(0, at)] = sizes;
    return true;
}

int list_problems(const std::vector<OnnxProblem>& problems) {
    for (const OnnxProblem& p : problems)
        fprintf(stderr, "cannot convert %s (%s, opset %d): %s\n", p.node.c_str(), p.op.c_str(),
                p.opset, p.reason.c_str());
    fprintf(stderr, "onnx2engine: %zu node%s cannot be converted\n", problems.size(),
            problems.size() == 1 ? "" : "s");
    return 1;
}

// Options that would help, after a refusal; looked for shortly if nobody asked.
int suggest(const Arguments& a, const OnnxOptions& options) {
    const double kUnasked = 2;  // seconds
    const std::string found = suggest_options(a.onnx, options, a.suggest ? 0 : kUnasked);
    if (!found.empty())
        fprintf(stderr, "onnx2engine: it can be converted with %s\n", found.c_str());
    else if (a.suggest)
        fprintf(stderr, "onnx2engine: no sizes or constants that were tried let it pass\n");
    return 1;
}

// Counts what would be written.
class CountingWriter : public DataWriter {
public:
    mutable size_t bytes = 0;
    size_t write(const void*, size_t size) const override { return bytes += size, size; }
};

size_t size_of_files(const Model& model) {
    const CountingWriter writer;
    const bool counted = model.save_param(writer) == 0 && model.save_model(writer) == 0;
    return counted ? writer.bytes : 0;
}

int convert_compact(const Arguments& a, const OnnxOptions& options, OnnxResult* result) {
    QUOLL_RETURN_IF_ERROR(convert_onnx(a.onnx, options, result));
    QUOLL_RETURN_IF_ERROR(onnx_tool::compact_weights(&result->model, !a.ncnn));
    if (a.ncnn) return onnx_tool::to_ncnn(&result->model);
    result->model.share_weights();
    return kOk;
}

size_t bytes_of_weights(const Model& model) {
    size_t bytes = 0;
    for (const ModelLayer& layer : model.layers)
        for (const ModelWeight& weight : layer.weights)
            bytes += weight.stored.data.total() * weight.stored.data.elemsize;
    return bytes;
}

// Where files become larger than the model, for constants that were computed: without those, if it
// can be converted so. ncnn would compute them again in each run.
void convert_smaller(const Arguments& a, OnnxOptions options, OnnxResult* result) {
    const double kMost = 1.1;
    struct stat file;
    const size_t onnx = stat(a.onnx.c_str(), &file) == 0 ? (size_t)file.st_size : 0;
    const size_t source = std::max(onnx, result->source_bytes);
    // Files without the weights that there are would not be smaller by as much.
    if (a.ncnn || (double)bytes_of_weights(result->model) <= (kMost - 1) * (double)source) return;
    const size_t size = size_of_files(result->model);
    if ((double)size <= kMost * (double)source) return;
    OnnxResult smaller;
    options.compute_large_constants = true;
    options.progress = nullptr;
    const onnx_tool::QuietLog quiet;
    if (convert_compact(a, options, &smaller) != kOk) return;
    const size_t made = size_of_files(smaller.model);
    if (made > 0 && kMost * (double)made < (double)size) *result = std::move(smaller);
}

int write_report(const OnnxResult& result, const std::string& path) {
    FILE* fp = fopen(path.c_str(), "w");
    if (!fp) return -1;
    bool written = true;
    for (const auto& entry : result.counts)
        written = fprintf(fp, "%d %s\n", entry.second, entry.first.c_str()) > 0 && written;
    for (const std::string& note : result.notes)
        written = fprintf(fp, "note: %s\n", note.c_str()) > 0 && written;
    if (fclose(fp) == 0 && written) return 0;
    QUOLL_LOGE("%s: %s", path.c_str(), strerror(errno));
    return -1;
}

// Gone when the last node is done.
std::function<void(size_t, size_t)> progress_bar() {
    auto bar = std::make_shared<std::unique_ptr<Progress>>();
    return [bar](size_t done, size_t total) {
        if (!*bar) bar->reset(new Progress("convert", (long long)total));
        (*bar)->update((long long)done);
        if (done == total) bar->reset();
    };
}

int print_sums(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
        const std::string sum = sha256_of_file(path);
        if (sum.empty()) return -1;
        printf("%s  %s\n", sum.c_str(), path.c_str());
    }
    return 0;
}

// enginerun beside this program.
std::string runner() {
    char exe[4096];
    const ssize_t length = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    const std::string path(exe, length > 0 ? (size_t)length : 0);
    const size_t slash = path.rfind('/');
    return slash == std::string::npos ? "enginerun" : path.substr(0, slash + 1) + "enginerun";
}

int check_model(const Arguments& a, MessageLog* log) {
    std::vector<std::string> words = {"python3", "-c",    kCheckScript, runner(),
                                      a.onnx,    a.param, a.bin};
    words.insert(words.end(), a.shapes.begin(), a.shapes.end());
    for (const std::string& constant : a.constants) words.push_back("constant:" + constant);
    fflush(nullptr);
    const int code = run_process(words, "", "");
    if (code == 0) return 0;
    if (code < 0) return log->fail("onnx2engine", "--check needs python3");
    fprintf(stderr, "onnx2engine: --check failed\n");
    return 1;
}

int check_page(const std::string& path) {
    std::string have;
    FILE* fp = fopen(path.c_str(), "rb");
    char buffer[4096];
    for (size_t n; fp && (n = fread(buffer, 1, sizeof(buffer), fp)) > 0;) have.append(buffer, n);
    if (fp) fclose(fp);
    if (have == onnx_operator_page()) return 0;
    fprintf(stderr, "onnx2engine: %s is out of date: onnx2engine --operators > %s\n", path.c_str(),
            path.c_str());
    return 1;
}

int run(const Arguments& a, MessageLog* log) {
    OnnxOptions options;
    options.inputs = a.inputs;
    options.outputs = a.outputs;
    options.storage = a.fp16 ? DType::f16 : a.bf16 ? DType::bf16 : DType::f32;
    options.keep_names = a.keep_names;
    options.limits = !a.no_limits;
    for (const std::string& text : a.shapes) {
        if (parse_shape(text, &options)) continue;
        fprintf(stderr, "onnx2engine: --shape %s: expected NAME=SIZE,SIZE,...\n", text.c_str());
        return 2;
    }
    for (const std::string& text : a.constants) {
        const size_t at = text.rfind('=');
        if (at != std::string::npos && at > 0) {
            options.constants[text.substr(0, at)] = text.substr(at + 1);
            continue;
        }
        fprintf(stderr, "onnx2engine: --constant %s: expected NAME=FILE.npy or NAME=NUMBER,...\n",
                text.c_str());
        return 2;
    }
    OnnxResult result;
    options.progress = progress_bar();
    const int status = convert_compact(a, options, &result);
    Progress::hide();  // it stopped at a node that cannot be converted
    if (status != 0) {
        if (result.problems.empty()) return log->fail("onnx2engine", "cannot convert " + a.onnx);
        list_problems(result.problems);
        return suggest(a, options);
    }
    convert_smaller(a, options, &result);
    for (const std::string& note : result.notes) fprintf(stderr, "note: %s\n", note.c_str());
    std::vector<std::string> read = result.data_files;
    read.push_back(a.onnx);
    OutputFiles files(read);
    const std::string param = files.add(a.param), bin = files.add(a.bin);
    if (param.empty() || bin.empty() || result.model.number_weights() != 0 ||
        result.model.save_param(param.c_str()) != 0 || result.model.save_model(bin.c_str()) != 0)
        return log->fail("onnx2engine", "cannot write " + a.param + " and " + a.bin);
    const std::string report = a.report.empty() ? "" : files.add(a.report);
    if (!a.report.empty() && (report.empty() || write_report(result, report) != 0))
        return log->fail("onnx2engine", "cannot write " + a.report);
    if (files.commit() != 0)
        return log->fail("onnx2engine", "cannot write " + a.param + " and " + a.bin);
    // What --check and --sha256 print has a form of its own.
    if (!a.sha256 && !a.check)
        printf("wrote %s (%zu layers) and %s\n", a.param.c_str(), result.model.layers.size(),
               a.bin.c_str());
    if (a.sha256 && print_sums({a.onnx, a.param, a.bin}) != 0)
        return log->fail("onnx2engine", "--sha256");
    return a.check ? check_model(a, log) : 0;
}

}  // namespace

int main(int argc, char** argv) {
    Arguments a;
    CommandLine line("Converts an ONNX model to MODEL.param and MODEL.bin.", "onnx2engine");
    add_options(&line, &a);
    int exit_code = 0;
    if (!line.parse(argc, argv, &exit_code)) return exit_code;
    if (a.operators) {
        fputs(onnx_operator_page().c_str(), stdout);
        return 0;
    }
    if (!a.page_to_check.empty()) return check_page(a.page_to_check);
    if (a.bin.empty()) {
        fprintf(stderr, "onnx2engine: expected MODEL.onnx MODEL.param MODEL.bin; see --help\n");
        return 2;
    }
    if (ends_with(a.param, ".bin") && !ends_with(a.param, ".param.bin") &&
        ends_with(a.bin, ".param")) {
        fprintf(stderr,
                "onnx2engine: %s and %s are swapped: expected MODEL.onnx MODEL.param MODEL.bin\n",
                a.param.c_str(), a.bin.c_str());
        return 2;
    }
    MessageLog log;
    return without_exceptions("onnx2engine", [&] { return run(a, &log); });
}
