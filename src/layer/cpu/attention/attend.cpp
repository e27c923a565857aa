#include "layer/cpu/attention/attend.h"

#include <math.h>

#include <algorithm>

#include "layer/cpu/attention/attention.h"
#include "layer/cpu/gemm/product_plan.h"
#include "layer/cpu/norm/norm.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// Fewer queries than this do not pay for packing keys and values.
enum { kFewQueries = 4 };
// Queries whose scores are computed together, at most; they stay in cache up to the second product.
// Four tiles; on tile units whole pairs of tiles.
enum { kBlockTiles = 4, kTileBlock = 2 * kUnitTiles * kUnitRows };

// The mask of a query, or null; one of MaskTerms is made in `made`.
const float* mask_row(const KernelSet& kernels, const AttentionHead& h, size_t query, float* made) {
    if (h.mask) return h.mask + query * h.dst;
    const MaskTerms& t = h.terms;
    if (!t.rows) return nullptr;
    kernels.attention->sum_grid(t.rows + query * t.height, t.height, t.columns + query * t.width,
                                t.width, made);
    return made;
}

// mask: of the query, or null. total: see SoftmaxRow.
void softmax_scores(SoftmaxRow softmax_row, const AttentionHead& h, const float* mask, float scale,
                    float* scores, float* total) {
    if (total) *total = 1.f;
    if (sees_nothing(scores, scale, mask, h.dst))
        std::fill_n(scores, h.dst, 0.f);
    else
        softmax_row(scores, h.dst, scale, mask, total);
}

// One query: keys and values are read where they lie. scores, mask: memory of h.dst values.
void attend_query(const KernelSet& kernels, const AttentionHead& h, int i, float* scores,
                  float* mask) {
    const AttentionKernels& k = *kernels.attention;
    const float* q = h.q.data + i * h.q.row;
    if (h.k.column == 1)
        k.dot_rows(q, h.size, h.k.data, h.k.row, h.dst, h.scale, scores);
    else
        k.sum_rows(q, h.size, h.k.data, h.k.column, h.dst, h.scale, scores);
    softmax_scores(kernels.norm->softmax_row, h, mask_row(kernels, h, i, mask), 1.f, scores,
                   nullptr);
    float* out = h.out + i * h.out_row;
    if (h.v.column == 1)
        k.sum_rows(scores, h.dst, h.v.data, h.v.row, h.out_size, 1.f, out);
    else
        k.dot_rows(scores, h.dst, h.v.data, h.v.column, h.out_size, 1.f, out);
}

// Queries and keys of bf16 blobs are exact as bf16, what the softmax gives is not: it takes two
// terms, or the outputs would be off by more than their own rounding, unless they go where that is
// small beside the other roundings. exact: so are the values.
const SplitGemmKernels* kernels_of_sums(Option opt, bool rounds, bool exact) {
    const SplitGemmKernels* const kernels = split_kernels_for(opt);
    if (!opt.use_bf16_storage || rounds) return kernels;
    if (exact && kernels && kernels->two_products) return kernels->two_products;
    opt.use_bf16_storage = false;
    opt.use_fp32_split = 3;
    return split_kernels_for(opt);
}

// Nearly equal blocks on vectors: a short last one takes as long as a whole one.
int block_of(const KernelSet& kernels, const Option& opt, int src) {
    if (src < kFewQueries) return 1;
    if (split_kernels_for(opt)) return kTileBlock;
    const int most = kBlockTiles * kernels.gemm->max_rows, blocks = (src + most - 1) / most;
    return (src + blocks - 1) / blocks;
}

// Floats from one query's scores to the next one's: room for whole panels, and steps of tiles.
int score_step(const KernelSet& kernels, const AttentionHead& h) {
    const int panel = kernels.gemm->lanes * kernels.gemm->vectors, rest = h.dst % panel;
    const int panels = h.dst - rest + (rest ? (int)gemm_panel_width(*kernels.gemm, rest) : 0);
    const int steps = (h.dst + (int)kSplitK - 1) / (int)kSplitK * (int)kSplitK;
    return kHasTileUnits ? std::max(panels, steps) : panels;
}

