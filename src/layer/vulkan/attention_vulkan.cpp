// SDPA and MultiHeadAttention.
#include <math.h>

#include "layer/sequence/multiheadattention.h"
#include "layer/sequence/sdpa.h"
#include "layer/vulkan/product.h"
#include "runtime/log_mute.h"

namespace quoll {

namespace {

const int kMostValues = 512;  // of a query, a key or a value in attention.comp
// Of attention_matrix.comp: queries of a group, and those from which on it is taken.
const int kQueries = 16, kFewQueries = 8;

// Steps from row to row, from value to value, from head to head.
struct HeadSteps {
    const Value* value;
    uint32_t row, column, head;
};

struct AttentionCall {
    int heads, heads_per_group, queries, keys, size, out_size;
    float scale;
    HeadSteps q, k, v, y;
    const Value* mask;  // null: none

    void record(Recorder& r) const {
        Words push = {queries, keys, size, out_size, heads_per_group};
        HeadSteps seen = q;
        if (mask) {
            const bool each = mask->shape.dims == 3 && mask->shape.c > 1;
            seen = {mask, (uint32_t)keys, 1, each ? (uint32_t)queries * keys : 0};
        }
        for (const HeadSteps* m : {&q, &k, &v, &y, (const HeadSteps*)&seen})
            push.insert(push.end(),
                        {m->value->first, m->row, m->column, m->head, m->value->item_step()});
        push.push_back(scale);
        const std::vector<Binding> bindings = {r.read(*q.value), r.read(*k.value), r.read(*v.value),
                                               r.read(*seen.value), r.write(*y.value)};
        const bool units = fits_units(r);
        const Words constants = units ? Words{mask != nullptr, size, out_size,
                                              4 * r.device().features().matrix.subgroup}
                                      : Words{mask != nullptr, (out_size + 63) / 64};
        r.dispatch(units ? Shader::attention_matrix : Shader::attention, constants, bindings, push,
                   (uint32_t)(units ? (queries + kQueries - 1) / kQueries : queries),
                   (uint32_t)heads, (uint32_t)y.value->shape.n);
    }
    // Whether attention_matrix.comp makes it.
    bool fits_units(const Recorder& r) const {
        const MatrixUnits& units = r.device().features().matrix;
        const bool edges = units.m == 16 && units.n == 16 && units.k == 16 && units.subgroup >= 32;
        if (!r.has_matrices() || !edges || queries < kFewQueries || size % 16 || out_size % 16)
            return false;
        for (const HeadSteps* m : {&q, &k, &v, &y}) {
            const uint32_t steps = m->value->first | m->row | m->head | m->value->item_step();
            if (m->column != 1 || steps % 8) return false;
        }
        const uint32_t of_size = size / 8 + 1, of_out = out_size / 8 + 1;
        const uint32_t vectors = (16 + 64) * of_size + 64 * of_out + 16 * (17 + 2 * 9) +
                                 16 * ((uint32_t)out_size / 4 + 1) + 32;
        return 16 * vectors <= r.device().limits().maxComputeSharedMemorySize;
    }
    static bool fits(int queries, int heads, int size, int out_size) {
        return queries <= 65535 && heads <= 65535 && size <= kMostValues && out_size <= kMostValues;
    }
};

// [c][h][w] of each item into the rows of `to` from row `first` on.
void copy_rows(Recorder& r, const Value& from, const Value& to, int first) {
    const uint32_t w = from.shape.w, h = from.shape.h, c = from.shape.c, n = to.shape.n;
    record_strided_copy(r, from, from.first, to, to.first + (uint32_t)first * w,
                        {{w * h, 1, 1},
                         {c, w * h, w * (uint32_t)to.shape.h},
                         {n, from.item_step(), to.item_step()}},
                        w * h);
}

class SdpaVulkan : public VulkanLayer {
public:
    explicit SdpaVulkan(const SDPA& layer) : layer_(layer) {}

