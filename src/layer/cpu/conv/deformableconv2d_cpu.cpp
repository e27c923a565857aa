#include "layer/cpu/conv/deformableconv2d_cpu.h"

#include <math.h>
#include <string.h>

#include <algorithm>

#include "layer/cpu/attention/attention.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// How many points' taps are gathered before they are multiplied: whole tiles of rows.
enum { kBlock = 56 };

// The image with a border of zeros and channels innermost: row y + 1, column x + 1 has the channels
// of pixel (x, y), then those of (x, y + 1). So the four pixels around a point are contiguous.
Mat pixel_pairs(const Mat& image, int threads, Allocator* allocator) {
    const size_t c = image.c;
    Mat pairs(2 * image.c, image.w + 2, image.h + 1, (size_t)4u, allocator);
    if (pairs.empty()) return pairs;
    run_tasks(pairs.c, threads, [&](int64_t row, int) {
        float* out = pairs.channel((int)row);
        memset(out, 0, (size_t)pairs.w * pairs.h * sizeof(float));
        for (int half = 0; half < 2; half++) {
            const int y = (int)row - 1 + half;
            if (y < 0 || y >= image.h) continue;
            const float* in = (const float*)image.data + (size_t)y * image.w;
            for (int x = 0; x < image.w; x++) {
                float* to = out + (size_t)(x + 1) * 2 * c + half * c;
                for (size_t q = 0; q < c; q++) to[q] = in[q * image.cstep + x];
            }
        }
    });
    return pairs;
}

}  // namespace

int DeformableConv2DCpu::create_pipeline(const Option& opt) {
    QUOLL_RETURN_IF_ERROR(DeformableConv2D::create_pipeline(opt));
    kernels_ = &host_kernel_set();
    activation_ = FusedActivation(*kernels_, Activation(activation_type, activation_params));
    const int terms = weight_data_size / num_output, maxk = kernel_w * kernel_h;
    const int channels = terms / maxk;
    Mat order(terms, (size_t)4u, opt.workspace_allocator);
    const GemmKernels& gemm = *kernels_->gemm;
    panels_.create(gemm.lanes, (int)(gemm_packed_size(gemm, num_output, terms) / gemm.lanes));
    bias_ = gemm_bias(gemm, bias_term ? (const float*)bias_data : nullptr, num_output);
    if (order.empty() || panels_.empty() || bias_.empty()) {
        fail("out of memory for %d weights", weight_data_size);
        return kOutOfMemory;
    }
    for (int k = 0; k < maxk; k++)
        for (int q = 0; q < channels; q++) ((int*)order.data)[k * channels + q] = q * maxk + k;
    gemm_pack_ordered(gemm, weight_data, terms, (const int*)order.data, num_output, terms, panels_);
    weight_data.release();
    return kOk;
}

// Gathers the values under the window of a point: [kernel_h][kernel_w][num_input].
void DeformableConv2DCpu::gather(const std::vector<Mat>& bottoms, const ConvGeometry& g,
                                 const Mat& pairs, int point, float* values) const {
    const size_t c = g.num_input;
    const float* offsets = (const float*)bottoms[1].data + point;
    const float* masks = bottoms.size() == 3 ? (const float*)bottoms[2].data + point : nullptr;
    for (int k = 0; k < g.maxk(); k++, values += c) {
        const float y = (float)g.y.position(point / g.x.out, k / g.x.kernel) +
                        offsets[2 * k * bottoms[1].cstep];
        const float x = (float)g.x.position(point % g.x.out, k % g.x.kernel) +
                        offsets[(2 * k + 1) * bottoms[1].cstep];
        const float mask = masks ? masks[k * bottoms[2].cstep] : 1.f;
        // Also false for NaN.
        if (!(x > -1.f && y > -1.f && x < (float)g.x.in && y < (float)g.y.in)) {
            std::fill_n(values, c, 0.f * mask);  // NaN if the mask is infinite
            continue;
        }
        const float left = floorf(x), top = floorf(y), right = x - left, below = y - top;
        const float* pixels = pairs.channel((int)top + 1).row((int)left + 1);
        // Pixels with a weight of 0 count as nothing, whatever their value.
        const float corners[4] = {(1.f - right) * (1.f - below), (1.f - right) * below,
                                  right * (1.f - below), right * below};
        const float upper[2] = {corners[0], corners[2]};
        const size_t count = (right != 0.f ? 2 : 1) * (below != 0.f ? 2 : 1);
        kernels_->attention->sum_rows(below != 0.f ? corners : upper, count, pixels,
                                      below != 0.f ? c : 2 * c, c, mask, values);
    }
}

int DeformableConv2DCpu::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                                 const Option& opt) const {
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(geometry(shapes_of(bottoms), &g));
    QUOLL_RETURN_IF_ERROR(create_tops(*this, bottoms, tops, opt));
    const int points = g.x.out * g.y.out, terms = g.num_input * g.maxk();
    const int blocks = (points + kBlock - 1) / kBlock;
    const int threads = threads_for(opt, (double)points * terms * num_output);
    const Mat pairs = pixel_pairs(bottoms[0], threads, opt.workspace_allocator);
    Mat values(terms, std::min<int>(points, kBlock), std::min(threads, blocks), (size_t)4u,
               opt.workspace_allocator);
    if (pairs.empty() || values.empty()) return kOutOfMemory;
    Mat& top = tops[0];
    run_tasks(blocks, threads, [&](int64_t block, int thread) {
        const int first = (int)block * kBlock, count = std::min<int>(kBlock, points - first);
        float* taps = values.channel(thread);
        for (int i = 0; i < count; i++)
            gather(bottoms, g, pairs, first + i, taps + (size_t)i * terms);
        GemmMatrix product = {};
        product.kernels = kernels_;
        product.a = taps;
        product.a_row = terms, product.a_k = 1;
        product.m = count, product.n = num_output, product.k = terms;
        product.b = panels_, product.bias = bias_;
        product.c = (float*)top.data + first;
        product.c_row = 1, product.c_pack = 1, product.c_block = (ptrdiff_t)top.cstep;
        product.activation = activation_;
        gemm_matrix(product, 1);
    });
    return kOk;
}

Layer* create_DeformableConv2D_fast_layer() { return new DeformableConv2DCpu; }

}  // namespace quoll