// The second product of a block of queries, of what the softmax gives by values.
struct SumsPlan {
    GemmMatrix shape;
    std::shared_ptr<const ProductPlan> product;
    SplitSoftmaxKernel softmax;  // makes the terms that the product takes; null: floats
    bool undivided;              // by the softmax; the sums are instead
    bool rounds;                 // of floats: to bf16

    static GemmMatrix matrix(const KernelSet& kernels, const AttentionHead& h, int count,
                             bool reduced) {
        GemmMatrix g = {};
        g.kernels = &kernels;
        g.reduced_a = reduced;
        g.a_row = (reduced ? 2 : 1) * (ptrdiff_t)score_step(kernels, h), g.a_k = 1;
        g.m = count, g.n = h.out_size, g.k = h.dst;
        g.c_row = h.out_row;
        g.c_pack = h.out_size;
        return g;
    }
    SumsPlan(const KernelSet& kernels, const Option& opt, const AttentionHead& h, int count,
             AttentionRounding rounding, double packings) {
        const SplitGemmKernels* const split =
            kernels_of_sums(opt, rounding.sums, rounding.exact_values);
        softmax = opt.use_bf16_storage && split ? split->softmax : nullptr;
        const auto plan = [&](bool reduced) {
            shape = matrix(kernels, h, count, reduced);
            product = std::make_shared<ProductPlan>(split, shape, packings, 1);
        };
        plan(softmax && split->products == 1);
        if (!product->on_tiles()) {
            softmax = nullptr;
            plan(false);
        }
        rounds = rounding.sums && opt.use_bf16_storage && product->on_tiles();
        undivided = softmax || rounds;
    }
    // As of BlockPlan.
    SumsPlan(const SumsPlan& like, const AttentionHead& h, int count) : SumsPlan(like) {
        shape = matrix(*like.shape.kernels, h, count, like.shape.reduced_a);
        product = std::make_shared<ProductPlan>(*like.product, shape);
    }
};

// The memory of blocks of so many queries: scores, then their sums of values.
struct BlockPlan {
    GemmMatrix scores_of;
    std::shared_ptr<const ProductPlan> scores;
    SumsPlan sums;
    SoftmaxRow softmax_row;

    static GemmMatrix scores_matrix(const KernelSet& kernels, const AttentionHead& h, int count) {
        GemmMatrix g = {};
        g.kernels = &kernels;
        g.a_row = h.q.row, g.a_k = 1;
        g.m = count, g.n = h.dst, g.k = h.size;
        g.c_row = g.c_pack = score_step(kernels, h);
        g.whole_panels = true;
        return g;
    }
    // packings: see ProductPlan.
    BlockPlan(const KernelSet& kernels, const Option& opt, const AttentionHead& h, int count,
              AttentionRounding rounding, double packings)
        : scores_of(scores_matrix(kernels, h, count)),
          scores(std::make_shared<ProductPlan>(split_kernels_for(opt), scores_of, packings, 1)),
          sums(kernels, opt, h, count, rounding, packings),
          softmax_row(opt.use_bf16_storage ? kernels.norm->softmax_row_bf16
                                           : kernels.norm->softmax_row) {}
    // For another number of queries, with the same packed keys and values.
    BlockPlan(const BlockPlan& like, const AttentionHead& h, int count)
        : scores_of(scores_matrix(*like.scores_of.kernels, h, count)),
          scores(std::make_shared<ProductPlan>(*like.scores, scores_of)),
          sums(like.sums, h, count),
          softmax_row(like.softmax_row) {}
    size_t workspace() const { return std::max(scores->workspace(), sums.product->workspace()); }
};

// Packed keys and values of a head, and a thread's memory. rows: where heads are stored in 16 bits,
// so many floats as a block's queries and its outputs, or all keys or values. mask: a row, where
// masks are stored so or made of MaskTerms.
struct BlockMemory {
    const float *keys, *values, *zeros;
    float *scores, *workspace, *rows, *mask;
};

// `count` rows from `first` on as f32 in `to`.
void widen_rows(const StorageKernels& stored, const Strided& s, int first, size_t count,
                size_t size, float* to) {
    const uint16_t* from = (const uint16_t*)s.data + first * s.row;
    for (size_t i = 0; i < count; i++) stored.widen(from + i * s.row, to + i * size, size);
}

