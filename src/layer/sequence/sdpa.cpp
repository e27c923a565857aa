#include "layer/sequence/sdpa.h"

#include <limits.h>
#include <math.h>

#include "layer/common/row_cache.h"

namespace quoll {

SDPA::SDPA() : attn_mask(0), scale(0.f), kv_cache(0), int8_scale_term(0) {
    support_absent_inputs = true;
}

void SDPA::params(SDPA& s, ParamVisitor& v) {
    v(5, "attn_mask", s.attn_mask, 0,
      "1: an input is added to the scaled products; 2: two are, of rows and columns of keys on a "
      "grid",
      between(0, 2));
    v(6, "scale", s.scale, 0.f, "factor of the products; 0: 1 / sqrt(size)");
    v(7, "kv_cache", s.kv_cache, 0, "1: earlier keys and values come in, all go out",
      between(0, 1));
    v(18, "int8_scale_term", s.int8_scale_term, 0, "not 0: int8 arithmetic", at_least(0));
}

void SDPA::weights(SDPA&, WeightVisitor&) {}

// The earlier keys or values, if there are any: all but the number of rows as the new ones.
static int check_cache(const Layer& layer, const char* what, const Shape& past, const Shape& cur) {
    if (past.dims == 0) return kOk;
    if (accepts_float(layer, past.dtype) && past.w == cur.w && past.c == cur.c && past.d == 1 &&
        past.h <= INT_MAX - cur.h)
        return kOk;
    return layer.fail("%s so far: expected %d x rows x %d of f32, got %s of %s", what, cur.w, cur.c,
                      shape_text(past).c_str(), dtype_name(past.dtype));
}

int SDPA::shape(const SDPA& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    const size_t count = s.first_cache() + (s.kv_cache ? 2 : 0);
    if (in.size() != count) return s.fail("expected %zu inputs, got %zu", count, in.size());
    for (size_t i = 0; i < 3; i++)
        if ((in[i].dims != 2 && in[i].dims != 3) || !accepts_float(s, in[i].dtype))
            return s.fail("input %zu: expected 2 or 3 axes of f32, got %s of %s", i,
                          shape_text(in[i]).c_str(), dtype_name(in[i].dtype));
    const Shape &q = in[0], &k = in[1], &v = in[2];
    if (k.w != q.w || k.h != v.h || k.c != v.c)
        return s.fail("query %s, key %s and value %s do not go together", shape_text(q).c_str(),
                      shape_text(k).c_str(), shape_text(v).c_str());
    if (k.c == 0 ? q.c != 0 : q.c % k.c != 0)
        return s.fail("expected a multiple of %d heads, got %d", k.c, q.c);
    int dst = k.h;
    out.assign(1, Shape(v.w, q.h, q.c, q.dtype));
    if (s.kv_cache) {
        const Shape &past_k = in[count - 2], &past_v = in[count - 1];
        QUOLL_RETURN_IF_ERROR(check_cache(s, "keys", past_k, k));
        QUOLL_RETURN_IF_ERROR(check_cache(s, "values", past_v, v));
        if (past_k.h != past_v.h) return s.fail("%d keys and %d values so far", past_k.h, past_v.h);
        if (past_k.dims) dst += past_k.h;
        out.push_back(Shape(k.w, dst, k.c));
        out.push_back(Shape(v.w, dst, k.c));
    }
    if (s.attn_mask == kMaskTerms) return check_mask_terms(s, in[3], in[4], q.c, q.h, dst);
    return s.attn_mask ? check_attention_mask(s, in[3], q.c, q.h, dst) : (int)kOk;
}

int SDPA::prepare(const std::vector<Mat>& bottoms, std::vector<Mat>& tops, const Option& opt,
                  Call* call) const {
    std::vector<Shape> out;
    QUOLL_RETURN_IF_ERROR(infer_shapes(shapes_of(bottoms), out));
    tops.resize(out.size());
    call->heads_per_group = bottoms[0].c / bottoms[1].c;
    call->mask = attn_mask == kWholeMask ? &bottoms[3] : nullptr;
    call->rows = attn_mask == kMaskTerms ? &bottoms[3] : nullptr;
    call->columns = attn_mask == kMaskTerms ? &bottoms[4] : nullptr;
    call->key = bottoms[1], call->value = bottoms[2];
    if (kv_cache) {
        for (size_t i = 0; i < 2; i++) {
            tops[1 + i].release();
            QUOLL_RETURN_IF_ERROR(
                append_rows(bottoms[first_cache() + i], bottoms[1 + i], opt, &tops[1 + i]));
        }
        call->key = tops[1], call->value = tops[2];
    }
    if (out[0].total() == 0) return fail("output 0 would be empty: %s", shape_text(out[0]).c_str());
    tops[0].create(out[0], 1, opt.blob_allocator);
    return tops[0].empty() ? (int)kOutOfMemory : (int)kOk;
}

AttentionHead SDPA::head_of(const Mat& query, const Call& call, Mat& top, int head) const {
    const Mat &k = call.key, &v = call.value;
    const int group = head / call.heads_per_group;
    AttentionHead h;
    h.src = query.h, h.dst = k.h;
    h.size = query.w, h.out_size = v.w;
    // Blobs may be of a storage type, which attend_fast() takes.
    const auto rows = [](const Mat& m, int c) {
        return Strided{(const float*)((const char*)m.data + c * m.cstep * m.elemsize), m.w, 1};
    };
    h.q = rows(query, head), h.k = rows(k, group), h.v = rows(v, group);
    h.mask = call.mask ? attention_mask_of(*call.mask, head) : nullptr;
    if (call.rows)
        h.terms = {attention_mask_of(*call.rows, head), attention_mask_of(*call.columns, head),
                   call.rows->w, call.columns->w};
    h.scale = scale == 0.f ? 1.f / sqrtf((float)h.size) : scale;
    h.out = top.channel(head);
    h.out_row = v.w, h.out_column = 1;
    return h;
}

int SDPA::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                  const Option& opt) const {
    Call call;
    QUOLL_RETURN_IF_ERROR(prepare(bottoms, tops, opt, &call));
    for (int q = 0; q < bottoms[0].c; q++)
        QUOLL_RETURN_IF_ERROR(
            attend(head_of(bottoms[0], call, tops[0], q), int8_scale_term != 0, opt));
    return kOk;
}

int64_t SDPA::macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const {
    if (!first_sizes_known(in, out) || in.size() < 3) return -1;
    for (const Shape& shape : in)
        if (shape.dims == 0) return -1;
    return (int64_t)in[0].c * in[0].h * in[1].h * ((int64_t)in[0].w + in[2].w);
}

QUOLL_DEFINE_LAYER(SDPA)

}  // namespace quoll
