#include <algorithm>
#include <cmath>

#include "layer/common/scratch.h"
#include "layer/cpu/attention/attend.h"
#include "layer/cpu/cast/storage.h"
#include "layer/cpu/gemm/constant_matrix.h"
#include "layer/cpu/int8/int8_sums.h"
#include "layer/sequence/multiheadattention.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// The projections' weights are packed by create_pipeline, which lets the originals go. With int8
// ones attention's own products run on the reference, with blocks all does.
class MultiHeadAttentionCpu : public MultiHeadAttention {
public:
    int create_pipeline(const Option& opt) override;
    int plan(const std::vector<Shape>& bottoms, const Option& opt,
             std::shared_ptr<const LayerPlan>* plan) const override;
    int forward_planned(const LayerPlan& plan, std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                        bool inplace, const Option& opt) const override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int project_rows(const Mat& x, const Projection& p, float factor, const Option& opt, float* y,
                     ptrdiff_t y_row, ptrdiff_t y_column) const override;

private:
    struct Plan : public LayerPlan {
        const char* algorithm() const override { return turned ? "turned" : q.algorithm; }
        MatrixPlan q, k, v, out;  // of the projections
        std::unique_ptr<const AttentionPlan> heads;
        // Few queries and many keys: x_k Wk^T is not computed, since q (x_k Wk^T)^T is (q Wk) x_k^T
        // (bk adds the same to all scores of a query, which the softmax does not see), nor is x_v
        // Wv^T, since p (x_v Wv^T) is (p x_v) Wv^T, to which bv adds itself, as the softmax's
        // results add up to 1. All heads are then one, whose queries are those of the first head,
        // of the second, ..., and which reads the blob as it is. k is the plan of the products by
        // Wk.
        bool turned = false;
    };
    // A projection of rows and where it goes: y(i, j) at y[i * y_row + j * y_column]; one of the
    // steps is 1.
    struct Rows {
        int in, out;
        const ConstantMatrix& matrix;
        int count;
        ptrdiff_t y_row, y_column;
        Rows(const Projection& p, const ConstantMatrix& by, int rows, ptrdiff_t row,
             ptrdiff_t column)
            : in(p.in), out(p.out), matrix(by), count(rows), y_row(row), y_column(column) {}
        Rows(int columns_in, int columns_out, const ConstantMatrix& by, int rows)
            : in(columns_in),
              out(columns_out),
              matrix(by),
              count(rows),
              y_row(columns_out),
              y_column(1) {}
        // The product of bf16 rows, or with bf16 results.
        GemmMatrix product(bool reduced_a, bool reduced_c) const;
    };
    Rows queries(int rows) const { return {q, q_, rows, embed_dim, 1}; }
    Rows turned_queries(int rows) const { return {embed_dim, kdim, turned_, rows}; }
    Rows turned_values(int rows) const { return {vdim, embed_dim, v_, rows}; }
    // Keys or values: a cache has them as columns, where a single row goes through a dense one, for
    // the kernel made for it.
    Rows stored(const Projection& p, const ConstantMatrix& matrix, int rows, int step) const {
        return kv_cache && rows > 1 ? Rows{p, matrix, rows, 1, step}
                                    : Rows{p, matrix, rows, p.out, 1};
    }
    Rows outputs(int rows) const { return {out, out_, rows, out.out, 1}; }
    int pack(Projection& p, const Option& opt, ConstantMatrix* matrix);
    bool may_turn() const;
    bool is_faster_turned(int src, int dst) const;
    int pack_turned(const Option& opt);
    int pack_int8();
    int make_plan(const std::vector<Shape>& bottoms, const Option& opt, Plan* plan) const;
    int run(const Plan& plan, const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
            const Option& opt) const;
    int attend_turned(const Plan& plan, const Call& call, const Mat& queries, const Option& opt,
                      Mat& joined) const;
    int project(const MatrixPlan& plan, const Rows& rows, const Mat& x, const Option& opt,
                float* y) const;
    int project_out(const MatrixPlan& plan, const Mat& joined, const Option& opt, Mat& top) const;
    int project_columns(const MatrixPlan& plan, const Rows& rows, const Mat& x, const Option& opt,
                        float* y, ptrdiff_t step) const;

    const KernelSet* kernels_ = nullptr;  // null: the reference runs
    ConstantMatrix q_, k_, v_, out_;
    ConstantMatrix turned_;  // k's, for products by Wk; or not created
    Int8Sums int8_[4];       // instead, for int8, in the order of the weights
};

int MultiHeadAttentionCpu::pack(Projection& p, const Option& opt, ConstantMatrix* matrix) {
    QUOLL_RETURN_IF_ERROR(
        matrix->create(*this, p.weight_data, p.in, false, p.out, p.in, p.bias_data, opt));
    p.weight_data.release();
    return kOk;
}

