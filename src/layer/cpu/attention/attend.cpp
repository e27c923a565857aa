#include "layer/cpu/attention/attend.h"

#include "layer/cpu/attention/attention.h"
#include "layer/cpu/gemm/gemm_run.h"
#include "layer/cpu/norm/norm.h"

namespace quoll {

namespace {

// Fewer queries than this do not pay for packing keys and values.
enum { kFewQueries = 4 };
// Queries whose scores are computed together; they stay in cache up to the second product.
enum { kBlock = 48 };

void softmax_scores(const KernelSet& kernels, const AttentionHead& h, int query, float scale,
                    float* scores) {
    if (h.mask) {
        const float* mask = h.mask + (size_t)query * h.dst;
        for (int j = 0; j < h.dst; j++) scores[j] = scores[j] * scale + mask[j];
    } else if (scale != 1.f) {
        for (int j = 0; j < h.dst; j++) scores[j] *= scale;
    }
    kernels.norm->softmax_row(scores, h.dst);
}

// One query: keys and values are read where they lie.
void attend_query(const KernelSet& kernels, const AttentionHead& h, int i, float* scores) {
    const AttentionKernels& k = *kernels.attention;
    const float* q = h.q.data + i * h.q.row;
    if (h.k.column == 1)
        k.dot_rows(q, h.size, h.k.data, h.k.row, h.dst, h.scale, scores);
    else
        k.sum_rows(q, h.size, h.k.data, h.k.column, h.dst, h.scale, scores);
    softmax_scores(kernels, h, i, 1.f, scores);
    float* out = h.out + i * h.out_row;
    if (h.v.column == 1)
        k.sum_rows(scores, h.dst, h.v.data, h.v.row, h.out_size, 1.f, out);
    else
        k.dot_rows(scores, h.dst, h.v.data, h.v.column, h.out_size, 1.f, out);
}

// B [k][n] whose value (k, n) is b(k, n) of a Strided, in panels.
void pack(const GemmKernels& gemm, const float* data, ptrdiff_t k_step, ptrdiff_t n_step, size_t n,
          size_t k, float* packed) {
    const bool row_major = n_step == 1;
    gemm_pack(gemm, data, row_major ? k_step : n_step, row_major, n, k, packed);
}

// Queries [first, first + count): scores [count][dst].
void attend_block(const KernelSet& kernels, const AttentionHead& h, int first, int count,
                  const float* keys, const float* values, const float* zeros, float* scores) {
    GemmMatrix g = {};
    g.kernels = &kernels;
    g.a = h.q.data + first * h.q.row;
    g.a_row = h.q.row, g.a_k = 1;
    g.m = count, g.n = h.dst, g.k = h.size;
    g.b = keys, g.bias = zeros;
    g.c = scores;
    g.c_row = g.c_pack = h.dst;
    gemm_matrix(g, 1);
    for (int i = 0; i < count; i++)
        softmax_scores(kernels, h, first + i, h.scale, scores + (size_t)i * h.dst);
    g.a = scores;
    g.a_row = h.dst;
    g.n = h.out_size, g.k = h.dst;
    g.b = values;
    g.c = h.out + first * h.out_row;
    g.c_row = h.out_row;
    g.c_pack = h.out_size;
    gemm_matrix(g, 1);
}

struct Work {  // pieces of it: (head, block of queries)
    int blocks, count;
    Work(int heads, int src, int block) : blocks((src + block - 1) / block) {
        count = heads * blocks;
    }
};

}  // namespace

int attend_fast(const KernelSet& kernels, const std::vector<AttentionHead>& heads, int per_group,
                const Option& opt) {
    const AttentionHead& h0 = heads[0];
    const GemmKernels& gemm = *kernels.gemm;
    const bool few = h0.src < kFewQueries;
    const int count = (int)heads.size(), groups = count / per_group, block = few ? 1 : kBlock;
    const double work = (double)count * h0.src * h0.dst * (h0.size + h0.out_size);
    const Work pieces(count, h0.src, block);
    const int threads = std::min(threads_for(opt, work), pieces.count);
    Mat scores(h0.dst, std::min(block, h0.src), threads, (size_t)4u, opt.workspace_allocator);
    if (scores.empty()) return kOutOfMemory;
    const size_t key_rows = gemm_packed_size(gemm, h0.dst, h0.size) / gemm.lanes;
    const size_t value_rows = gemm_packed_size(gemm, h0.out_size, h0.dst) / gemm.lanes;
    Mat keys, values, zeros;
    if (!few) {
        keys.create(gemm.lanes, (int)key_rows, groups, (size_t)4u, opt.workspace_allocator);
        values.create(gemm.lanes, (int)value_rows, groups, (size_t)4u, opt.workspace_allocator);
        zeros = gemm_bias(gemm, nullptr, std::max(h0.dst, h0.out_size), opt.workspace_allocator);
        if (keys.empty() || values.empty() || zeros.empty()) return kOutOfMemory;
#pragma omp parallel for num_threads(threads) if (threads > 1)
        for (int i = 0; i < 2 * groups; i++) {
            const AttentionHead& h = heads[i / 2 * per_group];
            if (i % 2)
                pack(gemm, h.v.data, h.v.row, h.v.column, h.out_size, h.dst, values.channel(i / 2));
            else
                pack(gemm, h.k.data, h.k.column, h.k.row, h.dst, h.size, keys.channel(i / 2));
        }
    }
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int t = 0; t < threads; t++) {
        float* own = scores.channel(t);
        const int end =
            (int)(piece_begin(pieces.count, threads, t) + piece_length(pieces.count, threads, t));
        for (int i = (int)piece_begin(pieces.count, threads, t); i < end; i++) {
            const int head = i / pieces.blocks, first = i % pieces.blocks * block;
            const AttentionHead& h = heads[head];
            if (few)
                attend_query(kernels, h, first, own);
            else
                attend_block(kernels, h, first, std::min(block, h.src - first),
                             keys.channel(head / per_group), values.channel(head / per_group),
                             zeros, own);
        }
    }
    return kOk;
}

}  // namespace quoll
