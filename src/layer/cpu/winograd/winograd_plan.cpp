#include "layer/cpu/winograd/winograd_plan.h"

#include <math.h>
#include <string.h>

#include <algorithm>

#include "cpu.h"

namespace quoll {

namespace {

int tiles_along(int out) { return (out + kWinogradOut - 1) / kWinogradOut; }

}  // namespace

bool WinogradPlan::takes(const KernelSet& kernels, const ConvShape& s) {
    const auto fits = [](const ConvAxis& axis) {
        return axis.kernel == 3 && axis.stride == 1 && axis.dilation == 1;
    };
    return fits(s.x) && fits(s.y) && kernels.lanes > 1 && s.in_pack == kernels.lanes &&
           s.out_pack == kernels.lanes;
}

// From what one core does: two multiply-adds of a register a cycle, and some five bytes a cycle of
// weights that come from beyond its own caches, which each thread reads. A thread's products have a
// row for each of its tiles; fewer than four do not fill the pipeline.
double WinogradPlan::cycles(const KernelSet& kernels, const ConvShape& s, int threads) {
    const double lanes = kernels.lanes, pairs = (double)s.in_channels * s.out_channels;
    const double tiles = (double)tiles_along(s.x.out) * tiles_along(s.y.out);
    const double share = ceil(tiles / std::max(1, threads));
    const double bytes_a_cycle = 5;
    // Transforms: some 170 and 120 operations a tile and channel block, and their memory traffic.
    const double transforms = share * (s.in_channels * 200. + s.out_channels * 160.) / lanes;
    return std::max(std::max(share, 4.) * kWinogradPoints * pairs / (2 * lanes),
                    kWinogradPoints * pairs * 4 / bytes_a_cycle) +
           transforms;
}

bool WinogradPlan::prefers(const KernelSet& kernels, const ConvShape& s, int threads) {
    return takes(kernels, s) &&
           cycles(kernels, s, threads) < ConvPlan::cycles(kernels, s, threads) * .83;
}

size_t WinogradPlan::packed_size(const GemmKernels& kernels, size_t in_channels,
                                 size_t out_channels) {
    return kWinogradPoints * gemm_packed_size(kernels, out_channels, in_channels);
}

// Input channels whose transformed windows stay in the second-level cache until they are packed.
static const size_t kPackChannels = 64;

size_t WinogradPlan::pack_scratch(const GemmKernels& kernels, size_t in_channels) {
    return kWinogradPoints * std::min(in_channels, kPackChannels) * kernels.lanes * kernels.vectors;
}

void WinogradPlan::pack(const KernelSet& set, const float* weights, size_t in_channels,
                        size_t out_channels, float* packed, float* scratch) {
    const GemmKernels& kernels = *set.gemm;
    const size_t columns = (size_t)kernels.lanes * kernels.vectors;
    const size_t point = gemm_packed_size(kernels, out_channels, in_channels);
    for (size_t n0 = 0; n0 < out_channels; n0 += columns) {
        const size_t count = std::min(columns, out_channels - n0);
        const size_t width = gemm_packed_size(kernels, count, 1);
        for (size_t c0 = 0; c0 < in_channels; c0 += kPackChannels) {
            // scratch: [point][output][input] of a part of one panel.
            const size_t inputs = std::min(kPackChannels, in_channels - c0);
            const size_t step = count * inputs;
            for (size_t n = 0; n < count; n++)
                set.winograd->weights(weights + ((n0 + n) * in_channels + c0) * 9, inputs,
                                      scratch + n * inputs, step);
            for (int i = 0; i < kWinogradPoints; i++)
                gemm_pack(kernels, scratch + i * step, inputs, false, count, inputs,
                          packed + i * point + n0 * in_channels + c0 * width);
        }
    }
}

// Chunks of tiles whose transformed data take half a megabyte, unless the weights are so many that
// streaming them again for each chunk would cost more than data that overflow the second-level
// cache.
static int chunks_for(int tiles, size_t channels, size_t weights, int max_rows) {
    const size_t budget = (weights > 64 * 64 ? 512 : 128) * 1024;
    const size_t wanted = std::max<size_t>(1, budget / (kWinogradPoints * channels) / max_rows);
    const int fitting = (int)((tiles + wanted * max_rows - 1) / (wanted * max_rows));
    // As few as 16 MB of data each allow. All data then go to the third-level cache and come back,
    // at some 8 bytes a cycle; weights come from beyond at some 5.
    const double megabytes = (double)tiles * kWinogradPoints * channels * sizeof(float) / 0x1p20;
    const int least = (int)ceil(megabytes / 16);
    const double streams = (fitting - least) * (double)weights / 5;
    return streams > 2. * tiles * (double)channels / 8 ? least : fitting;
}

WinogradPlan::WinogradPlan(const KernelSet& kernels, const ConvShape& shape, int threads)
    : kernels_(kernels), shape_(shape), threads_(std::max(1, threads)) {
    tiles_x_ = tiles_along(shape.x.out);
    tiles_ = tiles_x_ * tiles_along(shape.y.out);
    const size_t channels = (size_t)shape.in_channels + shape.out_channels;
    const size_t weights = (size_t)shape.in_channels * shape.out_channels;
    chunks_ = chunks_for(tiles_, channels, weights, kernels.gemm->max_rows);
    // At least two tiles each: products of one row are summed in another order, and results must
    // not depend on the number of threads.
    chunks_ = std::max(1, std::min(std::max(chunks_, threads_), tiles_ / 2));
    chunk_ = (tiles_ + chunks_ - 1) / chunks_;
    threads_ = std::min(threads_, chunks_);
}

size_t WinogradPlan::workspace() const {
    const size_t channels = (size_t)shape_.in_channels + shape_.out_channels;
    return threads_ * chunk_ * channels * kWinogradPoints;
}

struct WinogradPlan::Blobs {
    const float *in, *weights, *bias, *zeros;
    float* out;
    const float* residual;
    size_t residual_step;
    const FusedActivation& activation;
};

void WinogradPlan::run(const float* in, const float* weights, const float* bias, const float* zeros,
                       float* out, const float* residual, size_t residual_step,
                       const FusedActivation& activation, float* workspace) const {
    const Blobs blobs = {in, weights, bias, zeros, out, residual, residual_step, activation};
    const size_t share = this->workspace() / threads_;
#pragma omp parallel for num_threads(threads_) schedule(dynamic) if (threads_ > 1)
    for (int i = 0; i < chunks_; i++) {
        float* own = workspace + (threads_ > 1 ? get_omp_thread_num() * share : 0);
        run_tiles(blobs, own, (int)piece_begin(tiles_, chunks_, i),
                  (int)piece_length(tiles_, chunks_, i));
    }
}

// 6 x 6 inputs of each channel block; what lies outside the input is zero.
void WinogradPlan::transform_input(const float* in, int tile, float* to, size_t step) const {
    const size_t lanes = kernels_.lanes;
    const int x0 = tile % tiles_x_ * kWinogradOut - shape_.x.before;
    const int y0 = tile / tiles_x_ * kWinogradOut - shape_.y.before;
    const int left = std::max(0, -x0), right = std::min<int>(kWinogradIn, shape_.x.in - x0);
    const int top = std::max(0, -y0), bottom = std::min<int>(kWinogradIn, shape_.y.in - y0);
    const ptrdiff_t row = (ptrdiff_t)shape_.x.in * lanes;
    const bool inside = left == 0 && top == 0 && right == kWinogradIn && bottom == kWinogradIn;
    alignas(64) float border[kWinogradPoints * 16];
    if (!inside) memset(border, 0, kWinogradPoints * lanes * sizeof(float));
    for (int c = 0; c < shape_.in_channels; c += (int)lanes) {
        const float* from = in + c / lanes * shape_.in_step + y0 * row + x0 * (ptrdiff_t)lanes;
        if (inside) {
            kernels_.winograd->input(from, row, to + c, step);
            continue;
        }
        for (int y = top; y < bottom && left < right; y++)
            memcpy(border + (y * kWinogradIn + left) * lanes,
                   from + y * row + left * (ptrdiff_t)lanes,
                   (right - left) * lanes * sizeof(float));
        kernels_.winograd->input(border, kWinogradIn * lanes, to + c, step);
    }
}

void WinogradPlan::transform_output(const Blobs& b, const float* from, size_t step,
                                    int tile) const {
    const size_t lanes = kernels_.lanes;
    const int x0 = tile % tiles_x_ * kWinogradOut, y0 = tile / tiles_x_ * kWinogradOut;
    const int w = std::min<int>(kWinogradOut, shape_.x.out - x0);
    const int h = std::min<int>(kWinogradOut, shape_.y.out - y0);
    const ptrdiff_t row = (ptrdiff_t)shape_.x.out * lanes;
    for (int c = 0; c < shape_.out_channels; c += (int)lanes) {
        const ptrdiff_t at = y0 * row + x0 * (ptrdiff_t)lanes;
        float* to = b.out + c / lanes * shape_.out_step + at;
        const float* added = b.residual ? b.residual + c / lanes * b.residual_step + at : nullptr;
        kernels_.winograd->output(from + c, step, b.bias + c, added, to, row, w, h,
                                  b.activation.low, b.activation.high);
        for (int y = 0; b.activation.pass && y < h; y++)
            b.activation.finish(to + y * row, w * lanes);
    }
}

void WinogradPlan::run_tiles(const Blobs& b, float* workspace, int first, int count) const {
    const size_t inputs = shape_.in_channels, outputs = shape_.out_channels;
    const size_t point = gemm_packed_size(*kernels_.gemm, outputs, inputs);
    // [point][tile][channel] of transformed inputs, then of sums.
    const size_t in_step = (size_t)count * inputs, out_step = (size_t)count * outputs;
    float* const sums = workspace + kWinogradPoints * in_step;
    for (int t = 0; t < count; t++)
        transform_input(b.in, first + t, workspace + t * inputs, in_step);
    GemmMatrix g = {};
    g.kernels = &kernels_;
    g.a_row = (ptrdiff_t)inputs;
    g.a_k = 1;
    g.m = count;
    g.n = outputs;
    g.k = inputs;
    g.bias = b.zeros;
    g.c_row = (ptrdiff_t)outputs;
    g.c_pack = outputs;
    for (int i = 0; i < kWinogradPoints; i++) {
        g.a = workspace + i * in_step;
        g.b = b.weights + i * point;
        g.c = sums + i * out_step;
        gemm_matrix(g, 1);
    }
    for (int t = 0; t < count; t++) transform_output(b, sums + t * outputs, out_step, first + t);
}

}  // namespace quoll
