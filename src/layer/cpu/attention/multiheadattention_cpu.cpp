#include "layer/cpu/attention/attend.h"
#include "layer/cpu/gemm/constant_matrix.h"
#include "layer/multiheadattention.h"

namespace quoll {

namespace {

// The projections' weights are packed by create_pipeline, which lets the originals go. Quantised
// ones run on the reference.
class MultiHeadAttentionCpu : public MultiHeadAttention {
public:
    int create_pipeline(const Option& opt) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

private:
    int pack(Projection& p, const Option& opt, ConstantMatrix* matrix);
    int project_rows(const Mat& x, const Projection& p, const ConstantMatrix& matrix,
                     const Option& opt, float* y, ptrdiff_t y_row, ptrdiff_t y_column) const;
    int project_turned(const Mat& x, const Projection& p, const ConstantMatrix& matrix,
                       const Option& opt, float* y, ptrdiff_t step) const;

    const KernelSet* kernels_ = nullptr;  // null: the reference runs
    ConstantMatrix q_, k_, v_, out_;
};

int MultiHeadAttentionCpu::pack(Projection& p, const Option& opt, ConstantMatrix* matrix) {
    QUOLL_RETURN_IF_ERROR(
        matrix->create(*this, p.weight_data, p.in, false, p.out, p.in, p.bias_data, opt));
    p.weight_data.release();
    return kOk;
}

int MultiHeadAttentionCpu::create_pipeline(const Option& opt) {
    QUOLL_RETURN_IF_ERROR(MultiHeadAttention::create_pipeline(opt));
    if (quantize_term) return kOk;
    kernels_ = &host_kernel_set();
    QUOLL_RETURN_IF_ERROR(pack(q, opt, &q_));
    QUOLL_RETURN_IF_ERROR(pack(k, opt, &k_));
    QUOLL_RETURN_IF_ERROR(pack(v, opt, &v_));
    return pack(out, opt, &out_);
}

// y(i, j) at y[i * y_row + j * y_column]; one of the steps is 1.
int MultiHeadAttentionCpu::project_rows(const Mat& x, const Projection& p,
                                        const ConstantMatrix& matrix, const Option& opt, float* y,
                                        ptrdiff_t y_row, ptrdiff_t y_column) const {
    GemmMatrix g = {};
    g.a = x;
    g.a_row = p.in, g.a_k = 1;
    g.m = x.h;
    g.c = y;
    g.c_row = y_row;
    g.c_pack = y_column == 1 ? p.out : 1;
    g.c_block = y_column == 1 ? 0 : y_column;
    return matrix.multiply(g, opt);
}

// y(i, j) at y[j * step + i]. A single row goes through a dense one, for the kernel made for it.
int MultiHeadAttentionCpu::project_turned(const Mat& x, const Projection& p,
                                          const ConstantMatrix& matrix, const Option& opt, float* y,
                                          ptrdiff_t step) const {
    if (x.h > 1) return project_rows(x, p, matrix, opt, y, 1, step);
    Mat row(p.out, (size_t)4u, opt.workspace_allocator);
    if (row.empty()) return kOutOfMemory;
    QUOLL_RETURN_IF_ERROR(project_rows(x, p, matrix, opt, row, p.out, 1));
    for (int j = 0; j < p.out; j++) y[j * step] = row[j];
    return kOk;
}

int MultiHeadAttentionCpu::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                                   const Option& opt) const {
    if (!kernels_) return MultiHeadAttention::forward(bottoms, tops, opt);
    Call call;
    QUOLL_RETURN_IF_ERROR(prepare(bottoms, tops, opt, &call));
    Mat queries(Shape(embed_dim, call.src), 1, opt.workspace_allocator);
    Mat joined(Shape(embed_dim, call.src), 1, opt.workspace_allocator);
    if (queries.empty() || joined.empty()) return kOutOfMemory;
    QUOLL_RETURN_IF_ERROR(project_rows(call.query, q, q_, opt, queries, embed_dim, 1));
    if (!call.from_cache) {
        float *keys = (float*)call.keys + call.past, *values = (float*)call.values + call.past;
        QUOLL_RETURN_IF_ERROR(project_turned(call.key, k, k_, opt, keys, call.dst));
        QUOLL_RETURN_IF_ERROR(project_turned(call.value, v, v_, opt, values, call.dst));
    }
    std::vector<AttentionHead> heads;
    for (int i = 0; i < num_heads; i++) {
        heads.push_back(head_of(call, queries, joined, i));
        heads.back().scale = scale;  // the reference has it in the queries
    }
    QUOLL_RETURN_IF_ERROR(attend_fast(*kernels_, heads, 1, opt));
    return project_rows(joined, out, out_, opt, tops[0], out.out, 1);
}

}  // namespace

Layer* create_MultiHeadAttention_fast_layer() { return new MultiHeadAttentionCpu; }

}  // namespace quoll
