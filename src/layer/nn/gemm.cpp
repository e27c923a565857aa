#include "layer/nn/gemm.h"

#include "layer/common/conv_window.h"
#include "layer/common/int8_rows.h"
#include "layer/common/tensor.h"

namespace quoll {

Gemm::Gemm()
    : alpha(1.f),
      beta(1.f),
      transA(0),
      transB(0),
      constantA(0),
      constantB(0),
      constantC(0),
      constantM(0),
      constantN(0),
      constantK(0),
      constant_broadcast_type_C(0),
      output_N1M(0),
      output_elempack(0),
      output_elemtype(0),
      output_transpose(0),
      quantize_term(0),
      quantize_zeros(0),
      constant_TILE_M(0),
      constant_TILE_N(0),
      constant_TILE_K(0) {}

void Gemm::params(Gemm& s, ParamVisitor& v) {
    v(0, "alpha", s.alpha, 1.f, "factor of the result");
    v(1, "beta", s.beta, 1.f, "factor of C, besides alpha");
    v(2, "transA", s.transA, 0, "1: A is given as [K][M]", between(0, 1));
    v(3, "transB", s.transB, 0, "1: B is given as [N][K]", between(0, 1));
    v(4, "constantA", s.constantA, 0, "1: A is a weight", between(0, 1));
    v(5, "constantB", s.constantB, 0, "1: B is a weight", between(0, 1));
    v(6, "constantC", s.constantC, 0, "1: C is a weight, or there is none", between(0, 1));
    v(7, "constantM", s.constantM, 0, "rows of a constant A or C", at_least(0));
    v(8, "constantN", s.constantN, 0, "columns of a constant B or C", at_least(0));
    v(9, "constantK", s.constantK, 0, "columns of a constant A, rows of a constant B", at_least(0));
    v(10, "constant_broadcast_type_C", s.constant_broadcast_type_C, 0,
      "constant C: -1 none, 0 one value, 1 [M], 2 [M][1], 3 [M][N], 4 [1][N]", between(-1, 4));
    v(11, "output_N1M", s.output_N1M, 0, "1: the rows of the output are channels", between(0, 1));
    v(12, "output_elempack", s.output_elempack, 0, "no effect");
    v(13, "output_elemtype", s.output_elemtype, 0, "no effect");
    v(14, "output_transpose", s.output_transpose, 0, "1: the output is [N][M]", between(0, 1));
    v(18, "quantize_term", s.quantize_term, 0,
      "not 0: int8 arithmetic; 3xy (not in ncnn), 4xy, 6xy, 8xy: weights of so many bits, x 1: "
      "with input scales, y "
      "0, 1, 2: 32, 64, 128 values share a scale, 3: 16, not in ncnn",
      at_least(0));
    v(23, "quantize_zeros", s.quantize_zeros, 0,
      "1: blocks of weights of few bits have zero points; not in ncnn", between(0, 1));
    v(20, "constant_TILE_M", s.constant_TILE_M, 0, "no effect");
    v(21, "constant_TILE_N", s.constant_TILE_N, 0, "no effect");
    v(22, "constant_TILE_K", s.constant_TILE_K, 0, "no effect");
}

void Gemm::weights(Gemm& s, WeightVisitor& v) {
    const BlockQuant quant(s.quantize_term);
    const bool int8 = s.quantize_term != 0 && !quant;
    const int64_t m = s.constantM, n = s.constantN, k = s.constantK;
    const WeightKind tagged = WeightKind::kTagged, raw = WeightKind::kRaw;
    v(s.constantA == 1, "A_data", s.A_data, m * k, tagged, "[M][K], [K][M] with transA");
    v(s.constantB == 1, "B_data", s.B_data, quant ? n * quant.row_bytes(k) : n * k,
      quant ? WeightKind::kInt8 : tagged,
      "[K][N], [N][K] with transB, [N][bytes] of 4, 6 or 8 bits");
    const int type = s.constant_broadcast_type_C;
    v(s.constantC == 1 && type != kNone, "C_data", s.C_data,
      type == kScalar   ? 1
      : type == kFull   ? m * n
      : type == kColumn ? n
                        : m,
      tagged, "[1], [M], [M][N] or [N]");
    v(!!quant, "B_data_quantize_scales", s.B_data_quantize_scales, n * quant.blocks(k), raw,
      "[N][blocks of K]");
    v(quant && s.quantize_zeros, "B_data_quantize_zeros", s.B_data_quantize_zeros,
      n * quant.blocks(k), raw, "[N][blocks of K]");
    v(quant && quant.input_scales, "B_data_input_scales", s.B_data_input_scales, k, raw, "[K]");
    v(int8 && s.constantA, "A_data_int8_scales", s.A_data_int8_scales, m, raw, "[M]");
    v(int8 && s.constantB, "B_data_int8_scale", s.B_data_int8_scale, 1, raw, "[1]");
}

int Gemm::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    QUOLL_RETURN_IF_ERROR(check_quantize_term(*this, quantize_term));
    if (BlockQuant(quantize_term) &&
        (constantA || !constantB || transA || !transB || output_N1M || output_transpose))
        return fail(
            "quantize_term (18) %d: expected constantB 1, transB 1, and constantA, transA, "
            "output_N1M, output_transpose 0",
            quantize_term);
    if (quantize_zeros && !BlockQuant(quantize_term))
        return fail("quantize_zeros (23): expected weights in blocks, got quantize_term (18) %d",
                    quantize_term);
    return kOk;
}

