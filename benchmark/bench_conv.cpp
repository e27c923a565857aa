// bench_conv: times the candidates of a convolution, and compares them with what the library
// expects.
//
//   bench_conv [--fit] [threads] [w,h,in,out,kernel,stride[,dilation] | MODEL.param ...]
//
// Without shapes it takes those of well-known networks, and with a model those of its convolutions
// without groups. conv_candidates.h describes the output. --fit ends with the constants of
// cost_table.inc that these times ask for, to be written into a column for this machine's core.
#include <stdio.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "common/cli.h"
#include "conv_candidates.h"
#include "graph/analysis.h"
#include "layer/cpu/common/kernel_set.h"
#include "peak.h"

using namespace quoll;

namespace {

struct ConvCase {
    int w, h, in, out, kernel, stride, dilation = 1;
};
const ConvCase kLayers[] = {
    {56, 56, 64, 64, 1, 1},     {56, 56, 64, 256, 1, 1},   {56, 56, 256, 64, 1, 1},
    {28, 28, 512, 128, 1, 1},   {28, 28, 128, 512, 1, 1},  {14, 14, 1024, 256, 1, 1},
    {14, 14, 256, 1024, 1, 1},  {7, 7, 2048, 512, 1, 1},   {7, 7, 512, 2048, 1, 1},
    {56, 56, 256, 512, 1, 2},   {28, 28, 512, 1024, 1, 2}, {224, 224, 64, 64, 3, 1},
    {112, 112, 128, 128, 3, 1}, {56, 56, 64, 64, 3, 1},    {28, 28, 128, 128, 3, 1},
    {14, 14, 256, 256, 3, 1},   {7, 7, 512, 512, 3, 1},    {56, 56, 64, 128, 3, 2},
    {28, 28, 128, 256, 3, 2},   {14, 14, 256, 512, 3, 2},  {14, 14, 512, 512, 3, 1},
    {112, 112, 16, 96, 1, 1},   {56, 56, 96, 24, 1, 1},    {56, 56, 24, 144, 1, 1},
    {28, 28, 32, 192, 1, 1},    {28, 28, 192, 32, 1, 1},   {14, 14, 96, 576, 1, 1},
    {14, 14, 576, 96, 1, 1},    {7, 7, 160, 960, 1, 1},    {7, 7, 960, 160, 1, 1},
    {7, 7, 320, 1280, 1, 1},    {112, 112, 32, 64, 1, 1},  {56, 56, 128, 128, 1, 1},
    {28, 28, 256, 256, 1, 1},   {14, 14, 512, 512, 1, 1},  {7, 7, 1024, 1024, 1, 1},
    {56, 56, 16, 64, 3, 1},     {28, 28, 32, 128, 3, 1},   {14, 14, 64, 256, 3, 1},
    {13, 13, 48, 192, 3, 1},    {13, 13, 512, 256, 1, 1},  {224, 224, 3, 64, 3, 1}};

ConvGeometry geometry_of(const ConvCase& l) {
    const int pad = l.kernel / 2 * l.dilation, extent = (l.kernel - 1) * l.dilation + 1;
    const auto axis = [&](int in) {
        const int out = (in + 2 * pad - extent) / l.stride + 1;
        return WindowAxis{in, out, l.kernel, l.dilation, l.stride, pad, pad};
    };
    return ConvGeometry{axis(l.w), axis(l.h), WindowAxis::none(), 1, l.in, l.out};
}

// The convolutions without groups of a model that tells its input's size.
int shapes_of_model(const char* path, std::vector<ConvShape>* shapes) {
    Model model;
    BlobSizes sizes;
    QUOLL_RETURN_IF_ERROR(model.load_param(path));
    QUOLL_RETURN_IF_ERROR(infer_blob_sizes(model, BlobSizes(), &sizes));
    for (const ModelLayer& layer : model.layers) {
        if (!layer.is<Convolution>() || !sizes.count(layer.inputs[0])) continue;
        const std::unique_ptr<Layer> op = layer.make_operator();
        if (!op) return kError;
        const Convolution& conv = *as<Convolution>(op.get());
        if (conv.axes != 2 || conv.grouped) continue;
        const Shape in = sizes[layer.inputs[0]];
        ConvGeometry g;
        if (conv.dynamic_weight || in.dims != 3) continue;
        QUOLL_RETURN_IF_ERROR(convolution_geometry(conv, conv, {in}, &g));
        shapes->push_back(conv_shape(g));
    }
    return kOk;
}

void print(const ConvCandidateTimes& candidates, size_t* done) {
    fputs(candidates.text().c_str() + *done, stdout);
    fflush(stdout);
    *done = candidates.text().size();
}

void append(const ConvCandidateTimes& candidates, std::vector<CostSample>* samples) {
    samples->insert(samples->end(), candidates.samples().begin(), candidates.samples().end());
}

int bench_model(const char* path, int threads, std::vector<CostSample>* samples) {
    std::vector<ConvShape> shapes;
    QUOLL_RETURN_IF_ERROR(shapes_of_model(path, &shapes));
    ConvCandidateTimes candidates(threads);
    size_t done = 0;
    for (const ConvShape& s : shapes) candidates.add(s), print(candidates, &done);
    fputs(candidates.summary(path).c_str(), stdout);
    append(candidates, samples);
    return kOk;
}

bool is_model(const std::string& word) {
    return word.size() > 6 && word.compare(word.size() - 6, 6, ".param") == 0;
}

}  // namespace