    bool supports(const Shapes& in, const Shapes& out) const override {
        return items_fit(in, out[0].n) && out[0].n <= 65535 &&
               AttentionCall::fits(in[0].h, in[0].c, in[0].w, in[2].w);
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        const Value *key = &in[1], *value = &in[2];
        if (layer_.kv_cache) {
            const size_t cache = layer_.attn_mask ? 4 : 3;
            for (size_t i = 0; i < 2; i++) {
                copy_rows(r, in[cache + i], out[1 + i], 0);
                copy_rows(r, in[1 + i], out[1 + i], in[cache + i].shape.h);
            }
            key = &out[1], value = &out[2];
        }
        const Shape &q = in[0].shape, &k = key->shape, &v = value->shape;
        AttentionCall call;
        call.heads = q.c, call.heads_per_group = q.c / k.c;
        call.queries = q.h, call.keys = k.h, call.size = q.w, call.out_size = v.w;
        call.scale = layer_.scale == 0.f ? 1.f / sqrtf((float)q.w) : layer_.scale;
        call.q = heads_of(in[0]), call.k = heads_of(*key), call.v = heads_of(*value);
        call.y = heads_of(out[0]);
        call.mask = layer_.attn_mask ? &in[3] : nullptr;
        call.record(r);
        return kOk;
    }

private:
    static HeadSteps heads_of(const Value& value) {
        const uint32_t w = value.shape.w;
        return {&value, w, 1, w * (uint32_t)value.shape.h};
    }

    const SDPA& layer_;
};

class MultiHeadAttentionVulkan : public VulkanLayer {
public:
    explicit MultiHeadAttentionVulkan(const MultiHeadAttention& layer) : layer_(layer) {}

    int load(VulkanContext& context) {
        const MultiHeadAttention::Projection* all[] = {&layer_.q, &layer_.k, &layer_.v,
                                                       &layer_.out};
        for (int i = 0; i < 4; i++) {
            QUOLL_RETURN_IF_ERROR(
                context.weights.add(values_of(all[i]->weight_data), context.storage, &weights_[i]));
            QUOLL_RETURN_IF_ERROR(
                context.weights.add(values_of(all[i]->bias_data), context.storage, &biases_[i]));
        }
        return kOk;
    }
    bool supports(const Shapes& in, const Shapes& out) const override {
        const LogMute mute;
        MultiHeadAttention::Sizes s;
        const int each = layer_.embed_dim / layer_.num_heads;
        return items_fit(in, out[0].n) && layer_.sizes(in, &s) == kOk &&
               MatrixProduct::fits(s.src, out[0].n) && MatrixProduct::fits(s.dst, out[0].n) &&
               AttentionCall::fits(s.src, layer_.num_heads, each, each);
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        Shapes shapes;
        for (const Value& value : in) shapes.push_back(value.shape);
        MultiHeadAttention::Sizes s;
        QUOLL_RETURN_IF_ERROR(layer_.sizes(shapes, &s));
        const uint32_t embed = (uint32_t)layer_.embed_dim;
        Shape flat((int)embed, s.src);
        flat.n = out[0].shape.n;
        const Value queries = r.make(flat, Layout::kPlanar);
        const Value joined = r.make(flat, Layout::kPlanar);
        project(r, kQ, in[s.at.q], queries, 0, {0, embed, 1, 0, 0}, layer_.scale);
        // Rows, where no cache keeps them.
        Shape rows((int)embed, s.dst);
        rows.n = out[0].shape.n;
        const Value keys = layer_.kv_cache ? out[1] : r.make(rows, Layout::kPlanar);
        const Value values = layer_.kv_cache ? out[2] : r.make(rows, Layout::kPlanar);
        const Value* const all[] = {&keys, &values};
        const MatrixSteps steps = layer_.kv_cache ? MatrixSteps{0, 1, (uint32_t)s.dst, 0, 0}
                                                  : MatrixSteps{0, embed, 1, 0, 0};
        for (int i = 0; i < 2; i++) {
            if (s.past) copy_past(r, in[s.at.cache + i], *all[i]);
            if (s.from_cache) continue;
            const Value& from = in[i == 0 ? s.at.k : s.at.v];
            project(r, kK + i, from, *all[i], (uint32_t)s.past, steps, 1.f);
        }
        attend(r, s, queries, keys, values, joined, s.at.mask < 0 ? nullptr : &in[s.at.mask]);
        project(r, kOut, joined, out[0], 0, {0, (uint32_t)layer_.out.out, 1, 0, 0}, 1.f);
        return kOk;
    }

private:
    enum { kQ, kK, kV, kOut };

