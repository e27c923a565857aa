#include "layer/sequence/multiheadattention.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include <algorithm>

#include "layer/common/conv_window.h"
#include "layer/common/int8_rows.h"

namespace quoll {

MultiHeadAttention::MultiHeadAttention()
    : embed_dim(0),
      num_heads(1),
      weight_data_size(0),
      kdim(0),
      vdim(0),
      attn_mask(0),
      scale(1.f),
      kv_cache(0),
      quantize_term(0) {
    support_absent_inputs = true;
}

void MultiHeadAttention::params(MultiHeadAttention& s, ParamVisitor& v) {
    v(0, "embed_dim", s.embed_dim, 0, "values of a projected row, all heads", at_least(1));
    v(1, "num_heads", s.num_heads, 1, "heads", at_least(1));
    v(2, "weight_data_size", s.weight_data_size, 0, "embed_dim * qdim", at_least(1));
    v(3, "kdim", s.kdim, s.embed_dim, "values of a key's row", at_least(1));
    v(4, "vdim", s.vdim, s.embed_dim, "values of a value's row", at_least(1));
    v(5, "attn_mask", s.attn_mask, 0, "1: an input is added to the products", between(0, 1));
    v(6, "scale", s.scale, 1.f / sqrtf((float)(s.embed_dim / std::max(1, s.num_heads))),
      "factor of the queries");
    v(7, "kv_cache", s.kv_cache, 0, "1: earlier keys and values come in, all go out",
      between(0, 1));
    v(18, "quantize_term", s.quantize_term, 0, "as Gemm's", at_least(0));
}

void MultiHeadAttention::weights(MultiHeadAttention& s, WeightVisitor& v) {
    static const char* const kNames[4][5] = {
        {"q_weight_data", "q_bias_data", "q_weight_data_int8_scales",
         "q_weight_data_quantize_scales", "q_weight_data_input_scales"},
        {"k_weight_data", "k_bias_data", "k_weight_data_int8_scales",
         "k_weight_data_quantize_scales", "k_weight_data_input_scales"},
        {"v_weight_data", "v_bias_data", "v_weight_data_int8_scales",
         "v_weight_data_quantize_scales", "v_weight_data_input_scales"},
        {"out_weight_data", "out_bias_data", "out_weight_data_int8_scale",
         "out_weight_data_quantize_scales", "out_weight_data_input_scales"}};
    const BlockQuant quant(s.quantize_term);
    const bool int8 = s.quantize_term != 0 && !quant;
    Projection* const all[4] = {&s.q, &s.k, &s.v, &s.out};
    for (int i = 0; i < 4; i++) {
        Projection& p = *all[i];
        v(true, kNames[i][0], p.weight_data,
          p.out * (quant ? quant.row_bytes(p.in) : (int64_t)p.in),
          quant ? WeightKind::kInt8 : WeightKind::kTagged,
          i < 3 ? "[embed_dim][input's dim]" : "[qdim][embed_dim]");
        v(true, kNames[i][1], p.bias_data, p.out, WeightKind::kRaw,
          i < 3 ? "[embed_dim]" : "[qdim]");
    }
    for (int i = 0; i < 4; i++)
        v(!!quant, kNames[i][3], all[i]->quantize_scales, all[i]->out * quant.blocks(all[i]->in),
          WeightKind::kRaw, "[rows][blocks of a row]");
    for (int i = 0; i < 4; i++)
        v(quant && quant.input_scales, kNames[i][4], all[i]->input_scales, all[i]->in,
          WeightKind::kRaw, "[values of a row]");
    for (int i = 0; i < 4; i++)
        v(int8, kNames[i][2], all[i]->int8_scales, i < 3 ? all[i]->out : 1, WeightKind::kRaw,
          i < 3 ? "[embed_dim]" : "[1]");
}

int MultiHeadAttention::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    QUOLL_RETURN_IF_ERROR(check_quantize_term(*this, quantize_term));
    if (embed_dim % num_heads != 0)
        return fail("embed_dim (0): expected a multiple of num_heads %d, got %d", num_heads,
                    embed_dim);
    if (weight_data_size % embed_dim != 0)
        return fail("weight_data_size (2): expected a multiple of embed_dim %d, got %d", embed_dim,
                    weight_data_size);
    q.in = out.out = weight_data_size / embed_dim;
    k.in = kdim, v.in = vdim;
    q.out = k.out = v.out = out.in = embed_dim;
    return kOk;
}

int MultiHeadAttention::load_model(const ModelBin& mb) {
    QUOLL_RETURN_IF_ERROR(load_weights_by_schema(*this, mb));
    const DType dtype = quantize_term ? DType::s8 : DType::f32;
    for (const Projection* p : {&q, &k, &v, &out})
        if (p->weight_data.dtype != dtype)
            return fail("weights: expected %s with quantize_term %d, got %s", dtype_name(dtype),
                        quantize_term, dtype_name(p->weight_data.dtype));
    return kOk;
}

