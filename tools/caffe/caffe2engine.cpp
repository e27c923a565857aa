// caffe2engine: Caffe's prototxt and caffemodel as .param and .bin.
#include <stdio.h>

#include <string>
#include <vector>

#include "caffe/converter.h"
#include "common/cli.h"
#include "common/model_files.h"
#include "common/output_files.h"
#include "quoll/log.h"

using namespace quoll;

namespace {

struct Arguments {
    std::string prototxt, caffemodel, param, bin;
};

const char kFooter[] =
    "Layers for data and for training are left out, with a message. Layers that cannot be\n"
    "converted are listed, all of them, and nothing is written then. Files are written whole or\n"
    "not at all.\n"
    "Exit code: 0, 1 when a file is at fault or a layer not supported, 2 for a wrong command "
    "line.\n";

void add_options(CommandLine* line, Arguments* a) {
    line->footer(kFooter);
    line->option("DEPLOY.prototxt", a->prototxt, "the net, as text").required();
    line->option("WEIGHTS.caffemodel", a->caffemodel, "its weights").required();
    line->option("OUT.param", a->param, "the graph to write").required();
    line->option("OUT.bin", a->bin, "the weights to write").required();
}

int convert(const Arguments& a, Model* model, std::string* what) {
    caffe::NetParameter net;
    CaffeWeights weights;
    CaffeReport report;
    if (read_prototxt(a.prototxt, &net, &report.notes) || read_caffemodel(a.caffemodel, &weights))
        return -1;
    convert_caffe(net, weights, model, &report);
    for (const std::string& note : report.notes) fprintf(stderr, "%s\n", note.c_str());
    for (const std::string& error : report.errors) fprintf(stderr, "error: %s\n", error.c_str());
    if (report.errors.empty()) return 0;
    *what = std::to_string(report.errors.size()) + " of " + std::to_string(net.layer_size()) +
            " layers cannot be converted: " + report.errors[0];
    if (report.errors.size() > 1) *what += "; ...";
    return -1;
}

int write(const Arguments& a, Model& model) {
    OutputFiles files({a.prototxt, a.caffemodel});
    const std::string param = files.add(a.param);
    const std::string bin = param.empty() ? "" : files.add(a.bin);
    if (bin.empty() || model.number_weights() || model.save_param(param.c_str()) ||
        model.save_model(bin.c_str()))
        return -1;
    return files.commit();
}

}  // namespace

int main(int argc, char** argv) {
    Arguments a;
    CommandLine line("Converts a Caffe model.", "caffe2engine");
    add_options(&line, &a);
    int exit_code = 0;
    if (!line.parse(argc, argv, &exit_code)) return exit_code;
    if (ends_with(a.prototxt, ".caffemodel") && ends_with(a.caffemodel, ".prototxt")) {
        fprintf(
            stderr,
            "caffe2engine: %s and %s are swapped: expected DEPLOY.prototxt WEIGHTS.caffemodel\n",
            a.prototxt.c_str(), a.caffemodel.c_str());
        return 2;
    }
    MessageLog log;
    return without_exceptions("caffe2engine", [&] {
        Model model;
        std::string what;
        if (convert(a, &model, &what) || write(a, model)) return log.fail("caffe2engine", what);
        printf("wrote %s (%zu layers) and %s\n", a.param.c_str(), model.layers.size(),
               a.bin.c_str());
        return 0;
    });
}
