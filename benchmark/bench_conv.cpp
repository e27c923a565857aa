// bench_conv: the forms of a convolution beside each other, and what the library expects of them.
//
//   bench_conv [threads] [w,h,in,out,kernel,stride | MODEL.param ...]
//
// Without shapes: those of well-known networks; of a model those of its convolutions without
// groups. GFLOP/s of vectors (direct, Winograd) and of split products on tile units (6, 3, 1; see
// layer/cpu/gemm/split_gemm.h), then the cycles of one core that the rule which chooses expects, in
// millions, and in brackets what 2.4 GHz make of the measured time. The forms take turns; medians,
// of processor time with one thread. The form that the library takes (of vectors and 6 products) is
// marked with a star, and the last figure is its regret: how much longer it takes than the fastest
// of them.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/cli.h"
#include "graph/analysis.h"
#include "layer/cpu/conv/conv_runner.h"

using namespace quoll;

namespace {

struct ConvCase {
    int w, h, in, out, kernel, stride;
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

Mat zeros(size_t floats) {
    Mat m;
    m.create(16, (int)((floats + 15) / 16));
    for (int i = 0; i < m.h; i++)
        for (int j = 0; j < 16; j++) m.row(i)[j] = (float)((i * 7 + j) % 13) * .1f - .6f;
    return m;
}

struct Form {
    const char* name;
    ConvForm form;
    double cycles;  // expected, of one core
    std::function<void()> run;
    std::vector<double> times;
    double median() const { return times[times.size() / 2]; }
};

// One thread's time counts only while it runs, whatever else the machine does.
double now_us(int threads) {
    if (threads == 1) return (double)clock() * 1e6 / CLOCKS_PER_SEC;
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::micro>(time).count();
}

// Rounds of all forms; in each a form runs until it is warm, then once for the figure.
void measure(int threads, std::vector<Form>* forms) {
    for (int round = 0; round < 9; round++)
        for (Form& form : *forms) {
            const double begin = now_us(threads);
            do form.run();
            while (now_us(threads) - begin < 300);
            // Many runs of a short one: the clock ticks in microseconds.
            const double start = now_us(threads);
            double runs = 0, time = 0;
            for (; runs < 2 || time < 200; runs++, time = now_us(threads) - start) form.run();
            form.times.push_back(time / runs);
        }
    for (Form& form : *forms) std::sort(form.times.begin(), form.times.end());
}

ConvShape shape_of(const KernelSet& kernels, const ConvCase& l) {
    const int pad = l.kernel / 2;
    const auto axis = [&](int in) {
        return ConvAxis{in, (in + 2 * pad - l.kernel) / l.stride + 1, l.kernel, l.stride, 1, pad};
    };
    ConvShape s = {};
    s.x = axis(l.w);
    s.y = axis(l.h);
    s.in_channels = l.in, s.out_channels = l.out;
    s.in_pack = best_elempack(kernels, l.in, Option());
    s.out_pack = best_elempack(kernels, l.out, Option());
    s.in_step = (size_t)l.w * l.h * s.in_pack;
    s.out_step = (size_t)s.x.out * s.y.out * s.out_pack;
    return s;
}

// Microseconds of the form that the library takes, and of the fastest.
struct Regret {
    double taken, least;
};

// A line about the measured forms.
Regret report(const KernelSet& kernels, const ConvShape& s, const std::vector<Form>& forms) {
    const ConvForm taken = choose_conv_form(kernels, WinogradPlan::takes(kernels, s),
                                            usable_split_gemm_kernels(6), s, false);
    printf("%3dx%-3d %4d>%-4d k%dx%d s%d", s.x.in, s.y.in, s.in_channels, s.out_channels,
           s.x.kernel, s.y.kernel, s.x.stride);
    const double work =
        2. * s.x.out * s.y.out * s.in_channels * s.out_channels * s.x.kernel * s.y.kernel;
    Regret regret = {0, INFINITY};
    for (const Form& form : forms) {
        const double us = form.median();
        const bool choice = form.form != ConvForm::kUndecided;
        if (form.form == taken) regret.taken = us;
        if (choice) regret.least = std::min(regret.least, us);
        printf("  %s%s %7.1f %6.3f (%.3f)", form.form == taken ? "*" : "", form.name,
               work / us * 1e-3, form.cycles * 1e-6, us * 2400 * 1e-6);
    }
    printf("  %.0f us, regret %.0f %%\n", regret.taken, 100 * (regret.taken / regret.least - 1));
    fflush(stdout);
    return regret;
}

Regret bench(const KernelSet& kernels, const ConvShape& s, int threads) {
    const int taps = s.x.kernel * s.y.kernel, in_c = s.in_channels, out_c = s.out_channels;
    const Mat in = zeros((size_t)s.x.in * s.y.in * in_c),
              weights = zeros((size_t)in_c * out_c * taps);
    const Mat bias = zeros(out_c + 64);
    Mat out = zeros((size_t)s.x.out * s.y.out * out_c);
    const FusedActivation relu(kernels, Activation(1, Mat()));
    const GemmKernels& gemm = *kernels.gemm;
    std::vector<Form> forms;

    Mat packed = zeros(gemm_packed_size(gemm, out_c, (size_t)in_c * taps));
    const ConvPlan plan(kernels, s);
    forms.push_back({"direct",
                     ConvForm::kDirect,
                     ConvPlan::cycles(kernels, s),
                     [&] { plan.run(in, packed, bias, out, nullptr, 0, relu, threads); },
                     {}});
    Mat winograd_weights, winograd_workspace;
    std::unique_ptr<WinogradPlan> winograd;
    if (WinogradPlan::takes(kernels, s)) {
        winograd.reset(new WinogradPlan(kernels, s, threads));
        winograd_weights = zeros(WinogradPlan::packed_size(gemm, in_c, out_c));
        winograd_workspace = zeros(winograd->workspace());
        forms.push_back({"winograd",
                         ConvForm::kWinograd,
                         WinogradPlan::cycles(kernels, s),
                         [&] {
                             winograd->run(in, winograd_weights, bias, bias, out, nullptr, 0, relu,
                                           winograd_workspace);
                         },
                         {}});
    }
    Mat split_weights[3], split_workspace[3];
    std::vector<SplitPlan> plans;
    plans.reserve(3);
    const char* const names[] = {"split 6", "split 3", "split 1"};
    for (int i = 0; i < 3; i++) {
        const SplitGemmKernels* split = split_gemm_kernels(i == 0 ? 6 : i == 1 ? 3 : 1);
        if (!split) continue;
        const TileShape shape = tile_shape(s);
        split_weights[i] = zeros(SplitPlan::packed_size(*split, shape) / 2);
        SplitPlan::pack(*split, weights, shape, (uint16_t*)split_weights[i].data);
        plans.emplace_back(*split, shape, threads);
        const SplitPlan& plan_i = plans.back();
        split_workspace[i] = zeros(plan_i.workspace());
        // The library takes fewer products only when asked.
        const bool usual = i == 0 && usable_split_gemm_kernels(6);
        forms.push_back({names[i],
                         usual ? ConvForm::kSplit : ConvForm::kUndecided,
                         SplitPlan::cycles(*split, shape),
                         [&, i] {
                             plan_i.run(in, (const uint16_t*)split_weights[i].data, bias, out,
                                        nullptr, 0, relu, split_workspace[i]);
                         },
                         {}});
    }
    measure(threads, &forms);
    return report(kernels, s, forms);
}

// The convolutions without groups of a model that tells its input's size.
int shapes_of_model(const KernelSet& kernels, const char* path, std::vector<ConvShape>* shapes) {
    Model model;
    BlobSizes sizes;
    QUOLL_RETURN_IF_ERROR(model.load_param(path));
    QUOLL_RETURN_IF_ERROR(infer_blob_sizes(model, BlobSizes(), &sizes));
    for (const ModelLayer& layer : model.layers) {
        if (layer.type != "Convolution" || !sizes.count(layer.inputs[0])) continue;
        const std::unique_ptr<Layer> op = layer.make_operator();
        if (!op) return kError;
        const auto& conv = static_cast<const ConvolutionOperator&>(*op);
        const Shape in = sizes[layer.inputs[0]];
        ConvGeometry g;
        if (conv.dynamic_weight || in.dims != 3) continue;
        QUOLL_RETURN_IF_ERROR(convolution_geometry(conv, conv, {in}, &g));
        ConvShape s = shape_of(kernels, {g.x.in, g.y.in, g.num_input, g.num_output, 1, 1});
        s.x = {g.x.in, g.x.out, g.x.kernel, g.x.stride, g.x.dilation, g.x.before};
        s.y = {g.y.in, g.y.out, g.y.kernel, g.y.stride, g.y.dilation, g.y.before};
        s.out_step = (size_t)g.x.out * g.y.out * s.out_pack;
        shapes->push_back(s);
    }
    return kOk;
}

int bench_model(const KernelSet& kernels, const char* path, int threads) {
    std::vector<ConvShape> shapes;
    QUOLL_RETURN_IF_ERROR(shapes_of_model(kernels, path, &shapes));
    Regret total = {0, 0};
    std::vector<std::pair<ConvShape, Regret>> known;
    for (const ConvShape& s : shapes) {
        const auto found = std::find_if(known.begin(), known.end(),
                                        [&](const auto& pair) { return pair.first == s; });
        const Regret r = found == known.end() ? bench(kernels, s, threads) : found->second;
        if (found == known.end()) known.emplace_back(s, r);
        total.taken += r.taken, total.least += r.least;
    }
    printf("%s: %zu convolutions, %.2f ms as taken, %.2f ms at best: regret %.1f %%\n", path,
           shapes.size(), total.taken * 1e-3, total.least * 1e-3,
           total.least > 0 ? 100 * (total.taken / total.least - 1) : 0.);
    return kOk;
}

bool is_model(const std::string& word) {
    return word.size() > 6 && word.compare(word.size() - 6, 6, ".param") == 0;
}

}  // namespace

int main(int argc, char** argv) {
    int threads = 1;
    std::vector<std::string> words;
    CLI::App app("Times the forms of convolution layers.", "bench_conv");
    app.add_option("THREADS", threads, "default 1")->check(CLI::Range(1, 1024));
    app.add_option("LAYERS", words,
                   "w,h,in,out,kernel,stride, or MODEL.param; default: those of well-known "
                   "networks");
    int exit_code = 0;
    if (!parse_command_line(app, argc, argv, &exit_code)) return exit_code;
    std::vector<ConvCase> layers;
    std::vector<std::string> models;
    for (const std::string& word : words) {
        ConvCase l;
        if (is_model(word)) {
            models.push_back(word);
            continue;
        }
        if (sscanf(word.c_str(), "%d,%d,%d,%d,%d,%d", &l.w, &l.h, &l.in, &l.out, &l.kernel,
                   &l.stride) != 6 ||
            std::min({l.w, l.h, l.in, l.out, l.kernel, l.stride}) < 1) {
            fprintf(stderr, "bench_conv: '%s': expected w,h,in,out,kernel,stride or MODEL.param\n",
                    word.c_str());
            return 2;
        }
        layers.push_back(l);
    }
    if (layers.empty() && models.empty()) layers.assign(std::begin(kLayers), std::end(kLayers));
    const KernelSet& kernels = host_kernel_set();
    printf("isa %s, %d threads, tile %.2f ns, vector %.3f ns\n", isa_name(kernels.isa), threads,
           split_gemm_speed().tile_ns, split_gemm_speed().vector_ns);
    for (const ConvCase& layer : layers) bench(kernels, shape_of(kernels, layer), threads);
    for (const std::string& model : models)
        if (bench_model(kernels, model.c_str(), threads)) return 1;
    return 0;
}