// Between rows and those of one other blob. What is not finite in keys comes out again since they
// are the values, too.
bool MultiHeadAttentionCpu::may_turn() const {
    if (attn_mask || kv_cache || (!bottoms.empty() && bottoms.size() != 2)) return false;
    const Mat none, &query = bottom_shapes.size() == 2 ? bottom_shapes[0] : none,
                    &key = bottom_shapes.size() == 2 ? bottom_shapes[1] : none;
    return query.dims != 2 || key.dims != 2 || is_faster_turned(query.h, key.h);
}

// By multiplications; the rows of all heads are multiplied by all columns of Wk and Wv.
bool MultiHeadAttentionCpu::is_faster_turned(int src, int dst) const {
    const double in = (double)kdim + vdim, rows = (double)src * num_heads;
    const double keys = (double)dst * embed_dim, projected = keys * in + 2. * src * keys;
    return rows >= 4 && 2 * rows * (embed_dim + dst) * in <= projected;
}

int MultiHeadAttentionCpu::pack_turned(const Option& opt) {
    const float *w = k.weight_data, *b = k.bias_data;
    const auto is_finite = [](float value) { return std::isfinite(value); };
    if (!may_turn() || !std::all_of(w, w + (size_t)k.out * k.in, is_finite) ||
        !std::all_of(b, b + k.out, is_finite))
        return kOk;
    return turned_.create(*this, w, k.in, true, k.in, k.out, nullptr, opt);
}

int MultiHeadAttentionCpu::pack_int8() {
    Projection* const all[] = {&q, &k, &v, &out};
    for (int i = 0; i < 4 && !BlockQuant(quantize_term); i++) {
        QUOLL_RETURN_IF_ERROR(int8_[i].create(*this, all[i]->weight_data, all[i]->out));
        if (int8_[i].created()) all[i]->weight_data.release();
    }
    return kOk;
}

int MultiHeadAttentionCpu::project_rows(const Mat& x, const Projection& p, float factor,
                                        const Option& opt, float* y, ptrdiff_t y_row,
                                        ptrdiff_t y_column) const {
    const Int8Sums& matrix = int8_[&p == &q ? 0 : &p == &k ? 1 : &p == &v ? 2 : 3];
    if (!matrix.created())
        return MultiHeadAttention::project_rows(x, p, factor, opt, y, y_row, y_column);
    const bool last = &p == &out;
    Mat scales, sums;
    QUOLL_RETURN_IF_ERROR(matrix.forward(x, (size_t)p.in, x.h, !last, &scales, &sums, opt));
    parallel_for(x.h, threads_for(opt, (double)x.h * p.out), [&](int64_t i) {
        const float *from = sums.row((int)i), *weights = p.int8_scales, *bias = p.bias_data;
        const float own = scales[(size_t)i];
        float* const to = y + i * y_row;
        for (int j = 0; j < p.out; j++)
            to[j * y_column] = (from[j] * (1.f / (weights[last ? 0 : j] * own)) + bias[j]) * factor;
    });
    return kOk;
}

int MultiHeadAttentionCpu::create_pipeline(const Option& opt) {
    QUOLL_RETURN_IF_ERROR(MultiHeadAttention::create_pipeline(opt));
    if (quantize_term) return pack_int8();
    kernels_ = &host_kernel_set();
    QUOLL_RETURN_IF_ERROR(pack_turned(opt));
    QUOLL_RETURN_IF_ERROR(pack(q, opt, &q_));
    QUOLL_RETURN_IF_ERROR(pack(k, opt, &k_));
    QUOLL_RETURN_IF_ERROR(pack(v, opt, &v_));
    // As of InnerProduct.
    support_bf16_storage = split_kernels_for(opt) && opt.use_bf16_storage && !kv_cache;
    return pack(out, opt, &out_);
}

GemmMatrix MultiHeadAttentionCpu::Rows::product(bool reduced_a, bool reduced_c) const {
    GemmMatrix g = {};
    g.reduced_a = reduced_a, g.reduced_c = reduced_c;
    g.a_row = in, g.a_k = 1;
    g.m = count;
    g.c_row = y_row;
    g.c_pack = y_column == 1 ? out : 1;
    g.c_block = y_column == 1 ? 0 : y_column;
    return g;
}