void divide(const KernelSet& kernels, float by, float* row, int count) {
    const float none = 0.f, factor = 1.f / by;
    kernels.norm->scale_centred(row, count, 1, &none, &factor, nullptr, -INFINITY, INFINITY);
}

// The softmax of the scores of a block's queries from `first` on, in place.
// totals: those that their sums of values are divided by, if these are.
void softmax_block(const KernelSet& kernels, const AttentionHead& h, const BlockPlan& plan,
                   int first, const StorageKernels* stored_mask, const BlockMemory& memory,
                   float* totals) {
    for (size_t i = 0; i < plan.scores_of.m; i++) {
        const size_t query = first + i;
        float* const scores = memory.scores + i * plan.scores_of.c_row;
        const float* mask = mask_row(kernels, h, query, memory.mask);
        const uint16_t* const narrow = (const uint16_t*)h.mask + query * h.dst;
        if (plan.sums.softmax) {
            const bool is_narrow = mask && stored_mask;
            totals[i] = plan.sums.softmax({scores, (size_t)h.dst, h.scale,
                                           is_narrow ? (const void*)narrow : mask, is_narrow});
            continue;
        }
        if (mask && stored_mask) {
            stored_mask->widen(narrow, memory.mask, h.dst);
            mask = memory.mask;
        }
        softmax_scores(plan.softmax_row, h, mask, h.scale, scores,
                       plan.sums.rounds ? totals + i : nullptr);
    }
}

// Queries from `first` on.
void attend_block(const KernelSet& kernels, const AttentionHead& h, const BlockPlan& plan,
                  int first, const StoredTypes& types, const BlockMemory& memory) {
    const StorageKernels* const stored = types.queries;
    GemmMatrix g = plan.scores_of;
    g.a = h.q.data + first * h.q.row;
    if (stored) {
        widen_rows(*stored, h.q, first, g.m, h.size, memory.rows);
        g.a = memory.rows;
    }
    g.b = memory.keys, g.bias = memory.zeros;
    g.c = memory.scores;
    plan.scores->run(g, memory.workspace);
    float totals[kTileBlock];
    softmax_block(kernels, h, plan, first, types.mask, memory, totals);
    g = plan.sums.shape;
    g.a = memory.scores;
    g.b = memory.values, g.bias = memory.zeros;
    g.c = stored ? memory.rows : h.out + first * h.out_row;
    plan.sums.product->run(g, memory.workspace);
    for (size_t i = 0; i < g.m && plan.sums.undivided; i++)
        divide(kernels, totals[i], g.c + i * g.c_row, h.out_size);
    uint16_t* const out = (uint16_t*)h.out + first * h.out_row;
    for (size_t i = 0; i < g.m && stored; i++)
        stored->narrow(memory.rows + i * g.c_row, out + i * h.out_row, h.out_size);
}

// The keys of a head, or its values. rows: see BlockMemory.
void pack_operand(const AttentionHead& h, bool is_values, const ProductPlan& plan,
                  const StorageKernels* stored, float* rows, float* packed) {
    Strided s = is_values ? h.v : h.k;
    const auto k_step = [&] { return is_values ? s.row : s.column; };
    const auto n_step = [&] { return is_values ? s.column : s.row; };
    if (stored && plan.packs_bf16())
        return plan.pack_bf16((const uint16_t*)s.data, k_step(), n_step(), 1, packed);
    if (stored) {
        const int size = is_values ? h.out_size : h.size;
        widen_rows(*stored, s, 0, h.dst, size, rows);
        s = {rows, size, 1};
    }
    plan.pack(s.data, k_step(), n_step(), 1, packed);
}

struct Work {  // partitions of it: (head, block of queries)
    int blocks, count;
    Work(int heads, int src, int block) : blocks((src + block - 1) / block) {
        count = heads * blocks;
    }
};

// One query a partition.
int attend_queries(const KernelSet& kernels, const std::vector<AttentionHead>& heads, int threads,
                   const Option& opt) {
    const int src = heads[0].src, count = (int)heads.size() * src;
    Mat rows(heads[0].dst, 2 * threads, (size_t)4u, opt.workspace_allocator);
    if (rows.empty()) return kOutOfMemory;
    run_tasks(count, threads, [&](int64_t i, int thread) {
        attend_query(kernels, heads[i / src], (int)(i % src), rows.row(2 * thread),
                     rows.row(2 * thread + 1));
    });
    return kOk;
}

}  // namespace

