// engineoptimize: makes a model smaller and faster without changing its answers.
#include <stdio.h>

#include <string>
#include <vector>

#include "common/cli.h"
#include "common/model_files.h"
#include "common/model_inputs.h"
#include "common/progress.h"
#include "graph/optimize.h"

using namespace quoll;

namespace {

struct Arguments {
    std::string in_param, in_bin, out_param, out_bin, flag, cut_start, cut_end;
    std::vector<std::string> keep, inputs, outputs;
    InputArguments inputs_said;
    bool no_fusion = false, no_hints = false, strip_names = false;
};

const char kFooter[] =
    "FLAG is the storage of weights: 0 fp32, 1 or 65536 fp16, bf16 (which ncnn cannot read). int8 "
    "weights stay.\n"
    "CUTSTART and CUTEND, names of layers or blobs, or '' for none, keep what lies between them, "
    "ends included.\n"
    "Exit code: 0, 1 when a file is at fault, 2 for a wrong command line. Files are written whole "
    "or not at all.\n";

void add_options(CommandLine* line, Arguments* a) {
    line->footer(kFooter);
    line->option("IN.param", a->in_param, "the graph; binary when it ends in .param.bin")
        .required();
    line->option("IN.bin", a->in_bin, "the weights").required();
    line->option("OUT.param", a->out_param, "graph to write; binary when it ends in .param.bin")
        .required();
    line->option("OUT.bin", a->out_bin, "weights to write").required();
    line->option("FLAG", a->flag, "storage of weights: 0, 1, 65536 or bf16")
        .required()
        .one_of({"0", "1", "65536", "fp32", "fp16", "bf16"});
    line->option("CUTSTART", a->cut_start, "where the part to keep begins");
    line->option("CUTEND", a->cut_end, "where it ends");
    line->option("--input", a->inputs, "a blob that becomes an input, once for each")
        .one_at_a_time();
    line->option("--output", a->outputs,
                 "a blob that becomes an output, once for each; the others go")
        .one_at_a_time();
    line->option("--keep", a->keep, "a blob that stays as it is, once for each").one_at_a_time();
    a->inputs_said.add_shapes_to(line);
    line->flag("--no-fusion", a->no_fusion, "leave the layers as they are");
    line->flag("--no-hints", a->no_hints, "write no sizes of blobs");
    line->flag("--strip-names", a->strip_names,
               "numbers for names of layers and of blobs between them");
}

DType storage(const std::string& flag) {
    if (flag == "bf16") return DType::bf16;
    return flag == "0" || flag == "fp32" ? DType::f32 : DType::f16;
}

void print_row(const char* what, int64_t before, int64_t after, bool complete) {
    printf("%-24s%18s  ->%18s%s\n", what, grouped(before).c_str(), grouped(after).c_str(),
           complete ? "" : "  (sizes are missing: at least)");
}

void print_report(const Model& before, const ModelFacts& was, const Model& after,
                  const ModelFacts& is, const OptimizeReport& report) {
    for (const std::string& line : report.lines()) printf("%s\n", line.c_str());
    if (report.empty()) printf("nothing to do\n");
    const bool macs = was.macs_complete && is.macs_complete;
    const bool memory = was.memory.complete && is.memory.complete;
    print_row("layers", (int64_t)before.layers.size(), (int64_t)after.layers.size(), true);
    print_row("blobs", (int64_t)before.blob_names().size(), (int64_t)after.blob_names().size(),
              true);
    print_row("parameters", was.parameters, is.parameters, true);
    print_row("weight bytes", was.weight_bytes, is.weight_bytes, true);
    print_row("multiply-accumulates", was.macs, is.macs, macs);
    print_row("bytes of all blobs", was.memory.sum, is.memory.sum, memory);
    print_row("most bytes at a time", was.memory.peak, is.memory.peak, memory);
}

int optimize(const Arguments& a, Model* model, BlobSizes sizes, OptimizeReport* report) {
    if (!a.cut_start.empty() || !a.cut_end.empty() || !a.inputs.empty() || !a.outputs.empty()) {
        BlobSizes all;
        infer_blob_sizes(*model, sizes, &all);
        if (cut_model(model, a.cut_start, a.cut_end, all, report)) return -1;
        if (cut_model(model, a.inputs, a.outputs, all, report)) return -1;
    }
    std::vector<std::string> kept = a.keep;
    kept.insert(kept.end(), a.outputs.begin(), a.outputs.end());
    if (remove_dead_layers(model, kept, report)) return -1;
    if (!a.no_fusion && run_graph_passes(model, a.keep, report)) return -1;
    return store_weights(model, storage(a.flag), report);
}

int run(const Arguments& a, MessageLog* log) {
    const auto fail = [&](const std::string& what) { return log->fail("engineoptimize", what); };
    BlobSizes sizes;
    std::string why;
    Model model;
    if (load_model_files(a.in_param, a.in_bin, &model)) return fail("cannot load " + a.in_param);
    if (parse_shapes(a.inputs_said.shapes, inputs_of(model), &sizes, &why))
        return fail("--shape " + why);
    add_batches(inputs_of(model), &sizes);
    for (const auto& size : sizes)
        if (model.producer(size.first) < 0) return fail("--shape: no blob '" + size.first + "'");
    const Model before = model;
    ModelFacts was, is;
    OptimizeReport report;
    if (analyse_model(before, sizes, &was)) return fail("");
    if (!log->reason().empty()) {
        fprintf(stderr, "engineoptimize: sizes are not all known: %s\n", log->reason().c_str());
        log->clear();
    }
    Progress progress("optimize", 4);
    progress.update(1, "graph");
    if (optimize(a, &model, sizes, &report)) return fail("");
    progress.update(2, "sizes");
    if (a.strip_names) strip_names(&model, a.keep);
    if (analyse_model(model, sizes, &is)) return fail("");
    log->clear();
    write_shape_hints(&model, a.no_hints ? BlobSizes() : is.sizes);
    OutputFiles files({a.in_param, a.in_bin});
    progress.update(3, "write");
    if (save_model_files(model, a.out_param, a.out_bin, &files) || files.commit()) return fail("");
    Progress::hide();
    print_report(before, was, model, is, report);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    Arguments a;
    CommandLine line("Makes a model smaller and faster without changing its answers.",
                     "engineoptimize");
    add_options(&line, &a);
    int exit_code = 0;
    if (!line.parse(argc, argv, &exit_code)) return exit_code;
    MessageLog log;
    return without_exceptions("engineoptimize", [&] { return run(a, &log); });
}