int MultiHeadAttentionCpu::make_plan(const std::vector<Shape>& bottoms, const Option& opt,
                                     Plan* plan) const {
    Sizes s;
    QUOLL_RETURN_IF_ERROR(sizes(bottoms, &s));
    const auto rows_of = [&](int input) { return bottoms[input].h; };
    // x: the input whose rows it multiplies, or none.
    const auto is_bf16 = [&](int input) { return bottoms[input].dtype == DType::bf16; };
    const auto make = [&](const Rows& rows, int x, MatrixPlan* to, bool is_last = false) {
        return rows.matrix.plan(rows.product(x >= 0 && is_bf16(x), is_last && is_bf16(0)), opt, to);
    };
    QUOLL_RETURN_IF_ERROR(make(queries(s.src), s.at.q, &plan->q));
    QUOLL_RETURN_IF_ERROR(make(outputs(s.src), -1, &plan->out, true));
    AttentionHead head = {};
    head.src = s.src, head.dst = s.dst;
    AttentionRounding rounding;
    plan->turned = turned_.created() && bottoms.size() == 2 && is_faster_turned(s.src, s.dst);
    if (plan->turned) {
        const int rows = head.src *= num_heads;
        QUOLL_RETURN_IF_ERROR(make(turned_queries(rows), -1, &plan->k));
        QUOLL_RETURN_IF_ERROR(make(turned_values(rows), -1, &plan->v));
        head.size = kdim, head.out_size = vdim;
        head.q.row = kdim, head.out_row = vdim;
        rounding.sums = plan->v.split != nullptr;
        rounding.exact_values = is_bf16(s.at.v);
        plan->heads = std::make_unique<AttentionPlan>(*kernels_, head, 1, 1, rounding, opt);
        return kOk;
    }
    head.size = head.out_size = embed_dim / num_heads;
    head.q.row = head.out_row = embed_dim;
    rounding.sums = plan->out.split != nullptr;
    plan->heads = std::make_unique<AttentionPlan>(*kernels_, head, num_heads, 1, rounding, opt);
    if (s.from_cache) return kOk;
    QUOLL_RETURN_IF_ERROR(make(stored(k, k_, rows_of(s.at.k), s.dst), s.at.k, &plan->k));
    return make(stored(v, v_, rows_of(s.at.v), s.dst), s.at.v, &plan->v);
}

int MultiHeadAttentionCpu::plan(const std::vector<Shape>& bottoms, const Option& opt,
                                std::shared_ptr<const LayerPlan>* plan) const {
    plan->reset();
    if (!kernels_) return kOk;
    const std::shared_ptr<Plan> made = std::make_shared<Plan>();
    QUOLL_RETURN_IF_ERROR(make_plan(bottoms, opt, made.get()));
    *plan = made;
    return kOk;
}

int MultiHeadAttentionCpu::forward_planned(const LayerPlan& plan, std::vector<Mat>& bottoms,
                                           std::vector<Mat>& tops, bool, const Option& opt) const {
    return run(static_cast<const Plan&>(plan), bottoms, tops, opt);
}

int MultiHeadAttentionCpu::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                                   const Option& opt) const {
    if (!kernels_) return MultiHeadAttention::forward(bottoms, tops, opt);
    const ShapeList in(bottoms);
    Plan plan;
    QUOLL_RETURN_IF_ERROR(make_plan(*in, opt, &plan));
    return run(plan, bottoms, tops, opt);
}

int MultiHeadAttentionCpu::project(const MatrixPlan& plan, const Rows& rows, const Mat& x,
                                   const Option& opt, float* y) const {
    Mat in = x;
    if (!plan.split) QUOLL_RETURN_IF_ERROR(widened(x, opt, &in));
    GemmMatrix g = rows.product(in.dtype == DType::bf16, false);
    g.a = in;
    g.c = y;
    return rows.matrix.multiply(plan, g, opt);
}

// The last one.
int MultiHeadAttentionCpu::project_out(const MatrixPlan& plan, const Mat& joined, const Option& opt,
                                       Mat& top) const {
    const bool narrow = top.dtype == DType::bf16;
    Mat sums;
    if (narrow && !plan.split) {
        sums.create(top.w, top.h, (size_t)4u, opt.workspace_allocator);
        if (sums.empty()) return kOutOfMemory;
    }
    GemmMatrix g = outputs(joined.h).product(false, narrow && plan.split);
    g.a = joined;
    g.c = sums.empty() ? top : sums;
    QUOLL_RETURN_IF_ERROR(out_.multiply(plan, g, opt));
    if (!sums.empty()) kernels_->cast->bf16.narrow(sums, (uint16_t*)top.data, sums.total());
    return kOk;
}

// For a cache: y(i, j) is at y[j * step + i].
int MultiHeadAttentionCpu::project_columns(const MatrixPlan& plan, const Rows& rows, const Mat& x,
                                           const Option& opt, float* y, ptrdiff_t step) const {
    if (x.h > 1) return project(plan, rows, x, opt, y);
    Mat row(rows.out, (size_t)4u, opt.workspace_allocator);
    if (row.empty()) return kOutOfMemory;
    QUOLL_RETURN_IF_ERROR(project(plan, rows, x, opt, row));
    for (int j = 0; j < rows.out; j++) y[j * step] = row[j];
    return kOk;
}

