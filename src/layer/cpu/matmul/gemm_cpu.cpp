#include "layer/nn/gemm.h"

#include <math.h>

#include <algorithm>

#include "layer/cpu/attention/attention.h"
#include "layer/cpu/gemm/constant_matrix.h"
#include "layer/cpu/int8/block_matrix.h"
#include "layer/cpu/int8/int8_sums.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// A constant matrix is packed once, by create_pipeline, which lets the original go: B, or A where
// only that is constant (the product is then computed as its transpose). Weights quantised in
// blocks are packed too, and int8 ones of B by rows of A; other int8 forms run on the reference.
class GemmCpu : public Gemm {
public:
    int create_pipeline(const Option& opt) override;
    // Of products with a constant matrix.
    int plan(const std::vector<Shape>& bottoms, const Option& opt,
             std::shared_ptr<const LayerPlan>* plan) const override;
    int forward_planned(const LayerPlan& plan, std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                        bool inplace, const Option& opt) const override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

private:
    struct Plan : public LayerPlan {
        const char* algorithm() const override { return product.algorithm; }
        MatrixPlan product;
    };
    int run(const Plan* plan, const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
            const Option& opt) const;
    GemmMatrix matrix_product(const Product& p) const;
    bool swapped() const { return constantA && !constantB; }
    // The constant C is a bias of the packed matrix' columns.
    bool c_is_bias() const { return matrix_.created() && constantC && c_is_per_column(); }
    bool c_is_per_column() const {
        const int type = constant_broadcast_type_C;
        return type == kScalar || (swapped() ? type == kRow1 || type == kRow : type == kColumn);
    }
    int pack_constant(const Option& opt);
    int pack_blocks(const Option& opt);
    int pack_int8();
    int multiply_int8(const Product& p, Mat& top, const Option& opt) const;
    int multiply(const Plan* plan, const Product& p, Mat& top, const Option& opt) const;
    int multiply_variable(const Operand& b, GemmMatrix g, const Option& opt) const;
    void multiply_row(const Product& p, Mat& top, const Option& opt) const;
    void finish(const Product& p, Mat& top) const;

    const KernelSet* kernels_ = nullptr;  // null: the reference runs
    const SplitGemmKernels* split_ = nullptr;
    ConstantMatrix matrix_;
    BlockMatrix blocks_;  // instead, for weights quantised in blocks
    Int8Sums int8_;       // instead, for int8
};

int GemmCpu::pack_constant(const Option& opt) {
    // The columns of the packed matrix are A's rows, or B's columns.
    const int n = swapped() ? constantM : constantN, k = constantK;
    Mat& weight = swapped() ? A_data : B_data;
    const bool row_major = swapped() ? transA : !transB;
    Mat bias(n, (size_t)4u, opt.workspace_allocator);
    if (bias.empty()) return kOutOfMemory;
    const int type = constant_broadcast_type_C;
    const bool one = type == kScalar, is_bias = constantC && c_is_per_column();
    const float* c = C_data;
    for (int i = 0; i < n; i++) bias[i] = is_bias ? beta * c[one ? 0 : i] : 0.f;
    QUOLL_RETURN_IF_ERROR(
        matrix_.create(*this, weight, row_major ? n : k, row_major, n, k, bias, opt));
    weight.release();
    return kOk;
}

// Makes blocks_ where B is quantised in blocks, or is to be kept in 16 bits as blobs are.
int GemmCpu::pack_blocks(const Option& opt) {
    if (const BlockQuant quant = BlockQuant(quantize_term)) {
        QUOLL_RETURN_IF_ERROR(blocks_.create(*this, quant, B_data, B_data_quantize_scales,
                                             B_data_quantize_zeros, B_data_input_scales, constantN,
                                             constantK));
        B_data_quantize_scales.release();
        B_data_quantize_zeros.release();
    } else {
        const bool half = opt.use_fp16_storage || opt.use_bf16_storage;
        if (!half || quantize_term || !constantB || constantA || transA || output_transpose)
            return kOk;
        const float* b = B_data;
        const size_t count = (size_t)constantN * constantK;
        const auto large = [](float x) { return !(fabsf(x) <= 65504.f); };
        if (!opt.use_bf16_storage && std::any_of(b, b + count, large)) return kOk;
        QUOLL_RETURN_IF_ERROR(blocks_.create(*this, opt.use_bf16_storage ? DType::bf16 : DType::f16,
                                             b, transB ? constantK : 1, transB ? 1 : constantN,
                                             constantN, constantK));
    }
    B_data.release();
    return kOk;
}

