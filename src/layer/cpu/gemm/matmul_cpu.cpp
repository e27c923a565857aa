#include "layer/matmul.h"

#include "layer/cpu/attention/attention.h"
#include "layer/cpu/gemm/gemm_run.h"

namespace quoll {

namespace {

// The matrices of B are packed as they come, those that serve all of A once. A row or a column goes
// without: the other matrix is read where it lies.
class MatMulCpu : public MatMul {
public:
    int create_pipeline(const Option& opt) override {
        kernels_ = &host_kernel_set();
        return MatMul::create_pipeline(opt);
    }
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

private:
    // Matrix i of a product.
    struct Task {
        const float *a, *b;
        float* out;
    };
    void multiply_vector(const Product& p, const Task& t, int threads) const;
    void multiply(const Product& p, const Task& t, const float* packed, const float* bias,
                  int threads) const;
    void pack(const Product& p, const float* b, float* packed) const {
        const bool row_major = p.b.column_step == 1;
        gemm_pack(*kernels_->gemm, b, row_major ? p.b.row_step : p.b.column_step, row_major, p.n,
                  p.k, packed);
    }

    const KernelSet* kernels_ = nullptr;
};

void MatMulCpu::multiply_vector(const Product& p, const Task& t, int threads) const {
    const AttentionKernels& k = *kernels_->attention;
    const size_t count = p.n == 1 ? p.m : p.n;
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int i = 0; i < threads; i++) {
        const size_t n0 = piece_begin(count, threads, i), n = piece_length(count, threads, i);
        if (p.n == 1)
            k.dot_rows(t.b, p.k, t.a + n0 * p.a.row_step, p.a.row_step, n, 1.f, t.out + n0);
        else if (p.b.row_step == 1)
            k.dot_rows(t.a, p.k, t.b + n0 * p.b.column_step, p.b.column_step, n, 1.f, t.out + n0);
        else
            k.sum_rows(t.a, p.k, t.b + n0, p.b.row_step, n, 1.f, t.out + n0);
    }
}

void MatMulCpu::multiply(const Product& p, const Task& t, const float* packed, const float* bias,
                         int threads) const {
    GemmMatrix g = {};
    g.kernels = kernels_;
    g.a = t.a;
    g.a_row = p.a.row_step, g.a_k = p.a.column_step;
    g.m = p.m, g.n = p.n, g.k = p.k;
    g.b = packed, g.bias = bias;
    g.c = t.out;
    g.c_row = g.c_pack = p.n;
    gemm_matrix(g, threads);
}

int MatMulCpu::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                       const Option& opt) const {
    Product p;
    Operand result;
    QUOLL_RETURN_IF_ERROR(prepare(bottoms, tops, opt, &p, &result));
    const GemmKernels& gemm = *kernels_->gemm;
    const int count = p.c * p.d, threads = threads_for(opt, (double)count * p.m * p.n * p.k);
    // Many matrices: one a thread; few: all threads together at each.
    const int outer = count >= threads ? threads : 1, inner = outer == 1 ? threads : 1;
    const bool vector = p.n == 1 || p.m == 1, shared = p.b.c == 1 && p.b.d == 1;
    const size_t packed_rows = gemm_packed_size(gemm, p.n, p.k) / gemm.lanes;
    Mat bias, panels;
    if (!vector) {
        bias = gemm_bias(gemm, nullptr, p.n, opt.workspace_allocator);
        panels.create(gemm.lanes, (int)packed_rows, shared ? 1 : outer, (size_t)4u,
                      opt.workspace_allocator);
        if (bias.empty() || panels.empty()) return kOutOfMemory;
        if (shared) pack(p, bottoms[1], panels);
    }
#pragma omp parallel for num_threads(outer) if (outer > 1)
    for (int t = 0; t < outer; t++) {
        float* packed = vector ? nullptr : (float*)panels.data + (shared ? 0 : t * panels.cstep);
        const int end = (int)(piece_begin(count, outer, t) + piece_length(count, outer, t));
        for (int i = (int)piece_begin(count, outer, t); i < end; i++) {
            const int q = i / p.d, z = i % p.d;
            const Task task = {(const float*)bottoms[0].data + p.a.at(q, z),
                               (const float*)bottoms[1].data + p.b.at(q, z),
                               (float*)tops[0].data + result.at(q, z)};
            if (vector) {
                multiply_vector(p, task, inner);
                continue;
            }
            if (!shared) pack(p, task.b, packed);
            multiply(p, task, packed, bias, inner);
        }
    }
    return kOk;
}

}  // namespace

Layer* create_MatMul_fast_layer() { return new MatMulCpu; }

}  // namespace quoll