int MultiHeadAttention::sizes(const std::vector<Shape>& in, Sizes* s) const {
    const int extra = (attn_mask != 0) + (kv_cache ? 2 : 0), blobs = (int)in.size() - extra;
    if (blobs < 1 || blobs > 3)
        return fail("expected %d to %d inputs, got %zu", 1 + extra, 3 + extra, in.size());
    s->at = {0, blobs > 1, blobs - 1, attn_mask ? blobs : -1,
             kv_cache ? blobs + (attn_mask != 0) : -1};
    const Shape none, &past_k = kv_cache ? in[s->at.cache] : none,
                      &past_v = kv_cache ? in[s->at.cache + 1] : none;
    s->src = in[0].h, s->past = past_k.dims ? past_k.w : 0;
    s->from_cache = s->past > 0 && blobs > 1;
    const auto check = [&](const Shape& x, const char* what, int w) {
        if ((x.dims == 1 || x.dims == 2) && x.w == w && accepts_float(*this, x.dtype))
            return (int)kOk;
        return fail("%s: expected rows of %d f32 values, got %s of %s", what, w,
                    shape_text(x).c_str(), dtype_name(x.dtype));
    };
    const Shape &key = in[s->at.k], &value = in[s->at.v];
    QUOLL_RETURN_IF_ERROR(check(in[0], "query", q.in));
    if (!s->from_cache) {
        QUOLL_RETURN_IF_ERROR(check(key, "key", k.in));
        QUOLL_RETURN_IF_ERROR(check(value, "value", v.in));
        if (key.h != value.h) return fail("%d keys and %d values", key.h, value.h);
    }
    for (const Shape* past : {&past_k, &past_v}) {
        const bool empty = past->dims == 0 && past_k.dims == 0;
        if (empty || (past->dims == 2 && past->w == s->past && past->h == embed_dim &&
                      accepts_float(*this, past->dtype)))
            continue;
        return fail("cache: expected %d x %d twice, got %s and %s", s->past, embed_dim,
                    shape_text(past_k).c_str(), shape_text(past_v).c_str());
    }
    if (!s->from_cache && s->past > INT_MAX - key.h) return fail("cache: too long");
    s->dst = s->from_cache ? s->past : s->past + key.h;
    return attn_mask ? check_attention_mask(*this, in[s->at.mask], num_heads, s->src, s->dst)
                     : (int)kOk;
}

int MultiHeadAttention::shape(const MultiHeadAttention& s, const std::vector<Shape>& in,
                              std::vector<Shape>& out) {
    Sizes sizes;
    QUOLL_RETURN_IF_ERROR(s.sizes(in, &sizes));
    out.assign(1, Shape(s.out.out, sizes.src, in[0].dtype));
    if (s.kv_cache) out.insert(out.end(), 2, Shape(sizes.dst, s.embed_dim));
    return kOk;
}

int MultiHeadAttention::prepare(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                                const Option& opt, Call* call) const {
    QUOLL_RETURN_IF_ERROR(create_tops(*this, bottoms, tops, opt));
    std::vector<Shape> in = shapes_of(bottoms);
    Sizes s;
    QUOLL_RETURN_IF_ERROR(sizes(in, &s));
    const auto input = [&](int i) { return i < 0 ? Mat() : bottoms[i]; };
    call->query = input(s.at.q), call->key = input(s.at.k), call->value = input(s.at.v);
    call->mask = input(s.at.mask);
    if (kv_cache) call->past_key = input(s.at.cache), call->past_value = input(s.at.cache + 1);
    call->src = s.src, call->past = s.past, call->dst = s.dst;
    call->from_cache = s.from_cache;
    const Mat* const past[2] = {&call->past_key, &call->past_value};
    Mat* const all[2] = {&call->keys, &call->values};
    for (int i = 0; i < 2; i++) {
        if (kv_cache)
            *all[i] = tops[1 + i];
        else
            all[i]->create(Shape(s.dst, embed_dim), 1, opt.workspace_allocator);
        if (all[i]->empty()) return kOutOfMemory;
        for (int y = 0; y < embed_dim && s.past; y++)
            memcpy(all[i]->row(y), past[i]->row(y), s.past * sizeof(float));
    }
    return kOk;
}