// Makes int8_ of a B in int8 that multiplies rows.
int GemmCpu::pack_int8() {
    if (!constantB || constantA || transA || output_transpose) return kOk;
    const size_t n = constantN, k = constantK;
    Mat rows = B_data;
    if (!transB) {
        rows.create(Shape(B_data.w, DType::s8), 1);
        if (rows.empty()) return kOutOfMemory;
        const signed char* from = (const signed char*)B_data.data;
        for (size_t i = 0; i < k; i++)
            for (size_t j = 0; j < n; j++) ((signed char*)rows.data)[j * k + i] = from[i * n + j];
    }
    QUOLL_RETURN_IF_ERROR(int8_.create(*this, rows, constantN));
    if (int8_.created()) B_data.release();
    return kOk;
}

int GemmCpu::create_pipeline(const Option& opt) {
    QUOLL_RETURN_IF_ERROR(Gemm::create_pipeline(opt));
    QUOLL_RETURN_IF_ERROR(pack_blocks(opt));
    const bool blocks = blocks_.created();
    if (quantize_term && !blocks) QUOLL_RETURN_IF_ERROR(pack_int8());
    if (quantize_term && !blocks && !int8_.created()) return kOk;
    kernels_ = &host_kernel_set();
    if (quantize_term || blocks) return kOk;
    split_ = split_kernels_for(opt);
    return constantA || constantB ? pack_constant(opt) : (int)kOk;
}

// One row by a matrix that is read where it lies.
void GemmCpu::multiply_row(const Product& p, Mat& top, const Option& opt) const {
    const AttentionKernels& k = *kernels_->attention;
    const float *a = *p.a.blob, *b = *p.b.blob;
    float* out = top;
    const int threads = threads_for(opt, (double)p.n * p.k);
    parallel_for(threads, threads, [&](int64_t t) {
        const size_t n0 = partition_begin(p.n, threads, t), n = partition_length(p.n, threads, t);
        if (p.b.row_step == 1)
            k.dot_rows(a, p.k, b + n0 * p.b.column_step, p.b.column_step, n, 1.f, out + n0);
        else
            k.sum_rows(a, p.k, b + n0, p.b.row_step, n, 1.f, out + n0);
    });
}

// Without the blobs.
GemmMatrix GemmCpu::matrix_product(const Product& p) const {
    GemmMatrix g = {};
    g.kernels = kernels_;
    g.k = p.k;
    const Operand& a = swapped() ? p.b : p.a;
    g.a_row = swapped() ? a.column_step : a.row_step;
    g.a_k = swapped() ? a.row_step : a.column_step;
    g.m = swapped() ? p.n : p.m, g.n = swapped() ? p.m : p.n;
    if ((output_transpose != 0) == swapped()) {  // rows of the product are rows of the output
        g.c_row = p.top_step;
        g.c_pack = g.n;
    } else {
        g.c_row = g.c_pack = 1;
        g.c_block = p.top_step;
    }
    return g;
}

int GemmCpu::multiply_int8(const Product& p, Mat& top, const Option& opt) const {
    Mat scales, sums;
    QUOLL_RETURN_IF_ERROR(int8_.forward(*p.a.blob, p.a.row_step, p.m, false, &scales, &sums, opt));
    parallel_for(p.m, threads_for(opt, (double)p.m * p.n), [&](int64_t i) {
        const float factor = 1.f / (scales[(size_t)i] * B_data_int8_scale[0]);
        const float* from = sums.row((int)i);
        float* to = (float*)top.data + (size_t)i * p.top_step;
        for (int j = 0; j < p.n; j++) to[j] = from[j] * factor;
    });
    return kOk;
}