int MultiHeadAttentionCpu::attend_turned(const Plan& plan, const Call& call, const Mat& queries,
                                         const Option& opt, Mat& joined) const {
    const int size = embed_dim / num_heads, rows = call.src * num_heads;
    Allocator* const allocator = opt.workspace_allocator;
    Mat wide(Shape(embed_dim, rows), 1, allocator), turned(Shape(kdim, rows), 1, allocator),
        sums(Shape(vdim, rows), 1, allocator);
    if (wide.empty() || turned.empty() || sums.empty()) return kOutOfMemory;
    // Calls f with the values of each head and query, of that head alone, in `wide` and elsewhere.
    const auto for_rows = [&](float* all, const auto& f) {
        for (int i = 0; i < rows; i++) {
            const int first = i / call.src * size;
            f(wide.row(i) + first, all + (size_t)(i % call.src) * embed_dim + first);
        }
    };
    wide.fill(0.f);
    for_rows((float*)queries.data,
             [&](float* to, const float* from) { std::copy_n(from, size, to); });
    QUOLL_RETURN_IF_ERROR(project(plan.k, turned_queries(rows), wide, opt, turned));
    Mat keys = call.key, values = call.value;
    StoredTypes stored;
    if (keys.dtype == DType::bf16) stored.keys = &kernels_->cast->bf16;
    AttentionHead h = {};
    h.src = rows, h.dst = call.dst;
    h.size = kdim, h.out_size = vdim;
    h.q = {turned, kdim, 1};
    h.k = {(const float*)keys.data, kdim, 1};
    h.v = {(const float*)values.data, vdim, 1};
    h.scale = scale;
    h.out = sums;
    h.out_row = vdim, h.out_column = 1;
    QUOLL_RETURN_IF_ERROR(attend_fast(*kernels_, {h}, 1, *plan.heads, stored, opt));
    QUOLL_RETURN_IF_ERROR(project(plan.v, turned_values(rows), sums, opt, wide));
    for_rows(joined, [&](const float* from, float* to) { std::copy_n(from, size, to); });
    return kOk;
}

int MultiHeadAttentionCpu::run(const Plan& plan, const std::vector<Mat>& bottoms,
                               std::vector<Mat>& tops, const Option& opt) const {
    Call call;
    QUOLL_RETURN_IF_ERROR(prepare(bottoms, tops, opt, &call));
    if (!call.mask.empty()) QUOLL_RETURN_IF_ERROR(widened(Mat(call.mask), opt, &call.mask));
    Mat projected(Shape(embed_dim, call.src), 1, opt.workspace_allocator);
    Mat joined(Shape(embed_dim, call.src), 1, opt.workspace_allocator);
    if (projected.empty() || joined.empty()) return kOutOfMemory;
    QUOLL_RETURN_IF_ERROR(project(plan.q, queries(call.src), call.query, opt, projected));
    if (plan.turned) {
        QUOLL_RETURN_IF_ERROR(attend_turned(plan, call, projected, opt, joined));
        return project_out(plan.out, joined, opt, tops[0]);
    }
    if (!call.from_cache) {
        const auto into = [&](const MatrixPlan& p, const Rows& rows, const Mat& x, float* to) {
            return kv_cache ? project_columns(p, rows, x, opt, to + call.past, call.dst)
                            : project(p, rows, x, opt, to);
        };
        const Rows keys = stored(k, k_, call.key.h, call.dst);
        const Rows values = stored(v, v_, call.value.h, call.dst);
        QUOLL_RETURN_IF_ERROR(into(plan.k, keys, call.key, call.keys));
        QUOLL_RETURN_IF_ERROR(into(plan.v, values, call.value, call.values));
    }
    std::vector<AttentionHead> heads;
    for (int i = 0; i < num_heads; i++) {
        heads.push_back(head_of(call, projected, joined, i));
        AttentionHead& h = heads.back();
        h.scale = scale;  // the reference has it in the queries
        if (kv_cache) continue;
        const ptrdiff_t first = (ptrdiff_t)i * h.size;
        h.k = {(const float*)call.keys + first, embed_dim, 1};
        h.v = {(const float*)call.values + first, embed_dim, 1};
    }
    QUOLL_RETURN_IF_ERROR(attend_fast(*kernels_, heads, 1, *plan.heads, {}, opt));
    return project_out(plan.out, joined, opt, tops[0]);
}

}  // namespace

Layer* create_MultiHeadAttention_fast_layer() { return new MultiHeadAttentionCpu; }

}  // namespace quoll
