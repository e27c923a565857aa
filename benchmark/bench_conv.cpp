// bench_conv: the forms of a convolution beside each other, and what the library expects of them.
//
//   bench_conv [threads] [w,h,in,out,kernel,stride ...]
//
// Without shapes: those of well-known networks. GFLOP/s of vectors (direct, Winograd) and of split
// products on tile units (6, 3, 1; see layer/cpu/gemm/split_gemm.h), then the cycles expected by
// the rule that chooses, in millions, and in brackets what 2.4 GHz make of the measured time. The
// forms take turns; medians.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "layer/cpu/conv/conv_plan.h"
#include "layer/cpu/conv/split_plan.h"
#include "layer/cpu/winograd/winograd_plan.h"

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
    double cycles;  // expected, of one core
    std::function<void()> run;
    std::vector<double> times;
};

double now_us() {
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::micro>(time).count();
}

// Rounds of all forms; in each a form runs until it is warm, then once for the figure.
void measure(std::vector<Form>* forms) {
    for (int round = 0; round < 9; round++)
        for (Form& form : *forms) {
            const double begin = now_us();
            do form.run();
            while (now_us() - begin < 300);
            const double start = now_us();
            form.run();
            form.run();
            form.times.push_back((now_us() - start) / 2);
        }
}

void bench(const KernelSet& kernels, const ConvCase& l, int threads) {
    const int pad = l.kernel / 2, out_w = (l.w + 2 * pad - l.kernel) / l.stride + 1;
    const int out_h = (l.h + 2 * pad - l.kernel) / l.stride + 1;
    ConvShape s = {};
    s.x = {l.w, out_w, l.kernel, l.stride, 1, pad};
    s.y = {l.h, out_h, l.kernel, l.stride, 1, pad};
    s.in_channels = l.in, s.out_channels = l.out;
    Option opt;
    s.in_pack = best_elempack(kernels, l.in, opt);
    s.out_pack = best_elempack(kernels, l.out, opt);
    s.in_step = (size_t)l.w * l.h * s.in_pack;
    s.out_step = (size_t)out_w * out_h * s.out_pack;
    const int taps = l.kernel * l.kernel;
    const Mat in = zeros((size_t)l.w * l.h * l.in), weights = zeros((size_t)l.in * l.out * taps);
    const Mat bias = zeros(l.out + 64);
    Mat out = zeros((size_t)out_w * out_h * l.out);
    const FusedActivation relu(kernels, Activation(1, Mat()));
    const GemmKernels& gemm = *kernels.gemm;
    std::vector<Form> forms;

    Mat packed = zeros(gemm_packed_size(gemm, l.out, (size_t)l.in * taps));
    const ConvPlan plan(kernels, s);
    forms.push_back({"direct",
                     ConvPlan::cycles(kernels, s, threads),
                     [&] { plan.run(in, packed, bias, out, nullptr, 0, relu, threads); },
                     {}});
    Mat winograd_weights, winograd_workspace;
    std::unique_ptr<WinogradPlan> winograd;
    if (WinogradPlan::takes(kernels, s)) {
        winograd.reset(new WinogradPlan(kernels, s, threads));
        winograd_weights = zeros(WinogradPlan::packed_size(gemm, l.in, l.out));
        winograd_workspace = zeros(winograd->workspace());
        forms.push_back({"winograd",
                         WinogradPlan::cycles(kernels, s, threads),
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
        split_weights[i] = zeros(SplitPlan::packed_size(*split, l.in, taps, l.out) / 2);
        SplitPlan::pack(*split, weights, l.in, taps, l.out, (uint16_t*)split_weights[i].data);
        plans.emplace_back(*split, split_shape(s), threads);
        const SplitPlan& plan_i = plans.back();
        split_workspace[i] = zeros(plan_i.workspace());
        forms.push_back({names[i],
                         SplitPlan::cycles(*split, split_shape(s), threads),
                         [&, i] {
                             plan_i.run(in, (const uint16_t*)split_weights[i].data, bias, out,
                                        nullptr, 0, relu, split_workspace[i]);
                         },
                         {}});
    }
    measure(&forms);
    printf("%3dx%-3d %4d>%-4d k%d s%d", l.w, l.h, l.in, l.out, l.kernel, l.stride);
    const double work = 2. * out_w * out_h * l.in * l.out * taps;
    for (Form& form : forms) {
        std::sort(form.times.begin(), form.times.end());
        const double us = form.times[form.times.size() / 2];
        printf("  %s %7.1f %6.3f (%.3f)", form.name, work / us * 1e-3, form.cycles * 1e-6,
               us * 2400 * 1e-6);
    }
    printf("\n");
    fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    const int threads = argc > 1 ? atoi(argv[1]) : 1;
    std::vector<ConvCase> layers;
    for (int i = 2; i < argc; i++) {
        ConvCase l;
        if (sscanf(argv[i], "%d,%d,%d,%d,%d,%d", &l.w, &l.h, &l.in, &l.out, &l.kernel, &l.stride) !=
                6 ||
            std::min({l.w, l.h, l.in, l.out, l.kernel, l.stride}) < 1) {
            fprintf(stderr, "bench_conv: '%s': expected w,h,in,out,kernel,stride\n", argv[i]);
            return 2;
        }
        layers.push_back(l);
    }
    if (threads < 1 || threads > 1024) {
        fprintf(stderr, "bench_conv: threads: expected 1 to 1024\n");
        return 2;
    }
    if (layers.empty()) layers.assign(std::begin(kLayers), std::end(kLayers));
    const KernelSet& kernels = host_kernel_set();
    printf("isa %s, %d threads, tile %.2f ns, vector %.3f ns\n", isa_name(kernels.isa), threads,
           split_gemm_speed().tile_ns, split_gemm_speed().vector_ns);
    for (const ConvCase& layer : layers) bench(kernels, layer, threads);
    return 0;
}