struct AttentionPlan::Blocks {
    BlockPlan whole, last;
};

AttentionPlan::AttentionPlan(const KernelSet& kernels, const AttentionHead& like, int count,
                             int per_group, AttentionRounding rounding, const Option& opt)
    : block(block_of(kernels, opt, like.src)) {
    if (like.src < kFewQueries) return;
    const double packings = 1. / (Work(count, like.src, block).blocks * per_group);
    const int rows = std::min<int>(block, like.src);
    const int rest = like.src % rows ? like.src % rows : rows;
    const BlockPlan whole(kernels, opt, like, rows, rounding, packings);
    blocks.reset(new Blocks{whole, BlockPlan(whole, like, rest)});
}

AttentionPlan::~AttentionPlan() {}

const char* AttentionPlan::algorithm() const {
    if (!blocks) return "queries";
    return blocks->whole.scores->on_tiles() || blocks->whole.sums.product->on_tiles() ? "split"
                                                                                      : "vectors";
}

int attend_fast(const KernelSet& kernels, const std::vector<AttentionHead>& heads, int per_group,
                const AttentionPlan& plan, const StoredTypes& stored, const Option& opt) {
    const AttentionHead& h0 = heads[0];
    const int count = (int)heads.size(), groups = count / per_group;
    const int block = plan.block;
    const double work = (double)count * h0.src * h0.dst * (h0.size + h0.out_size);
    const Work partitions(count, h0.src, block);
    const int threads = threads_for(opt, work), workers = std::min(threads, partitions.count);
    if (!plan.blocks) return attend_queries(kernels, heads, threads, opt);

    const BlockPlan &whole = plan.blocks->whole, &last = plan.blocks->last;
    const int rows = (int)whole.scores_of.m;
    Allocator* const allocator = opt.workspace_allocator;
    Mat scores(score_step(kernels, h0), rows, workers, (size_t)4u, allocator), keys, values,
        workspaces, stored_rows, masks;
    const Mat zeros = product_bias(kernels, nullptr, std::max(h0.dst, h0.out_size), allocator);
    if (scores.empty() || zeros.empty()) return kOutOfMemory;
    QUOLL_RETURN_IF_ERROR(product_memory(whole.scores->packed_size(), groups, allocator, &keys));
    QUOLL_RETURN_IF_ERROR(
        product_memory(whole.sums.product->packed_size(), groups, allocator, &values));
    QUOLL_RETURN_IF_ERROR(product_memory(std::max(whole.workspace(), last.workspace()), workers,
                                         allocator, &workspaces));
    const size_t widest = std::max(h0.size, h0.out_size);
    const int widened = std::max(stored.queries ? rows : 0, stored.keys ? h0.dst : 0);
    QUOLL_RETURN_IF_ERROR(product_memory(widest * widened, threads, allocator, &stored_rows));
    if (stored.mask || h0.terms.rows)
        QUOLL_RETURN_IF_ERROR(product_memory(h0.dst, workers, allocator, &masks));
    run_tasks(2 * groups, threads, [&](int64_t i, int thread) {
        const AttentionHead& h = heads[i / 2 * per_group];
        const ProductPlan& plan = i % 2 ? *whole.sums.product : *whole.scores;
        float* const packed = i % 2 ? values.channel(i / 2) : keys.channel(i / 2);
        pack_operand(h, i % 2, plan, stored.keys, stored_rows.channel(thread), packed);
    });
    run_tasks(partitions.count, threads, [&](int64_t i, int thread) {
        const int head = (int)i / partitions.blocks, b = (int)i % partitions.blocks;
        const BlockMemory memory = {keys.channel(head / per_group),
                                    values.channel(head / per_group),
                                    zeros,
                                    scores.channel(thread),
                                    (float*)workspaces.data + thread * workspaces.cstep,
                                    (float*)stored_rows.data + thread * stored_rows.cstep,
                                    (float*)masks.data + thread * masks.cstep};
        attend_block(kernels, heads[head], b + 1 < partitions.blocks ? whole : last, b * block,
                     stored, memory);
    });
    return kOk;
}

}  // namespace quoll