    static void copy_past(Recorder& r, const Value& from, const Value& to) {
        const uint32_t past = from.shape.w, all = to.shape.w;
        record_strided_copy(r, from, from.first, to, to.first,
                            {{past, 1, 1},
                             {(uint32_t)from.shape.h, past, all},
                             {(uint32_t)to.shape.n, from.item_step(), to.item_step()}},
                            past);
    }

    // y = (rows of x times the weight + bias) * factor, at y's steps from its value `first` on.
    void project(Recorder& r, int which, const Value& x, const Value& y, uint32_t first,
                 MatrixSteps y_steps, float factor) const {
        const MultiHeadAttention::Projection* all[] = {&layer_.q, &layer_.k, &layer_.v,
                                                       &layer_.out};
        const uint32_t width = (uint32_t)all[which]->in;
        MatrixProduct p;
        p.rows = x.shape.h, p.columns = all[which]->out, p.depth = (int)width;
        p.c = y.shape.n;
        p.a = r.read(x), p.a_steps = {x.first, width, 1, x.item_step(), 0};
        p.b = weights_[which], p.b_steps = {0, 1, width, 0, 0};
        p.has_addend = true, p.addend = biases_[which], p.addend_steps = {0, 0, 1, 0, 0};
        p.y = r.write(y), p.y_steps = y_steps, p.y_steps.first = y.first + first;
        p.y_steps.c = y.item_step();
        p.alpha = p.beta = factor;
        p.record(r);
    }

    void attend(Recorder& r, const MultiHeadAttention::Sizes& s, const Value& queries,
                const Value& keys, const Value& values, const Value& joined,
                const Value* mask) const {
        const uint32_t embed = (uint32_t)layer_.embed_dim, each = embed / layer_.num_heads;
        const uint32_t dst = (uint32_t)s.dst;
        AttentionCall call;
        call.heads = layer_.num_heads, call.heads_per_group = 1;
        call.queries = s.src, call.keys = s.dst, call.size = call.out_size = (int)each;
        call.scale = 1.f;  // the queries have it
        call.q = {&queries, embed, 1, each};
        // A cache is [embed_dim][keys].
        const HeadSteps turned = {&keys, 1, dst, each * dst}, rows = {&keys, embed, 1, each};
        call.k = call.v = layer_.kv_cache ? turned : rows;
        call.v.value = &values;
        call.y = {&joined, embed, 1, each};
        call.mask = mask;
        call.record(r);
    }

    const MultiHeadAttention& layer_;
    Binding weights_[4], biases_[4];
};

}  // namespace

int make_attention_vulkan(const Layer& layer, VulkanContext& context, VulkanLayerPtr* made) {
    const SDPA* sdpa = as<SDPA>(&layer);
    if (sdpa && !sdpa->int8_scale_term) made->reset(new SdpaVulkan(*sdpa));
    const MultiHeadAttention* attention = as<MultiHeadAttention>(&layer);
    if (!attention || attention->quantize_term) return kOk;
    std::unique_ptr<MultiHeadAttentionVulkan> form(new MultiHeadAttentionVulkan(*attention));
    QUOLL_RETURN_IF_ERROR(form->load(context));
    *made = std::move(form);
    return kOk;
}

}  // namespace quoll
