#include "conv_candidates.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <memory>

namespace quoll {

namespace {

Mat zeros(size_t floats) {
    Mat m;
    m.create(16, (int)((floats + 15) / 16));
    for (int i = 0; i < m.h; i++)
        for (int j = 0; j < 16; j++) m.row(i)[j] = (float)((i * 7 + j) % 13) * .1f - .6f;
    return m;
}

// Processor time of one thread, which does not depend on what else the machine does.
double now_us(int threads) {
    if (threads == 1) return (double)clock() * 1e6 / CLOCKS_PER_SEC;
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::micro>(time).count();
}

void append(std::string* text, const char* format, ...) {
    char line[256];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    *text += line;
}

}  // namespace

struct ConvCandidateTimes::Candidate {
    const char* name;
    ConvAlgorithm algorithm;
    std::function<double(const CostTable&)> cycles;  // expected, of one core
    std::function<void()> run;
    std::vector<double> times;
    double median() const { return times[times.size() / 2]; }
};

// Rounds of all candidates; in each a candidate runs until it is warm, then once for the figure.
void ConvCandidateTimes::measure(std::vector<Candidate>* candidates) {
    for (int round = 0; round < 9; round++)
        for (Candidate& candidate : *candidates) {
            const double begin = now_us(threads_);
            do candidate.run();
            while (now_us(threads_) - begin < 300);
            // Many runs of a short one: the clock ticks in microseconds.
            const double start = now_us(threads_);
            double runs = 0, time = 0;
            for (; runs < 2 || time < 200; runs++, time = now_us(threads_) - start) candidate.run();
            candidate.times.push_back(time / runs);
        }
    for (Candidate& candidate : *candidates) {
        std::sort(candidate.times.begin(), candidate.times.end());
        if (threads_ == 1) samples_.push_back({candidate.median() * 1e3, candidate.cycles});
    }
}

// A line about the measured candidates.
ConvCandidateTimes::Regret ConvCandidateTimes::report(const ConvShape& s,
                                                      const std::vector<Candidate>& candidates) {
    const KernelSet& kernels = host_kernel_set();
    const ConvCandidates allowed = {WinogradPlan::is_supported(kernels, s), kernels.split6,
                                    kernels.sliced};
    const ConvAlgorithm taken = choose_conv_algorithm(kernels, allowed, s, false);
    append(&text_, "%3dx%-3d %4d>%-4d k%dx%d s%d", s.x.in, s.y.in, s.in_channels, s.out_channels,
           s.x.kernel, s.y.kernel, s.x.stride);
    if (s.x.dilation > 1) append(&text_, " d%d", s.x.dilation);
    const double work =
        2. * s.x.out * s.y.out * s.in_channels * s.out_channels * s.x.kernel * s.y.kernel;
    Regret regret = {0, INFINITY};
    for (const Candidate& candidate : candidates) {
        const double us = candidate.median();
        const bool choice = candidate.algorithm != ConvAlgorithm::kNone;
        if (candidate.algorithm == taken) regret.taken = us;
        if (choice) regret.least = std::min(regret.least, us);
        append(&text_, "  %s%s %7.1f %6.3f (%.3f)", candidate.algorithm == taken ? "*" : "",
               candidate.name, work / us * 1e-3, candidate.cycles(host_costs()) * 1e-6,
               us * 2400 * 1e-6);
    }
    append(&text_, "  %.0f us, regret %.0f %%\n", regret.taken,
           100 * (regret.taken / regret.least - 1));
    return regret;
}

ConvCandidateTimes::Regret ConvCandidateTimes::bench(const ConvShape& s) {
    const KernelSet& kernels = host_kernel_set();
    const int taps = s.x.kernel * s.y.kernel, in_c = s.in_channels, out_c = s.out_channels;
    const Mat in = zeros((size_t)s.x.in * s.y.in * in_c),
              weights = zeros((size_t)in_c * out_c * taps);
    const Mat bias = zeros(out_c + 64);
    Mat out = zeros((size_t)s.x.out * s.y.out * out_c);
    const FusedActivation relu(kernels, Activation(1, Mat()));
    const GemmKernels& gemm = *kernels.gemm;
    std::vector<Candidate> candidates;

    Mat packed = zeros(gemm_packed_size(gemm, out_c, (size_t)in_c * taps));
    const ConvPlan plan(kernels, s);
    candidates.push_back(
        {"direct",
         ConvAlgorithm::kDirect,
         [&kernels, s](const CostTable& c) { return ConvPlan::cycles(kernels, s, c); },
         [&] { plan.run(in, packed, bias, out, nullptr, 0, relu, threads_); },
         {}});
    Mat winograd_weights, winograd_workspace;
    std::unique_ptr<WinogradPlan> winograd;
    if (WinogradPlan::is_supported(kernels, s)) {
        winograd.reset(new WinogradPlan(kernels, s, kWinogradIn, threads_));
        winograd_weights = zeros(WinogradPlan::packed_size(gemm, in_c, 1, out_c, kWinogradIn));
        winograd_workspace = zeros(winograd->workspace());
        candidates.push_back({"winograd",
                              ConvAlgorithm::kWinograd,
                              [&kernels, s](const CostTable& c) {
                                  return WinogradPlan::cycles(kernels, s, c) * c.winograd_wait;
                              },
                              [&] {
                                  winograd->run(in, winograd_weights, bias, bias, out, nullptr, 0,
                                                relu, winograd_workspace);
                              },
                              {}});
    }
    Mat split_weights[3], split_workspace[3];
    std::vector<SplitPlan> plans;
    plans.reserve(3);
    const char* const names[] = {"split 6", "split 3", "split 1"};
    for (int i = 0; i < 3; i++) {
        const SplitGemmKernels* split = kernels.split(i == 0 ? 6 : i == 1 ? 3 : 1);
        if (!split) continue;
        const TileShape shape = tile_shape(s);
        split_weights[i] = zeros(SplitPlan::packed_size(*split, shape) / 2);
        SplitPlan::pack(*split, weights, shape, (uint16_t*)split_weights[i].data);
        plans.emplace_back(*split, shape, threads_);
        const SplitPlan& plan_i = plans.back();
        split_workspace[i] = zeros(plan_i.workspace());
        // The library takes fewer products only when asked.
        const bool usual = i == 0 && kernels.split6;
        candidates.push_back(
            {names[i],
             usual ? ConvAlgorithm::kSplit : ConvAlgorithm::kNone,
             [split, shape](const CostTable& c) { return SplitPlan::cycles(*split, shape, c); },
             [&, i] {
                 plan_i.run(in, (const uint16_t*)split_weights[i].data, bias, out, nullptr, 0, relu,
                            split_workspace[i]);
             },
             {}});
    }
    Mat sliced_weights, sliced_workspace;
    std::unique_ptr<SlicedPlan> sliced;
    const TileShape tiles = tile_shape(s);
    if (kernels.sliced && SlicedPlan::is_supported(tiles)) {
        sliced.reset(new SlicedPlan(*kernels.sliced, tiles, threads_));
        sliced_weights = zeros(SlicedPlan::packed_size(tiles));
        SlicedPlan::pack(*kernels.sliced, weights, tiles, sliced_weights);
        sliced_workspace = zeros(sliced->workspace());
        candidates.push_back({"sliced",
                              ConvAlgorithm::kSliced,
                              [tiles](const CostTable& c) { return SlicedPlan::cycles(tiles, c); },
                              [&] {
                                  sliced->run(in, sliced_weights, bias, out, nullptr, 0, relu,
                                              sliced_workspace);
                              },
                              {}});
    }
    measure(&candidates);
    return report(s, candidates);
}

void ConvCandidateTimes::add(const ConvShape& shape) {
    const auto found = std::find_if(known_.begin(), known_.end(),
                                    [&](const auto& pair) { return pair.first == shape; });
    const Regret r = found == known_.end() ? bench(shape) : found->second;
    if (found == known_.end()) known_.emplace_back(shape, r);
    total_.taken += r.taken, total_.least += r.least;
    count_++;
}

std::string ConvCandidateTimes::summary(const std::string& name) const {
    std::string text;
    append(&text, "%zu convolutions, %.2f ms as taken, %.2f ms at best: regret %.1f %%\n", count_,
           total_.taken * 1e-3, total_.least * 1e-3,
           total_.least > 0 ? 100 * (total_.taken / total_.least - 1) : 0.);
    return name + ": " + text;
}

ConvShape conv_shape(const ConvGeometry& g) {
    const KernelSet& kernels = host_kernel_set();
    ConvShape s = {};
    s.x = {g.x.in, g.x.out, g.x.kernel, g.x.stride, g.x.dilation, g.x.before};
    s.y = {g.y.in, g.y.out, g.y.kernel, g.y.stride, g.y.dilation, g.y.before};
    s.in_channels = g.num_input, s.out_channels = g.num_output;
    s.in_pack = best_elempack(kernels, g.num_input, Option());
    s.out_pack = best_elempack(kernels, g.num_output, Option());
    s.in_step = (size_t)g.x.in * g.y.in * s.in_pack;
    s.out_step = (size_t)g.x.out * g.y.out * s.out_pack;
    return s;
}

}  // namespace quoll