int GemmCpu::multiply(const Plan* plan, const Product& p, Mat& top, const Option& opt) const {
    if (int8_.created()) return multiply_int8(p, top, opt);
    if (blocks_.created())
        return blocks_.multiply(*p.a.blob, p.a.row_step, p.m, top, p.top_step, opt);
    if (!constantA && !constantB && p.m == 1 && p.a.column_step == 1 && !output_transpose) {
        multiply_row(p, top, opt);
        return kOk;
    }
    GemmMatrix g = matrix_product(p);
    g.a = *(swapped() ? p.b : p.a).blob;
    g.c = top;
    if (!matrix_.created()) return multiply_variable(p.b, g, opt);
    return plan ? matrix_.multiply(plan->product, g, opt) : matrix_.multiply(g, opt);
}

// B comes with the call.
int GemmCpu::multiply_variable(const Operand& b, GemmMatrix g, const Option& opt) const {
    const int threads = threads_for(opt, (double)g.m * g.n * g.k);
    const ProductPlan plan(split_, g, 1, threads);
    const Mat bias = product_bias(*kernels_, nullptr, g.n, opt.workspace_allocator);
    Mat packed, workspace;
    QUOLL_RETURN_IF_ERROR(product_memory(plan.packed_size(), 1, opt.workspace_allocator, &packed));
    QUOLL_RETURN_IF_ERROR(product_memory(plan.workspace(), 1, opt.workspace_allocator, &workspace));
    if (bias.empty()) return kOutOfMemory;
    plan.pack(*b.blob, b.row_step, b.column_step, threads, packed);
    g.b = packed, g.bias = bias;
    plan.run(g, workspace);
    return kOk;
}

// What the product has not done yet: alpha, and C unless it was the bias.
void GemmCpu::finish(const Product& p, Mat& top) const {
    const bool with_c = p.c && !c_is_bias();
    if (alpha == 1.f && !with_c) return;
    const int rows = output_transpose ? p.n : p.m, columns = output_transpose ? p.m : p.n;
    for (int r = 0; r < rows; r++) {
        float* out = (float*)top.data + r * p.top_step;
        for (int i = 0; i < columns && with_c; i++)
            out[i] += beta * (output_transpose ? p.c_value(i, r) : p.c_value(r, i));
        for (int i = 0; i < columns; i++) out[i] *= alpha;
    }
}

int GemmCpu::plan(const std::vector<Shape>& bottoms, const Option& opt,
                  std::shared_ptr<const LayerPlan>* plan) const {
    plan->reset();
    if (!kernels_ || !matrix_.created()) return kOk;
    Product p;
    QUOLL_RETURN_IF_ERROR(describe(bottoms, &p));
    const std::shared_ptr<Plan> made = std::make_shared<Plan>();
    QUOLL_RETURN_IF_ERROR(matrix_.plan(matrix_product(p), opt, &made->product));
    *plan = made;
    return kOk;
}

int GemmCpu::forward_planned(const LayerPlan& plan, std::vector<Mat>& bottoms,
                             std::vector<Mat>& tops, bool, const Option& opt) const {
    return run(static_cast<const Plan*>(&plan), bottoms, tops, opt);
}

int GemmCpu::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                     const Option& opt) const {
    return kernels_ ? run(nullptr, bottoms, tops, opt) : Gemm::forward(bottoms, tops, opt);
}

int GemmCpu::run(const Plan* plan, const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                 const Option& opt) const {
    Product p;
    QUOLL_RETURN_IF_ERROR(prepare(bottoms, tops, opt, &p));
    QUOLL_RETURN_IF_ERROR(multiply(plan, p, tops[0], opt));
    finish(p, tops[0]);
    return kOk;
}

}  // namespace

Layer* create_Gemm_fast_layer() { return new GemmCpu; }

}  // namespace quoll
