#include "layer/nn/matmul.h"

#include <algorithm>

#include "layer/common/tensor.h"

namespace quoll {

MatMul::MatMul() : transB(0) {}

void MatMul::params(MatMul& s, ParamVisitor& v) {
    v(0, "transB", s.transB, 0, "1: B is given as [N][K]", between(0, 1));
}

void MatMul::weights(MatMul&, WeightVisitor&) {}

int MatMul::product_of(const std::vector<Shape>& in, Product* p) const {
    if (in.size() != 2) return fail("expected 2 inputs, got %zu", in.size());
    for (const Shape& shape : in)
        if (shape.dims == 0 || !accepts_float(*this, shape.dtype))
            return fail("expected inputs of f32, got %s of %s", shape_text(shape).c_str(),
                        dtype_name(shape.dtype));
    // Steps along c are those of the Mats. 3-D blobs have their matrices along c, which corresponds
    // to the d of a 4-D operand.
    const bool four = std::max(in[0].dims, in[1].dims) == 4;
    const auto operand = [four](const Shape& s, bool column, bool transposed) {
        Operand x = {s.h, s.w, s.c, s.d, (size_t)s.w, 1, 0, (size_t)s.w * s.h};
        if (four && s.dims == 3) std::swap(x.c, x.d);
        if (column != transposed) {
            std::swap(x.rows, x.columns);
            std::swap(x.row_step, x.column_step);
        }
        return x;
    };
    p->a = operand(in[0], false, false);
    p->b = operand(in[1], in[1].dims == 1, in[1].dims > 1 && transB);
    if (p->a.columns != p->b.rows)
        return fail("A has %d columns and B %d rows", p->a.columns, p->b.rows);
    const auto repeats = [](int a, int b) { return a == b || a == 1 || b == 1; };
    if (!repeats(p->a.c, p->b.c) || !repeats(p->a.d, p->b.d))
        return fail("matrices of A and B do not go together: %s and %s", shape_text(in[0]).c_str(),
                    shape_text(in[1]).c_str());
    p->m = p->a.rows, p->n = p->b.columns, p->k = p->a.columns;
    p->c = p->a.c == 1 ? p->b.c : p->a.c, p->d = p->a.d == 1 ? p->b.d : p->a.d;
    return kOk;
}

Shape MatMul::output_shape(const std::vector<Shape>& in, const Product& p) const {
    std::vector<int> axes;
    const int dims = std::max(in[0].dims, in[1].dims);
    if (dims >= 3) axes.push_back(p.c);
    if (dims == 4) axes.push_back(p.d);
    if (in[0].dims > 1) axes.push_back(p.m);
    if (in[1].dims > 1) axes.push_back(p.n);
    if (axes.empty()) axes.push_back(1);
    Shape shape(1, 1, 1, 1, in[0].dtype);
    shape.dims = (int)axes.size();
    for (int i = 0; i < shape.dims; i++) shape.set_size(i, axes[i]);
    return shape;
}

int MatMul::shape(const MatMul& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    Product p;
    QUOLL_RETURN_IF_ERROR(s.product_of(in, &p));
    out.assign(1, s.output_shape(in, p));
    return kOk;
}

int MatMul::prepare(const std::vector<Mat>& bottoms, std::vector<Mat>& tops, const Option& opt,
                    Product* p, Operand* result) const {
    QUOLL_RETURN_IF_ERROR(create_tops(*this, bottoms, tops, opt));
    QUOLL_RETURN_IF_ERROR(product_of({bottoms[0].logical_shape(), bottoms[1].logical_shape()}, p));
    const bool four = std::max(bottoms[0].dims, bottoms[1].dims) == 4;
    const auto step_along_c = [four](const Mat& m, Operand* x) {
        (four && m.dims == 3 ? x->d_step : x->c_step) = m.cstep;
    };
    step_along_c(bottoms[0], &p->a);
    step_along_c(bottoms[1], &p->b);
    const Mat& top = tops[0];
    const size_t matrix = (size_t)p->m * p->n;
    *result = {p->m, p->n, p->c, p->d, (size_t)p->n, 1, p->d * matrix, matrix};
    if (top.dims >= 3) result->c_step = top.cstep;
    return kOk;
}

int MatMul::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                    const Option& opt) const {
    Product p;
    Operand result;
    QUOLL_RETURN_IF_ERROR(prepare(bottoms, tops, opt, &p, &result));
    for (int q = 0; q < p.c; q++) {
        for (int z = 0; z < p.d; z++) {
            const float* a = (const float*)bottoms[0].data + p.a.at(q, z);
            const float* b = (const float*)bottoms[1].data + p.b.at(q, z);
            float* out = (float*)tops[0].data + result.at(q, z);
            for (int i = 0; i < p.m; i++) {
                for (int j = 0; j < p.n; j++) {
                    double sum = 0;
                    for (int k = 0; k < p.k; k++)
                        sum += (double)a[i * p.a.row_step + k * p.a.column_step] *
                               b[k * p.b.row_step + j * p.b.column_step];
                    out[i * result.row_step + j] = (float)sum;
                }
            }
        }
    }
    return kOk;
}

int MatMul::forward_empty(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                          const Option& opt) const {
    return fill_without_terms(*this, bottoms, tops, 0.f, opt);
}

int64_t MatMul::macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const {
    if (!first_sizes_known(in, out)) return -1;
    return (int64_t)out[0].total() * in[0].w;
}

QUOLL_DEFINE_LAYER(MatMul)

}  // namespace quoll
