#include "layer/nn/matmul.h"

#include "layer/common/side_by_side.h"
#include "layer/cpu/attention/attention.h"
#include "layer/cpu/gemm/product_plan.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// The matrices of B are packed as they come, those that serve all of A once. A row or a column goes
// without: the other matrix is read where it lies.
class MatMulCpu : public MatMul {
public:
    int create_pipeline(const Option& opt) override {
        split_ = split_kernels_for(opt);
        return MatMul::create_pipeline(opt);
    }
    int plan(const std::vector<Shape>& bottoms, const Option& opt,
             std::shared_ptr<const LayerPlan>* plan) const override;
    int forward_planned(const LayerPlan& plan, std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                        bool inplace, const Option& opt) const override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

private:
    struct Plan : public LayerPlan {
        const char* algorithm() const override {
            return !product ? "row" : product->on_tiles() ? "split" : "vectors";
        }
        std::unique_ptr<const ProductPlan> product;  // null: rows or columns alone
    };
    // How many products run at a time, and how many threads each has.
    static SideBySide share_threads(const Product& p, const Option& opt);
    void make_plan(const Product& p, const Option& opt, Plan* plan) const;
    int run(const Plan* plan, const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
            const Option& opt) const;
    // Matrix i of a product.
    struct Task {
        const float *a, *b;
        float* out;
    };
    void multiply_vector(const Product& p, const Task& t, int threads) const;
    GemmMatrix matrix_of(const Product& p) const;
    static bool is_shared(const Product& p) { return p.b.c == 1 && p.b.d == 1; }
    int multiply_all(const ProductPlan& plan, const Product& p, const std::vector<Task>& tasks,
                     const Option& opt) const;

    const KernelSet* kernels_ = &host_kernel_set();
    const SplitGemmKernels* split_ = nullptr;
};

void MatMulCpu::multiply_vector(const Product& p, const Task& t, int threads) const {
    const AttentionKernels& k = *kernels_->attention;
    const size_t count = p.n == 1 ? p.m : p.n;
    parallel_for(threads, threads, [&](int64_t i) {
        const size_t n0 = partition_begin(count, threads, i),
                     n = partition_length(count, threads, i);
        if (p.n == 1)
            k.dot_rows(t.b, p.k, t.a + n0 * p.a.row_step, p.a.row_step, n, 1.f, t.out + n0);
        else if (p.b.row_step == 1)
            k.dot_rows(t.a, p.k, t.b + n0 * p.b.column_step, p.b.column_step, n, 1.f, t.out + n0);
        else
            k.sum_rows(t.a, p.k, t.b + n0, p.b.row_step, n, 1.f, t.out + n0);
    });
}

// Without the operands themselves.
GemmMatrix MatMulCpu::matrix_of(const Product& p) const {
    GemmMatrix g = {};
    g.kernels = kernels_;
    g.a_row = p.a.row_step, g.a_k = p.a.column_step;
    g.m = p.m, g.n = p.n, g.k = p.k;
    g.c_row = g.c_pack = p.n;
    return g;
}

// Several matrices are multiplied at a time, so that a region does not end after each. Those
// that few threads would not multiply faster have one each. A single one has all threads.
SideBySide MatMulCpu::share_threads(const Product& p, const Option& opt) {
    const int count = p.c * p.d;
    const double work = (double)p.m * p.n * p.k;
    const int threads = threads_for(opt, count * work),
              pieces = std::max(1, std::min(count, threads));
    const int each = kSharesPieces || pieces == 1 ? threads / pieces : 1;
    return {pieces, pieces == 1 || shared_work(work, each) < work ? each : 1};
}

void MatMulCpu::make_plan(const Product& p, const Option& opt, Plan* plan) const {
    if (p.n == 1 || p.m == 1) return;
    const double packings = is_shared(p) ? 1. / (p.c * p.d) : 1;
    plan->product.reset(
        new ProductPlan(split_, matrix_of(p), packings, share_threads(p, opt).threads));
}

int MatMulCpu::plan(const std::vector<Shape>& bottoms, const Option& opt,
                    std::shared_ptr<const LayerPlan>* plan) const {
    plan->reset();
    Product p;
    QUOLL_RETURN_IF_ERROR(product_of(bottoms, &p));
    const std::shared_ptr<Plan> made = std::make_shared<Plan>();
    make_plan(p, opt, made.get());
    *plan = made;
    return kOk;
}

int MatMulCpu::multiply_all(const ProductPlan& plan, const Product& p,
                            const std::vector<Task>& tasks, const Option& opt) const {
    const int count = (int)tasks.size();
    const SideBySide sharing = share_threads(p, opt);
    const int pieces = sharing.pieces, threads = sharing.threads;
    const bool shared = is_shared(p);
    const GemmMatrix matrix = matrix_of(p);
    const Mat bias = product_bias(*kernels_, nullptr, p.n, opt.workspace_allocator);
    Mat panels, workspaces;
    QUOLL_RETURN_IF_ERROR(
        product_memory(plan.packed_size(), shared ? 1 : pieces, opt.workspace_allocator, &panels));
    QUOLL_RETURN_IF_ERROR(
        product_memory(plan.workspace(), pieces, opt.workspace_allocator, &workspaces));
    if (bias.empty()) return kOutOfMemory;
    if (shared) plan.pack(tasks[0].b, p.b.row_step, p.b.column_step, pieces * threads, panels);
    run_tasks_in_teams(count, pieces, threads, [&](int64_t i, int team) {
        float* packed = (float*)panels.data + (shared ? 0 : team * panels.cstep);
        if (!shared) plan.pack(tasks[i].b, p.b.row_step, p.b.column_step, threads, packed);
        GemmMatrix g = matrix;
        g.a = tasks[i].a, g.b = packed, g.bias = bias;
        g.c = tasks[i].out;
        plan.run(g, (float*)workspaces.data + team * workspaces.cstep);
    });
    return kOk;
}

int MatMulCpu::forward_planned(const LayerPlan& plan, std::vector<Mat>& bottoms,
                               std::vector<Mat>& tops, bool, const Option& opt) const {
    return run(static_cast<const Plan*>(&plan), bottoms, tops, opt);
}

int MatMulCpu::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                       const Option& opt) const {
    return run(nullptr, bottoms, tops, opt);
}

int MatMulCpu::run(const Plan* plan, const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                   const Option& opt) const {
    Product p;
    Operand result;
    QUOLL_RETURN_IF_ERROR(prepare(bottoms, tops, opt, &p, &result));
    std::vector<Task> tasks;
    for (int i = 0; i < p.c * p.d; i++) {
        const int q = i / p.d, z = i % p.d;
        tasks.push_back({(const float*)bottoms[0].data + p.a.at(q, z),
                         (const float*)bottoms[1].data + p.b.at(q, z),
                         (float*)tops[0].data + result.at(q, z)});
    }
    if (p.n > 1 && p.m > 1) {
        Plan made;
        if (!plan) make_plan(p, opt, &made);
        return multiply_all(plan ? *plan->product : *made.product, p, tasks, opt);
    }
    const int count = (int)tasks.size();
    const SideBySide sharing = share_threads(p, opt);
    run_tasks_in_teams(count, sharing.pieces, sharing.threads,
                       [&](int64_t i, int) { multiply_vector(p, tasks[i], sharing.threads); });
    return kOk;
}

}  // namespace

Layer* create_MatMul_fast_layer() { return new MatMulCpu; }

}  // namespace quoll