int Gemm::load_model(const ModelBin& mb) {
    QUOLL_RETURN_IF_ERROR(load_weights_by_schema(*this, mb));
    const BlockQuant quant(quantize_term);
    if (quant && B_data.dtype != DType::s8)
        return fail("B_data: expected int8 values of %d bits, got %s", quant.bits,
                    dtype_name(B_data.dtype));
    if (constantA) QUOLL_RETURN_IF_ERROR(check_weight_dtype(*this, A_data, quantize_term != 0));
    if (constantB) QUOLL_RETURN_IF_ERROR(check_weight_dtype(*this, B_data, quantize_term != 0));
    return C_data.empty() ? (int)kOk : check_weight_dtype(*this, C_data, false);
}

int Gemm::matrix_size(const Shape& in, const char* what, bool transposed, int* rows,
                      int* columns) const {
    if (!accepts_float(*this, in.dtype))
        return fail("%s: expected f32, got %s", what, dtype_name(in.dtype));
    if (in.dims == 0 || in.dims > 3 || (in.dims == 3 && in.h != 1))
        return fail("%s: expected w, w x h or w x 1 x c, got %s", what, shape_text(in).c_str());
    *rows = in.dims == 3 ? in.c : in.h, *columns = in.w;
    if (transposed) std::swap(*rows, *columns);
    return kOk;
}

int Gemm::sizes(const std::vector<Shape>& in, Sizes* s) const {
    const size_t matrices = 2u - (constantA != 0) - (constantB != 0);
    if (in.size() != matrices && (constantC || in.size() != matrices + 1))
        return fail("expected %zu inputs%s, got %zu", matrices, constantC ? "" : " or one more",
                    in.size());
    s->a = constantA ? -1 : 0;
    s->b = constantB ? -1 : constantA ? 0 : 1;
    s->c = in.size() > matrices ? (int)matrices : -1;
    s->m = constantM, s->k = constantK;
    if (s->a >= 0) QUOLL_RETURN_IF_ERROR(matrix_size(in[s->a], "A", transA, &s->m, &s->k));
    int rows = constantK;
    s->n = constantN;
    if (s->b >= 0) QUOLL_RETURN_IF_ERROR(matrix_size(in[s->b], "B", transB, &rows, &s->n));
    if (rows != s->k) return fail("A has %d columns and B %d rows", s->k, rows);

    s->c_shape = constantC ? (Broadcast)constant_broadcast_type_C : kNone;
    const bool rows_fit = s->m == constantM, columns_fit = s->n == constantN;
    if ((s->c_shape == kFull && !(rows_fit && columns_fit)) ||
        ((s->c_shape == kRow1 || s->c_shape == kRow) && !rows_fit) ||
        (s->c_shape == kColumn && !columns_fit))
        return fail("C is made for %d rows and %d columns, the product has %d and %d", constantM,
                    constantN, s->m, s->n);
    if (s->c < 0) return kOk;
    const Shape& c = in[s->c];
    if (!accepts_float(*this, c.dtype)) return fail("C: expected f32, got %s", dtype_name(c.dtype));
    if (c.dims == 1 && c.w == 1) s->c_shape = kScalar;
    if (c.dims == 1 && c.w == s->m) s->c_shape = kRow1;
    if (c.dims == 1 && c.w == s->n) s->c_shape = kColumn;
    if (c.dims == 2 && c.w == 1 && c.h == s->m) s->c_shape = kRow;
    if (c.dims == 2 && c.w == s->n && c.h == s->m) s->c_shape = kFull;
    if (c.dims == 2 && c.w == s->n && c.h == 1) s->c_shape = kColumn;
    if (s->c_shape == kNone)
        return fail("C: expected 1, %d, %d, 1 x %d or %d x %d values, got %s", s->m, s->n, s->m,
                    s->n, s->m, shape_text(c).c_str());
    return kOk;
}