int main(int argc, char** argv) {
    int threads = 1;
    bool fit = false;
    std::vector<std::string> words;
    CommandLine line("Times the candidates of convolution layers.", "bench_conv");
    line.flag("--fit", fit, "fit the constants of cost_table.inc to the times of one thread");
    line.option("THREADS", threads, "default 1").between(1, 1024);
    line.option("LAYERS", words,
                "w,h,in,out,kernel,stride[,dilation], or MODEL.param; default: those of well-known "
                "networks");
    int exit_code = 0;
    if (!line.parse(argc, argv, &exit_code)) return exit_code;
    std::vector<ConvCase> layers;
    std::vector<std::string> models;
    for (const std::string& word : words) {
        ConvCase l;
        if (is_model(word)) {
            models.push_back(word);
            continue;
        }
        if (sscanf(word.c_str(), "%d,%d,%d,%d,%d,%d,%d", &l.w, &l.h, &l.in, &l.out, &l.kernel,
                   &l.stride, &l.dilation) < 6 ||
            std::min({l.w, l.h, l.in, l.out, l.kernel, l.stride, l.dilation}) < 1) {
            fprintf(stderr,
                    "bench_conv: '%s': expected w,h,in,out,kernel,stride[,dilation] or "
                    "MODEL.param\n",
                    word.c_str());
            return 2;
        }
        layers.push_back(l);
    }
    if (layers.empty() && models.empty()) layers.assign(std::begin(kLayers), std::end(kLayers));
    if (fit && threads != 1) {
        fprintf(stderr, "bench_conv: --fit: expected 1 thread, got %d\n", threads);
        return 2;
    }
    printf("isa %s, %d threads", isa_name(host_kernel_set().isa), threads);
    for (const PeakUnit& unit : peak_units()) printf(", %s %.3f ns", unit.name, peak_time_ns(unit));
    printf("\n");
    ConvCandidateTimes candidates(threads);
    size_t done = 0;
    for (const ConvCase& layer : layers)
        candidates.add(conv_shape(geometry_of(layer))), print(candidates, &done);
    std::vector<CostSample> samples;
    append(candidates, &samples);
    for (const std::string& model : models)
        if (bench_model(model.c_str(), threads, &samples)) return 1;
    if (fit) fputs(fit_costs(samples, cycle_ns()).c_str(), stdout);
    return 0;
}