AttentionHead MultiHeadAttention::head_of(const Call& call, const Mat& queries, Mat& joined,
                                          int i) const {
    AttentionHead h;
    h.src = call.src, h.dst = call.dst;
    h.size = h.out_size = embed_dim / num_heads;
    const ptrdiff_t first = (ptrdiff_t)i * h.size;
    h.q = {(const float*)queries.data + first, embed_dim, 1};
    h.k = {(const float*)call.keys.data + first * call.dst, 1, call.dst};
    h.v = {(const float*)call.values.data + first * call.dst, 1, call.dst};
    h.mask = call.mask.empty() ? nullptr : attention_mask_of(call.mask, i);
    h.scale = 1.f;  // the queries have it
    h.out = (float*)joined.data + first;
    h.out_row = embed_dim, h.out_column = 1;
    return h;
}

// In int8, x is rounded with one scale, or with one per row before `out` is computed.
int MultiHeadAttention::project_rows(const Mat& x, const Projection& p, float factor,
                                     const Option& opt, float* y, ptrdiff_t y_row,
                                     ptrdiff_t y_column) const {
    const BlockQuant quant(quantize_term);
    const bool int8 = quantize_term != 0 && !quant, last = &p == &out;
    Mat weight(Shape(p.in), 1, opt.workspace_allocator);
    Mat rows8(Shape(p.in, int8 ? x.h : 1, DType::s8), 1, opt.workspace_allocator);
    Mat scales(Shape(x.h), 1, opt.workspace_allocator);
    if (weight.empty() || rows8.empty() || scales.empty()) return kOutOfMemory;
    for (int i = 0; i < x.h && int8; i++) {
        scales[i] = last     ? int8_scale(x.row(i), 1, 0, p.in)
                    : i == 0 ? int8_scale(x, x.h, p.in, p.in)
                             : scales[0];
        to_int8(x.row(i), p.in, scales[i], rows8.row<signed char>(i));
    }
    for (int j = 0; j < p.out; j++) {
        const float* w = (const float*)p.weight_data.data + (size_t)j * p.in;
        if (quant) {
            unpack_row(quant, p.weight_data, p.quantize_scales, Mat(), p.input_scales, j, p.in,
                       weight);
            w = weight;
        }
        const signed char* w8 = (const signed char*)p.weight_data.data + (size_t)j * p.in;
        for (int i = 0; i < x.h; i++) {
            float value;
            if (int8) {
                const float descale = 1.f / (p.int8_scales[last ? 0 : j] * scales[i]);
                value =
                    (float)int8_dot(rows8.row<signed char>(i), w8, p.in) * descale + p.bias_data[j];
            } else {
                double sum = p.bias_data[j];
                for (int l = 0; l < p.in; l++) sum += (double)x.row(i)[l] * w[l];
                value = (float)sum;
            }
            y[i * y_row + j * y_column] = value * factor;
        }
    }
    return kOk;
}

int MultiHeadAttention::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                                const Option& opt) const {
    Call call;
    QUOLL_RETURN_IF_ERROR(prepare(bottoms, tops, opt, &call));
    Mat queries(Shape(embed_dim, call.src), 1, opt.workspace_allocator);
    Mat joined(Shape(embed_dim, call.src), 1, opt.workspace_allocator);
    if (queries.empty() || joined.empty()) return kOutOfMemory;
    QUOLL_RETURN_IF_ERROR(project_rows(call.query, q, scale, opt, queries, embed_dim, 1));
    if (!call.from_cache) {
        float *keys = call.keys, *values = call.values;
        QUOLL_RETURN_IF_ERROR(project_rows(call.key, k, 1.f, opt, keys + call.past, 1, call.dst));
        QUOLL_RETURN_IF_ERROR(
            project_rows(call.value, v, 1.f, opt, values + call.past, 1, call.dst));
    }
    const bool int8 = quantize_term != 0 && !BlockQuant(quantize_term);
    for (int i = 0; i < num_heads; i++)
        QUOLL_RETURN_IF_ERROR(attend(head_of(call, queries, joined, i), int8, opt));
    return project_rows(joined, out, 1.f, opt, tops[0], out.out, 1);
}

int64_t MultiHeadAttention::macs(const std::vector<Shape>& in,
                                 const std::vector<Shape>& out) const {
    if (!first_sizes_known(in, out)) return -1;
    const int64_t src = out[0].h, qdim = out[0].w, embed = embed_dim;
    const int inputs = (int)in.size() - (attn_mask ? 1 : 0) - (kv_cache ? 2 : 0);
    const int64_t fresh = inputs <= 1 ? src : in[1].h;
    int64_t dst = fresh;
    if (kv_cache && in.size() >= 2) {
        const Shape& past = in[in.size() - 2];
        if (past.dims != 0) dst = inputs <= 1 ? fresh + past.w : past.w;
    }
    // The rows' projections, and the attention between them.
    const bool projects = dst == fresh || inputs <= 1;
    return 2 * src * qdim * embed + (projects ? fresh * embed * ((int64_t)kdim + vdim) : 0) +
           2 * src * dst * embed;
}

QUOLL_DEFINE_LAYER(MultiHeadAttention)

}  // namespace quoll
