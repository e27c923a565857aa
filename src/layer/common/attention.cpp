#include "layer/common/attention.h"

#include <math.h>

#include <algorithm>

#include "layer/common/int8_rows.h"

namespace quoll {

namespace {

// One matrix with a row for each query, or as many as divide the heads.
bool is_for_queries(const Shape& mask, int heads, int src) {
    return mask.h == src && mask.dims >= 2 && mask.dims <= 3 &&
           (mask.c == heads || (mask.c > 0 && heads % mask.c == 0));
}

}  // namespace

int check_attention_mask(const Layer& layer, const Shape& mask, int heads, int src, int dst) {
    if (!accepts_float(layer, mask.dtype))
        return layer.fail("mask: expected f32, got %s", dtype_name(mask.dtype));
    if (mask.w == dst && is_for_queries(mask, heads, src)) return kOk;
    return layer.fail("mask: expected %d x %d, or as many of them as divide the %d heads, got %s",
                      dst, src, heads, shape_text(mask).c_str());
}

int check_mask_terms(const Layer& layer, const Shape& rows, const Shape& columns, int heads,
                     int src, int dst) {
    for (const Shape* part : {&rows, &columns})
        if (!accepts_float(layer, part->dtype))
            return layer.fail("mask: expected f32, got %s", dtype_name(part->dtype));
    if (is_for_queries(rows, heads, src) && is_for_queries(columns, heads, src) &&
        rows.c == columns.c && (int64_t)rows.w * columns.w == dst)
        return kOk;
    return layer.fail(
        "mask: expected two inputs with %d rows whose widths multiply to %d, as many of both as "
        "divide the %d heads, got %s and %s",
        src, dst, heads, shape_text(rows).c_str(), shape_text(columns).c_str());
}

namespace {

void softmax_of(float* scores, int count) {
    if (sees_nothing(scores, 1.f, nullptr, count)) {
        std::fill_n(scores, count, 0.f);
        return;
    }
    const float most = *std::max_element(scores, scores + count);
    double sum = 0;
    for (int j = 0; j < count; j++) sum += exp((double)scores[j] - most);
    for (int j = 0; j < count; j++) scores[j] = (float)(exp((double)scores[j] - most) / sum);
}

// A matrix [rows][columns], one scale for all; with `transposed` it is [columns][rows].
float matrix_to_int8(const Strided& x, int rows, int columns, bool transposed, signed char* out) {
    float most = 0.f;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) most = std::max(most, fabsf(x(i, j)));
    const float scale = most == 0.f ? 1.f : 127.f / most;
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            out[transposed ? (size_t)j * rows + i : (size_t)i * columns + j] =
                float2int8(x(i, j) * scale);
    return scale;
}

int attend_fp32(const AttentionHead& h, const Option& opt) {
    Mat scores(Shape(h.dst), 1, opt.workspace_allocator);
    if (scores.empty()) return kOutOfMemory;
    for (int i = 0; i < h.src; i++) {
        for (int j = 0; j < h.dst; j++) {
            double sum = 0;
            for (int l = 0; l < h.size; l++) sum += (double)h.q(i, l) * h.k(j, l);
            scores[j] = (float)sum * h.scale + h.mask_at(i, j);
        }
        softmax_of(scores, h.dst);
        for (int l = 0; l < h.out_size; l++) {
            double sum = 0;
            for (int j = 0; j < h.dst; j++) sum += (double)scores[j] * h.v(j, l);
            h.out[i * h.out_row + l * h.out_column] = (float)sum;
        }
    }
    return kOk;
}

int attend_int8(const AttentionHead& h, const Option& opt) {
    Mat scores(Shape(h.dst), 1, opt.workspace_allocator);
    Mat row(Shape(h.size), 1, opt.workspace_allocator);
    Mat row8(Shape(std::max(h.size, h.dst), DType::s8), 1, opt.workspace_allocator);
    Mat k8(Shape(h.size, h.dst, DType::s8), 1, opt.workspace_allocator);
    Mat v8(Shape(h.dst, h.out_size, DType::s8), 1, opt.workspace_allocator);
    if (scores.empty() || row.empty() || row8.empty() || k8.empty() || v8.empty())
        return kOutOfMemory;
    const float k_scale = matrix_to_int8(h.k, h.dst, h.size, false, k8);
    const float v_scale = matrix_to_int8(h.v, h.dst, h.out_size, true, v8);
    for (int i = 0; i < h.src; i++) {
        for (int l = 0; l < h.size; l++) row[l] = h.q(i, l);
        const float q_scale = int8_scale(row, 1, 0, h.size);
        to_int8(row, h.size, q_scale, row8);
        const float qk = 1.f / (q_scale * k_scale);
        for (int j = 0; j < h.dst; j++)
            scores[j] = (float)int8_dot(row8, k8.row<signed char>(j), h.size) * qk * h.scale +
                        h.mask_at(i, j);
        softmax_of(scores, h.dst);
        const float p_scale = int8_scale(scores, 1, 0, h.dst);
        to_int8(scores, h.dst, p_scale, row8);
        const float pv = 1.f / (p_scale * v_scale);
        for (int l = 0; l < h.out_size; l++)
            h.out[i * h.out_row + l * h.out_column] =
                (float)int8_dot(row8, v8.row<signed char>(l), h.dst) * pv;
    }
    return kOk;
}

}  // namespace

int attend(const AttentionHead& head, bool int8, const Option& opt) {
    return int8 ? attend_int8(head, opt) : attend_fp32(head, opt);
}

}  // namespace quoll