int Gemm::shape(const Gemm& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    Sizes sizes;
    QUOLL_RETURN_IF_ERROR(s.sizes(in, &sizes));
    const DType dtype = in.empty() ? DType::f32 : in[0].dtype;
    int w = sizes.n, rows = sizes.m;
    if (s.output_transpose) std::swap(w, rows);
    out.assign(1, s.output_N1M ? Shape(w, 1, rows, dtype) : Shape(w, rows, dtype));
    return kOk;
}

int Gemm::describe(const std::vector<Shape>& in, Product* p, Sizes* s) const {
    QUOLL_RETURN_IF_ERROR(sizes(in, s));
    p->m = s->m, p->n = s->n, p->k = s->k;
    const auto operand = [&](int input, bool transposed, int rows, int columns) {
        size_t step = transposed ? rows : columns;
        if (input >= 0 && in[input].dims == 3)
            step = Mat::channel_step(3, in[input].w, 1, 1, sizeof(float));
        return Operand{nullptr, rows, columns, transposed ? 1 : step, transposed ? step : 1};
    };
    p->a = operand(s->a, transA, s->m, s->k);
    p->b = operand(s->b, transB, s->k, s->n);
    p->c_shape = s->c_shape;
    p->c = nullptr;
    const int columns = output_transpose ? s->m : s->n;
    p->top_step = Mat::channel_step(output_N1M ? 3 : 2, columns, 1, 1, sizeof(float));
    return kOk;
}

int Gemm::describe(const std::vector<Shape>& in, Product* p) const {
    Sizes s;
    return describe(in, p, &s);
}

int Gemm::prepare(const std::vector<Mat>& bottoms, std::vector<Mat>& tops, const Option& opt,
                  Product* p) const {
    QUOLL_RETURN_IF_ERROR(create_tops(*this, bottoms, tops, opt));
    return product_of(bottoms, tops[0], p);
}

int Gemm::product_of(const std::vector<Mat>& bottoms, const Mat& top, Product* p) const {
    const std::vector<Shape> in = shapes_of(bottoms);
    Sizes s;
    QUOLL_RETURN_IF_ERROR(describe(in, p, &s));
    const auto give = [&](int input, const Mat& constant, bool transposed, Operand* operand) {
        operand->blob = input >= 0 ? &bottoms[input] : constant.empty() ? nullptr : &constant;
        if (input >= 0 && bottoms[input].dims == 3)  // it may be part of a larger one
            (transposed ? operand->column_step : operand->row_step) = bottoms[input].cstep;
    };
    give(s.a, A_data, transA, &p->a);
    give(s.b, B_data, transB, &p->b);
    p->c = s.c_shape == kNone ? nullptr : s.c >= 0 ? &bottoms[s.c] : &C_data;
    p->top_step = output_N1M ? top.cstep : (size_t)top.w;
    return kOk;
}

void Gemm::store(const Product& p, Mat& top, int i, int j, float product) const {
    const float sum = p.c ? product + beta * p.c_value(i, j) : product;
    top[output_transpose ? j * p.top_step + i : i * p.top_step + j] = alpha * sum;
}

int Gemm::forward_blocks(const Product& p, Mat& top, const Option& opt) const {
    const BlockQuant quant(quantize_term);
    Mat column(Shape(p.k), 1, opt.workspace_allocator);
    if (column.empty()) return kOutOfMemory;
    for (int j = 0; j < p.n; j++) {
        unpack_row(quant, B_data, B_data_quantize_scales, B_data_quantize_zeros,
                   B_data_input_scales, j, p.k, column);
        for (int i = 0; i < p.m; i++) {
            const float* a = (const float*)p.a.blob->data + i * p.a.row_step;
            double sum = 0;
            for (int k = 0; k < p.k; k++) sum += (double)a[k] * column[k];
            store(p, top, i, j, (float)sum);
        }
    }
    return kOk;
}

