// engineinfo: what a model is made of, and how it runs here.
#include <stdio.h>

#include <string>
#include <vector>

#include "common/cli.h"
#include "common/model_files.h"
#include "common/model_inputs.h"
#include "info/model_diff.h"
#include "info/page.h"
#include "info/picture.h"
#include "info/report.h"

using namespace quoll;

namespace {

struct Arguments {
    std::string param, bin, json, html, svg;
    std::vector<std::string> diff;
    InputArguments inputs;
    bool show_io = false, exec_plan = false, memory = false, brief = false;
    RunOptions run;
};

const char kFooter[] =
    "Without MODEL.bin the weights' types are not told, and there are no --exec-plan and --memory. "
    "Sizes are NumPy's order of axes.\n"
    "FILE may be - for stdout. Exit code: 0, 1 when a file is at fault, 2 for a wrong command "
    "line; of --diff 0\n"
    "for models that are the same, 3 for others.\n";

void add_options(CommandLine* line, Arguments* a) {
    line->footer(kFooter);
    line->option("MODEL.param", a->param, "the graph; binary when it ends in .param.bin")
        .required();
    line->option("MODEL.bin", a->bin, "the weights");
    a->inputs.add_shapes_to(line);
    a->inputs.add_arrays_to(line);
    line->flag("--show-io", a->show_io, "inputs and outputs only");
    line->flag("--brief", a->brief, "no table of layers");
    line->flag("--exec-plan", a->exec_plan,
               "how each layer runs here: kernels, instruction set, layout, and why not faster");
    line->flag("--memory", a->memory,
               "what the plan needs for blobs, beside the sum of all of them");
    line->option("--json", a->json, "FILE: everything as JSON");
    line->option("--html", a->html, "FILE: a page with a picture of the graph");
    line->option("--svg", a->svg, "FILE: the picture alone");
    line->option("--diff", a->diff, "OTHER.param OTHER.bin: how the other model differs")
        .takes(1, 2);
    a->run.add_to(line);
}

int print_diff(const Arguments& a, const Model& model, MessageLog* log) {
    Model other;
    const std::string bin = a.diff.size() > 1 ? a.diff[1] : "";
    if (load_model_files(a.diff[0], bin, &other))
        return log->fail("engineinfo", "cannot load " + a.diff[0]);
    const bool weights = !a.bin.empty() && !bin.empty();
    const std::string text = diff_models(model, other, weights);
    const char* const same = weights ? "the models are the same\n"
                                     : "the graphs are the same, weights were not compared\n";
    fputs(text.empty() ? same : text.c_str(), stdout);
    return text.empty() ? 0 : 3;
}

int write_files(const Arguments& a, const ModelReport& report) {
    std::vector<std::string> read = paths_of(a.inputs.arrays);
    read.insert(read.end(), {a.param, a.bin});
    OutputFiles files(read);
    const auto write = [&](const std::string& name, std::string (*text)(const ModelReport&)) {
        if (name.empty()) return 0;
        if (name != "-") return write_file(name, text(report), &files);
        fputs(text(report).c_str(), stdout);
        return 0;
    };
    if (write(a.json, json_text) || write(a.html, html_page) || write(a.svg, svg_picture))
        return -1;
    return files.commit();
}

void print_text(const Arguments& a, const ModelReport& report) {
    std::string text;
    const bool all = !a.show_io && !a.exec_plan && !a.memory;
    if (all && !a.brief) text += layer_table(report) + "\n";
    if (a.exec_plan) text += exec_plan_table(report.plan);
    if (a.memory) text += memory_table(report.memory);
    if (all || a.show_io) text += io_table(report);
    if (all) text += "\n" + summary(report);
    fputs(text.c_str(), stdout);
}

// Sizes that are said, those of arrays, and of inputs with a batch.
int read_sizes(const Arguments& a, const Model& model, BlobSizes* sizes, std::string* why) {
    const std::vector<ModelInput> inputs = inputs_of(model);
    std::map<std::string, Mat> arrays;
    const auto known = [&](const std::string& name) { return model.producer(name) >= 0; };
    if (parse_shapes(a.inputs.shapes, inputs, sizes, why)) return *why = "--shape " + *why, -1;
    if (read_arrays(a.inputs.arrays, inputs, known, &arrays, why))
        return *why = "--input " + *why, -1;
    for (const auto& array : arrays) (*sizes)[array.first] = array.second.logical_shape();
    add_batches(inputs, sizes);
    return 0;
}

int run(const Arguments& a, MessageLog* log) {
    const auto fail = [&](const std::string& what) { return log->fail("engineinfo", what); };
    std::string why;
    BlobSizes sizes;
    Net net;
    if (a.run.apply(&net, &why)) return fail(why);
    Model model;
    if (load_model_files(a.param, a.bin, &model)) return fail("cannot load " + a.param);
    if (read_sizes(a, model, &sizes, &why)) return fail(why);
    if (!a.diff.empty()) return print_diff(a, model, log);
    for (const auto& size : sizes)
        if (model.producer(size.first) < 0) return fail("--shape: no blob '" + size.first + "'");
    ModelReport report;
    report.path = a.param, report.model = &model;
    report.has_weights = !a.bin.empty();
    if (analyse_model(model, sizes, &report.facts)) return fail("");
    // A layer refused its inputs: not what a report should be built on.
    if (!log->reason().empty()) return fail("");
    const char* const plan = a.exec_plan ? "--exec-plan" : a.memory ? "--memory" : nullptr;
    if (plan && !report.has_weights) return fail(std::string(plan) + " needs MODEL.bin");
    if (plan && make_exec_plan(model, report.facts.sizes, &net, &report.plan, &report.memory))
        return fail(plan);
    if (write_files(a, report)) return fail("");
    if (a.json != "-" && a.html != "-" && a.svg != "-") print_text(a, report);
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : fail("stdout cannot be written");
}

}  // namespace

int main(int argc, char** argv) {
    Arguments a;
    CommandLine line("Tells what a model is made of, and how it runs here.", "engineinfo");
    add_options(&line, &a);
    int exit_code = 0;
    if (!line.parse(argc, argv, &exit_code)) return exit_code;
    MessageLog log;
    return without_exceptions("engineinfo", [&] { return run(a, &log); });
}
