// enginevalidate: are a model's answers right, and if not, where do they go wrong?
#include <math.h>
#include <stdio.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "common/cli.h"
#include "common/model_files.h"
#include "common/model_inputs.h"
#include "common/progress.h"
#include "common/run_options.h"
#include "layer/control/input.h"
#include "validate/layers.h"

using namespace quoll;

namespace {

struct Arguments {
    std::string param, bin;
    std::vector<std::string> expected, other, blobs;
    InputArguments inputs;
    std::string folder, onnx, against, against_isa, python = "python3", log = "log.csv";
    unsigned seed = 1;
    double threshold = 0, layer_limit = 0;
    bool layers = false;
    RunOptions run;
};

const char kFooter[] =
    "Give one of --expect, --expect-folder, --onnx, --against, --against-isa and --against-model. "
    "Inputs that\n"
    "are not given are random. Thresholds of the similarity, which has to be above: fp32 0.999, "
    "fp16 and bf16\n"
    "0.995, int8 0.93; limits of a layer's own error in parts of the range: 1e-4, 5e-3, 4e-2, "
    "5e-2.\n"
    "Exit code: 0 the answers are right, 1 a file is at fault, 2 a wrong command line, 3 the "
    "answers are wrong.\n";

void add_options(CommandLine* line, Arguments* a) {
    line->footer(kFooter);
    line->option("MODEL.param", a->param, "the graph; binary when it ends in .param.bin")
        .required();
    line->option("MODEL.bin", a->bin, "the weights").required();
    a->inputs.add_arrays_to(line);
    a->inputs.add_shapes_to(line);
    a->inputs.add_range_to(line);
    line->option("--seed", a->seed, "of random inputs");
    line->option("--expect", a->expected, "NAME=FILE.npy: what a blob should be, once for each")
        .one_at_a_time();
    line->option("--expect-folder", a->folder, "NAME.npy for any number of blobs");
    line->option("--onnx", a->onnx, "MODEL.onnx: ONNX Runtime's answers");
    line->option("--python", a->python, "the Python that has onnxruntime, default python3");
    line->option("--against", a->against,
                 "the same model with blobs in fp32, fp16 or bf16, or on the reference layers")
        .one_of({"fp32", "fp16", "bf16", "reference"});
    line->option("--against-isa", a->against_isa, "the same model on another instruction set");
    line->option("--against-model", a->other, "OTHER.param OTHER.bin: another model's answers")
        .takes(2, 2);
    line->option("--blob", a->blobs, "a blob to compare besides the outputs, once for each")
        .one_at_a_time();
    line->flag("--layers", a->layers, "compare every blob, write log.csv, find what is wrong");
    line->option("--log", a->log, "FILE for --layers, default log.csv");
    line->option("--threshold", a->threshold, "least similarity; default: that of the table below")
        .between(0.0, 1.0);
    line->option("--layer-limit", a->layer_limit,
                 "largest error of a layer's own; default: as below")
        .between(0.0, 1e9);
    a->run.add_to(line);
}

Limits limits_of(const Arguments& a) {
    // The similarities are those of MACE; the errors are a few units of the storage type.
    Limits limits = {0.999, 1e-4};
    const auto weaken = [&](double similarity, double error) {
        limits.similarity = std::min(limits.similarity, similarity);
        limits.relative_error = std::max(limits.relative_error, error);
    };
    for (const std::string& mode : {a.run.precision, a.against}) {
        if (mode == "fp16") weaken(0.995, 5e-3);
        if (mode == "bf16") weaken(0.995, 4e-2);
        if (mode == "int8") weaken(0.93, 5e-2);
    }
    if (a.threshold > 0) limits.similarity = a.threshold;
    if (a.layer_limit > 0) limits.relative_error = a.layer_limit;
    return limits;
}

// Arrays by name, each of an input or of another blob.
int read_blobs(const std::vector<std::string>& texts, const Model& model, Blobs* blobs,
               std::string* why) {
    const auto known = [&](const std::string& name) { return model.producer(name) >= 0; };
    return read_arrays(texts, inputs_of(model), known, blobs, why);
}

int make_inputs(const Arguments& a, const Model& model, Blobs* inputs, std::string* why) {
    BlobSizes given, sizes;
    const std::vector<ModelInput> all = inputs_of(model);
    if (read_blobs(a.inputs.arrays, model, inputs, why)) return *why = "--input " + *why, -1;
    if (parse_shapes(a.inputs.shapes, all, &given, why)) return *why = "--shape " + *why, -1;
    for (const auto& size : given)
        if (model.producer(size.first) < 0)
            return *why = "--shape: no blob '" + size.first + "'", -1;
    add_batches(all, &given);
    infer_blob_sizes(model, given, &sizes);
    std::mt19937 rng(a.seed);
    std::uniform_real_distribution<double> next(0, 1);
    for (const ModelInput& input : all) {
        if (inputs->count(input.name)) continue;
        const auto size = sizes.find(input.name);
        if (size == sizes.end()) {
            *why = "the size of input '" + input.name + "' is not known: give --shape or --input";
            return -1;
        }
        Mat& m = (*inputs)[input.name];
        m = random_input(input, size->second, a.inputs.range, [&] { return next(rng); });
        if (m.empty()) return *why = input.name, -1;
    }
    return 0;
}

// The blobs to ask for: all that layers make, or the outputs and those of --blob.
std::vector<std::string> wanted_blobs(const Arguments& a, const Model& model, bool all) {
    std::vector<std::string> blobs = output_blobs(model);
    for (const std::string& blob : a.blobs)
        if (std::find(blobs.begin(), blobs.end(), blob) == blobs.end()) blobs.push_back(blob);
    if (!all) return blobs;
    blobs.clear();
    for (const ModelLayer& layer : model.layers)
        if (!layer.is<Input>())
            blobs.insert(blobs.end(), layer.outputs.begin(), layer.outputs.end());
    return blobs;
}

int load_net(const Model& model, const RunOptions& run, bool fused, Net* net, std::string* why) {
    if (run.apply(net, why)) return -1;
    net->opt.use_graph_fusion &= fused;
    if (model.make_net(net)) return -1;
    return run.check(*net, why);
}

// Answers of our own engine in the mode that is the yardstick.
int own_answers(const Arguments& a, const Model& model, const Blobs& inputs, Blobs* expected,
                std::string* why) {
    Model other;
    const Model* from = &model;
    RunOptions run;
    run.threads = a.run.threads;
    run.no_fusion = a.run.no_fusion;
    if (!a.other.empty()) {
        if (load_model_files(a.other[0], a.other[1], &other)) return *why = a.other[0], -1;
        from = &other;
    }
    if (a.against == "reference")
        run.reference = true;
    else if (!a.against.empty())
        run.precision = a.against;
    run.isa = a.against_isa;
    Net net;
    if (load_net(*from, run, !a.layers, &net, why)) return -1;
    Blobs theirs;
    for (const auto& input : inputs) {
        if (from->producer(input.first) >= 0) theirs.insert(input);
    }
    return run_net(net, theirs, wanted_blobs(a, *from, a.layers), expected);
}

int find_expected(const Arguments& a, const Model& model, const Blobs& inputs, Blobs* expected,
                  std::string* why) {
    if (!a.expected.empty() && read_blobs(a.expected, model, expected, why))
        return *why = "--expect " + *why, -1;
    if (!a.folder.empty() && read_folder(a.folder, wanted_blobs(a, model, a.layers), expected))
        return *why = "--expect-folder", -1;
    if (!a.onnx.empty()) {
        if (run_onnx(a.python, a.onnx, inputs_of(model), inputs, a.layers || !a.blobs.empty(),
                     expected))
            return *why = "--onnx", -1;
    } else if (a.expected.empty() && a.folder.empty()) {
        return own_answers(a, model, inputs, expected, why);
    }
    return 0;
}

void print_verdict(bool right, const std::string& text) {
    const char* colour = !coloured(1) ? "" : right ? "\033[32m" : "\033[31m";
    printf("%s%s%s %s\n", colour, right ? "PASS" : "FAIL", *colour ? "\033[0m" : "", text.c_str());
}

bool check_output(const std::string& blob, const Mat& got, const Mat& expected, double least) {
    const Comparison c = compare(got, expected);
    std::string text = blob;
    if (!c.same_shape) {
        print_verdict(false, blob + ": shape " + axes_text(got.logical_shape()) + ", expected " +
                                 axes_text(expected.logical_shape()));
        return false;
    }
    text += ": similarity " + metric_text(c.similarity) + ", SQNR " + metric_text(c.sqnr) +
            " dB, pixel accuracy " + metric_text(c.pixel_accuracy) + ", max error " +
            metric_text(c.max_error) + " (" + metric_text(c.relative_error()) + " of the range)";
    if (c.bad_got != 0 || c.bad_expected != 0)
        text += ", not finite " + std::to_string(c.bad_got) + " (expected " +
                std::to_string(c.bad_expected) + ") of " + std::to_string(c.count);
    if (c.count > 0 && c.compared == 0) text += ": there is nothing to compare";
    const bool right = c.similarity > least && c.only_got == 0 && c.bad_got == c.bad_expected;
    print_verdict(right, text);
    return right;
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
    return text;
}

int check_all_layers(const Arguments& a, const Model& model, const Net& net, const Blobs& inputs,
                     Blobs expected, bool* right) {
    std::vector<BlobCheck> checks;
    std::vector<std::string> dropped;
    if (!a.onnx.empty() &&
        drop_other_meanings(model, net, inputs, limits_of(a), &expected, &dropped))
        return -1;
    if (!dropped.empty())
        printf("left out, as the names mean something else in the other model: %s\n",
               joined(dropped).c_str());
    if (check_layers(model, net, inputs, expected, limits_of(a), &checks)) return -1;
    std::vector<std::string> read = {a.param, a.bin, a.onnx};
    for (const auto& more : {a.other, paths_of(a.inputs.arrays), paths_of(a.expected)})
        read.insert(read.end(), more.begin(), more.end());
    OutputFiles files(read);
    if (write_file(a.log, log_csv(checks), &files) || files.commit()) return -1;
    fputs(layers_table(checks).c_str(), stdout);
    if (const BlobCheck* wrong = first_wrong(checks)) {
        *right = false;
        print_verdict(false, "first wrong layer: " + wrong->layers.back() + ", blob '" +
                                 wrong->blob + "' " + wrong->verdict);
        if (wrong->layers.size() > 1)
            printf("     nothing is known between the layers %s\n", joined(wrong->layers).c_str());
    } else if (const BlobCheck* first = first_without_values(checks)) {
        *right = false;
        print_verdict(false, "first layer without a finite value: " + first->layers.back() +
                                 ", blob '" + first->blob +
                                 "', expected none either: nothing behind it can be compared");
    }
    return 0;
}

int run(const Arguments& a, MessageLog* log) {
    const auto fail = [&](const std::string& what) { return log->fail("enginevalidate", what); };
    Model model;
    Blobs inputs, expected, got;
    std::string why;
    if (load_model_files(a.param, a.bin, &model)) return fail("cannot load " + a.param);
    if (make_inputs(a, model, &inputs, &why)) return fail(why);
    if (find_expected(a, model, inputs, &expected, &why)) return fail(why);
    std::vector<std::string> outputs;
    for (const std::string& blob : wanted_blobs(a, model, false))
        if (expected.count(blob)) outputs.push_back(blob);
    // What --expect names is compared, be it an output or not; of the other references, blobs
    // between two layers where there is no output that both sides have.
    const bool none = outputs.empty();
    for (const auto& blob : expected)
        if (!a.layers && (none || !a.expected.empty()) && model.producer(blob.first) >= 0 &&
            std::find(outputs.begin(), outputs.end(), blob.first) == outputs.end())
            outputs.push_back(blob.first);
    for (const std::string& blob : a.blobs)
        if (!expected.count(blob) && !inputs.count(blob))
            return fail("--blob " + blob + ": there is no answer for it");
    if (outputs.empty() && !a.layers) return fail("nothing to compare: no blob has both answers");
    Net net;
    if (load_net(model, a.run, !a.layers, &net, &why)) return fail(why);
    if (run_net(net, inputs, outputs, &got)) return fail("");
    bool right = true;
    if (a.layers && check_all_layers(a, model, net, inputs, expected, &right)) return fail("");
    for (const std::string& blob : outputs)
        right &= check_output(blob, got[blob], expected[blob], limits_of(a).similarity);
    return right ? 0 : 3;
}

}  // namespace

int main(int argc, char** argv) {
    Arguments a;
    CommandLine line("Compares a model's answers with others, and finds the layer that goes wrong.",
                     "enginevalidate");
    add_options(&line, &a);
    int exit_code = 0;
    if (!line.parse(argc, argv, &exit_code)) return exit_code;
    const int given = !a.expected.empty() + !a.folder.empty() + !a.onnx.empty() +
                      !a.against.empty() + !a.against_isa.empty() + !a.other.empty();
    MessageLog log;
    if (given != 1) {
        log.fail("enginevalidate",
                 "give one of --expect, --expect-folder, --onnx, --against, "
                 "--against-isa and --against-model");
        return 2;
    }
    return without_exceptions("enginevalidate", [&] { return run(a, &log); });
}