namespace {

template <class T>
void gather(const Mat& blob, size_t at, size_t step, int count, T* out) {
    for (int k = 0; k < count; k++) out[k] = ((const T*)blob.data)[at + k * step];
}

}  // namespace

// A and B as s8, with the k values of a row of A (a column of B) next to each other. A has a scale
// per row and B a single one; int8 weights have their own.
int Gemm::forward_int8(const Product& p, Mat& top, const Option& opt) const {
    Mat a(Shape(p.k, p.m, DType::s8), 1, opt.workspace_allocator);
    Mat b(Shape(p.k, p.n, DType::s8), 1, opt.workspace_allocator);
    Mat scales(Shape(p.m), 1, opt.workspace_allocator);
    Mat row(Shape(p.k), 1, opt.workspace_allocator);
    if (a.empty() || b.empty() || scales.empty() || row.empty()) return kOutOfMemory;
    for (int i = 0; i < p.m; i++) {
        signed char* out = a.row<signed char>(i);
        const size_t at = i * p.a.row_step, step = p.a.column_step;
        if (p.a.blob->dtype == DType::s8) {
            gather(*p.a.blob, at, step, p.k, out);
            scales[i] = A_data_int8_scales[i];
        } else {
            gather(*p.a.blob, at, step, p.k, (float*)row.data);
            scales[i] = int8_scale(row, 1, 0, p.k);
            to_int8(row, p.k, scales[i], out);
        }
    }
    const bool s8 = p.b.blob->dtype == DType::s8;
    const float scale = s8       ? (float)B_data_int8_scale[0]
                        : transB ? int8_scale(*p.b.blob, p.n, p.b.column_step, p.k)
                                 : int8_scale(*p.b.blob, p.k, p.b.row_step, p.n);
    for (int j = 0; j < p.n; j++) {
        signed char* out = b.row<signed char>(j);
        const size_t at = j * p.b.column_step, step = p.b.row_step;
        if (s8) {
            gather(*p.b.blob, at, step, p.k, out);
        } else {
            gather(*p.b.blob, at, step, p.k, (float*)row.data);
            to_int8(row, p.k, scale, out);
        }
    }
    for (int i = 0; i < p.m; i++) {
        const float descale = 1.f / (scales[i] * scale);
        const signed char* x = a.row<signed char>(i);
        for (int j = 0; j < p.n; j++)
            store(p, top, i, j, (float)int8_dot(x, b.row<signed char>(j), p.k) * descale);
    }
    return kOk;
}

int Gemm::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                  const Option& opt) const {
    Product p;
    QUOLL_RETURN_IF_ERROR(prepare(bottoms, tops, opt, &p));
    if (BlockQuant(quantize_term)) return forward_blocks(p, tops[0], opt);
    if (quantize_term) return forward_int8(p, tops[0], opt);
    for (int i = 0; i < p.m; i++) {
        for (int j = 0; j < p.n; j++) {
            const float* a = (const float*)p.a.blob->data + i * p.a.row_step;
            const float* b = (const float*)p.b.blob->data + j * p.b.column_step;
            double sum = 0;
            for (int k = 0; k < p.k; k++, a += p.a.column_step, b += p.b.row_step)
                sum += (double)*a * *b;
            store(p, tops[0], i, j, (float)sum);
        }
    }
    return kOk;
}

int Gemm::forward_empty(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                        const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(fill_without_terms(*this, bottoms, tops, 0.f, opt));
    if (tops[0].empty()) return kOk;
    Product p;
    QUOLL_RETURN_IF_ERROR(product_of(bottoms, tops[0], &p));
    for (int i = 0; i < p.m; i++)
        for (int j = 0; j < p.n; j++) store(p, tops[0], i, j, 0.f);
    return kOk;
}

int64_t Gemm::macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const {
    if (!first_sizes_known(in, out)) return -1;
    if ((constantA || constantB) && constantK > 0) return (int64_t)out[0].total() * constantK;
    // A is the first input unless it is constant; then B is.
    const bool transposed = constantA ? !transB : transA != 0;
    const int rows = in[0].dims == 1 ? 1 : in[0].size(0);
    return (int64_t)out[0].total() * (transposed ? rows : in[0].w);
}

QUOLL_DEFINE_LAYER(Gemm)

}  // namespace quoll
