// SDPA and MultiHeadAttention.
#include <math.h>

#include <algorithm>

#include "layer/sequence/multiheadattention.h"
#include "layer/sequence/sdpa.h"
#include "layer/vulkan/attention_call.h"
#include "layer/vulkan/fusion.h"
#include "layer/vulkan/product.h"
#include "runtime/log_mute.h"

namespace quoll {

namespace {

// attention_step.comp: its bindings, and the invocations that share a key. Beyond kFewKeys several
// groups, at most kMostParts, share a head, with at least kKeysOfGroup keys each.
const uint32_t kStepBindings = 11;
const int kStepLanes = 8;
const int kFewKeys = 256, kKeysOfGroup = 128, kMostParts = 32;

// Copies [c][h][w] of each item into the rows of `to` from row `first` on, where `to` has more
// channels each several times.
void copy_rows(Recorder& r, const Value& from, const Value& to, int first) {
    const uint32_t w = from.shape.w, h = from.shape.h, c = from.shape.c, n = to.shape.n;
    const uint32_t times = (uint32_t)to.shape.c / c, step = to.strides().c;
    record_strided_copy(r, from, from.first, to, to.first + (uint32_t)first * w,
                        {{w * h, 1, 1},
                         {times, 0, step},
                         {c, w * h, times * step},
                         {n, from.item_step(), to.item_step()}},
                        w * h);
}

class SdpaVulkan : public VulkanLayer {
public:
    explicit SdpaVulkan(const SDPA& layer) : layer_(layer) {}

    bool supports(const Shapes& in, const Shapes& out) const override {
        return items_fit(in, out[0].n) && out[0].n <= 65535 &&
               AttentionCall::fits(in[0].h, in[0].c, in[0].w, in[2].w) &&
               (!layer_.attn_mask || AttentionCall::fits_mask(in[3], in[0].c)) &&
               (layer_.attn_mask != SDPA::kMaskTerms || in[3].n == in[4].n);
    }
    bool takes_empty(size_t index) const override {
        return layer_.kv_cache && index >= layer_.first_cache();
    }
    bool fuses(StepFusion fusion, const Shapes&, const Shapes&) const override {
        return (fusion == StepFusion::kRepeated || fusion == StepFusion::kRotated) &&
               layer_.kv_cache;
    }
    int cache_of(size_t index) const override {
        return layer_.kv_cache && index > 0 ? (int)(layer_.first_cache() + index - 1) : -1;
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        return record_fused(r, in, out, Fused());
    }
    int record_fused(Recorder& r, const Values& in, const Values& out,
                     const Fused& fused) const override {
        if (fits_step(r, in, out, fused)) {
            record_step(r, in, out, fused);
            return kOk;
        }
        const Value *key = &in[1], *value = &in[2];
        const Fused::Rotary& rotary = fused.rotaries[0];
        Value query = in[0];
        if (rotary.layer) {
            query = r.make(in[0].shape, Layout::kPlanar);
            record_rotary(r, *rotary.layer, {in[0], rotary.cosines, rotary.sines}, query, 0);
        }
        if (layer_.kv_cache) {
            append(r, in, out, fused.rotaries[1]);
            key = &out[1], value = &out[2];
        }
        const Shape &q = query.shape, &k = key->shape, &v = value->shape;
        AttentionCall call;
        call.heads = q.c, call.heads_per_group = q.c / k.c;
        call.queries = q.h, call.keys = k.h, call.size = q.w, call.out_size = v.w;
        call.scale = scale_of(q);
        call.q = heads_of(query), call.k = heads_of(*key), call.v = heads_of(*value);
        call.y = heads_of(out[0]);
        call.mask = layer_.attn_mask ? &in[3] : nullptr;
        call.columns = layer_.attn_mask == SDPA::kMaskTerms ? &in[4] : nullptr;
        call.record(r);
        return kOk;
    }

private:
    float scale_of(const Shape& q) const {
        return layer_.scale == 0.f ? 1.f / sqrtf((float)q.w) : layer_.scale;
    }
    void append(Recorder& r, const Values& in, const Values& out,
                const Fused::Rotary& rotary) const {
        for (size_t i = 0; i < 2; i++) {
            const Value& past = in[layer_.first_cache() + i];
            const bool empty = past.shape.total() == 0;
            if (!empty && past.block != out[1 + i].block) copy_rows(r, past, out[1 + i], 0);
            const int first = empty ? 0 : past.shape.h;
            if (i == 0 && rotary.layer)
                record_rotary(r, *rotary.layer, {in[1], rotary.cosines, rotary.sines}, out[1],
                              (uint32_t)first);
            else
                copy_rows(r, in[1 + i], out[1 + i], first);
        }
    }
    // Whether attention_step.comp also rotates the only query and its key, and appends to the
    // caches.
    bool fits_step(const Recorder& r, const Values& in, const Values& out,
                   const Fused& fused) const {
        const Fused::Rotary &q = fused.rotaries[0], &k = fused.rotaries[1];
        if (layer_.attn_mask == SDPA::kMaskTerms || !q.layer || !k.layer || in[0].shape.h != 1 ||
            out[0].shape.n != 1 || !same_angles(q, k) || r.storage() == Storage::f32 ||
            step_threads(r, in[0].shape.w, out[0].shape.w) == 0 ||
            r.device().limits().maxPerStageDescriptorStorageBuffers < kStepBindings)
            return false;
        const bool pairs_fit = is_interleaved(*q.layer) || in[0].shape.w % 8 == 0;
        if (!pairs_fit || in[0].shape.w % 4 || in[0].first % 4 || out[0].first % 4) return false;
        for (size_t i = 1; i < 3; i++) {
            const Value& past = in[layer_.first_cache() + i - 1];
            if (past.shape.total() == 0 || past.block != out[i].block || in[i].first % 4 ||
                in[0].shape.c % in[i].shape.c || out[i].shape.c % in[i].shape.c ||
                out[i].shape.w % 4 || out[i].first % 4 || out[i].strides().c % 4)
                return false;
        }
        return true;
    }
    // The invocations of a group of attention_step.comp; 0: the device cannot run it.
    static uint32_t step_threads(const Recorder& r, int size, int out_size) {
        const VkPhysicalDeviceLimits& limits = r.device().limits();
        const uint32_t subgroup = r.device().info().min_subgroup_size();
        if (!r.device().features().subgroup_shuffles || subgroup < kStepLanes) return 0;
        for (uint32_t threads : {512u, 256u}) {
            const uint32_t sums = threads / subgroup * ((uint32_t)out_size * 4 + 8);
            const uint32_t shared = sums + (uint32_t)(2 * size + out_size) * 4 + 4;
            if (shared <= limits.maxComputeSharedMemorySize &&
                threads <= limits.maxComputeWorkGroupInvocations &&
                threads <= limits.maxComputeWorkGroupSize[0])
                return threads;
        }
        return 0;
    }
    static bool same_angles(const Fused::Rotary& a, const Fused::Rotary& b) {
        const auto same = [](const Value& x, const Value& y) {
            return x.block == y.block && x.constant == y.constant && x.first == y.first;
        };
        return same(a.cosines, b.cosines) && same(a.sines, b.sines) &&
               is_interleaved(*a.layer) == is_interleaved(*b.layer);
    }
    void record_step(Recorder& r, const Values& in, const Values& out, const Fused& fused) const {
        const Fused::Rotary& rotary = fused.rotaries[0];
        const Value *mask = layer_.attn_mask ? &in[3] : nullptr, *k = &out[1], *v = &out[2];
        const int heads = in[0].shape.c, keys = k->shape.h;
        const bool own_masks = mask && mask->shape.dims == 3 && mask->shape.c > 1;
        Words push = {keys,         heads / k->shape.c,     in[0].first,
                      out[0].first, mask ? mask->first : 0, own_masks ? keys : 0};
        for (const Value* all : {k, v}) {
            const Value& now = in[all == k ? 1 : 2];
            const Words cache = {all->first, all->shape.w, all->strides().c,
                                 all->shape.c / now.shape.c, now.first};
            push.insert(push.end(), cache.begin(), cache.end());
        }
        const RotaryPairs pairs(*rotary.layer, in[0].shape, rotary.cosines.shape);
        const Words rest = {rotary.cosines.first, rotary.sines.first, pairs.second,
                            scale_of(in[0].shape)};
        push.insert(push.end(), rest.begin(), rest.end());
        const int each = std::max(kKeysOfGroup, (keys + kMostParts - 1) / kMostParts);
        const int span = keys > kFewKeys ? each : keys, groups = (keys + span - 1) / span;
        push.push_back(span);
        const int parts =
            r.make_block((size_t)heads * kMostParts * (v->shape.w + 4) * sizeof(float));
        const Words constants = {
            mask != nullptr, step_threads(r, k->shape.w, v->shape.w), k->shape.w,
            v->shape.w,      r.device().info().min_subgroup_size(),   pairs.pair == 2};
        r.dispatch(Shader::attention_step, constants,
                   {r.read(in[0]), r.write(*k), r.write(*v), r.read(mask ? *mask : in[0]),
                    r.write(out[0]), r.read(in[1]), r.read(in[2]), r.read(rotary.cosines),
                    r.read(rotary.sines), r.write_block(parts), r.counters((uint32_t)heads)},
                   push, (uint32_t)groups, (uint32_t)heads);
    }
    static HeadSteps heads_of(const Value& value) {
        return {&value, (uint32_t)value.shape.w, 1, value.strides().c};
    }

    const SDPA& layer_;
};

class MultiHeadAttentionVulkan : public VulkanLayer {
public:
    explicit MultiHeadAttentionVulkan(const MultiHeadAttention& layer) : layer_(layer) {}

    int load(VulkanContext& context) {
        largest_binding_ = context.device.limits().maxStorageBufferRange;
        has_joined_ = can_join(context);
        if (has_joined_) QUOLL_RETURN_IF_ERROR(load_joined(context));
        for (int i = kQ; i <= kOut; i++) {
            const MultiHeadAttention::Projection& p = projection(i);
            QUOLL_RETURN_IF_ERROR(
                context.weights.add(values_of(p.bias_data), Storage::f32, &biases_[i]));
            if (has_joined_ && i != kOut) continue;
            QUOLL_RETURN_IF_ERROR(
                context.weights.add(values_of(p.weight_data), context.storage, &weights_[i]));
        }
        return kOk;
    }
    bool fuses(StepFusion fusion, const Shapes&, const Shapes&) const override {
        return fusion == StepFusion::kEpilogue;
    }
    bool supports(const Shapes& in, const Shapes& out) const override {
        const LogMute mute;
        MultiHeadAttention::Sizes s;
        const int each = layer_.embed_dim / layer_.num_heads;
        return items_fit(in, out[0].n) && layer_.sizes(in, &s) == kOk &&
               rows_fit(layer_.embed_dim, std::max(s.src, s.dst), out[0].n) &&
               MatrixProduct::fits(s.src, out[0].n) && MatrixProduct::fits(s.dst, out[0].n) &&
               AttentionCall::fits(s.src, layer_.num_heads, each, each) &&
               (s.at.mask < 0 || AttentionCall::fits_mask(in[s.at.mask], layer_.num_heads));
    }
    // The cache alone: its inputs are the last two.
    bool takes_empty(size_t index) const override {
        return layer_.kv_cache && index + 2 >= layer_.bottoms.size();
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        return record_fused(r, in, out, Fused());
    }
    int record_fused(Recorder& r, const Values& in, const Values& out,
                     const Fused& fused) const override {
        Shapes shapes;
        for (const Value& value : in) shapes.push_back(value.shape);
        MultiHeadAttention::Sizes s;
        QUOLL_RETURN_IF_ERROR(layer_.sizes(shapes, &s));
        const Value joined = make_rows(r, layer_.embed_dim, s.src, out[0].shape.n);
        const Value* mask = s.at.mask < 0 ? nullptr : &in[s.at.mask];
        const Value& q = in[s.at.q];
        const bool joins = has_joined_ && rows_fit(3 * layer_.embed_dim, s.src, out[0].shape.n);
        if (joins && same(q, in[s.at.k]) && same(q, in[s.at.v]))
            attend_joined(r, s, q, mask, joined);
        else
            attend_parts(r, s, in, out, mask, joined);
        project(r, kOut, joined, out[0], 0, {0, (uint32_t)layer_.out.out, 1, 0, 0}, fused);
        return kOk;
    }

private:
    enum { kQ, kK, kV, kOut, kJoined };

    const MultiHeadAttention::Projection& projection(int which) const {
        const MultiHeadAttention::Projection* const all[] = {&layer_.q, &layer_.k, &layer_.v,
                                                             &layer_.out};
        return *all[which];
    }

    // Whether projected rows, of f32 at most, fit a binding.
    bool rows_fit(int width, int rows, int items) const {
        return (double)width * rows * items * sizeof(float) <= largest_binding_;
    }
    // Whether the weights of queries, keys and values may be one matrix, each a binding of its own.
    bool can_join(const VulkanContext& context) const {
        const size_t bytes = (size_t)layer_.embed_dim * layer_.q.in * storage_size(context.storage);
        return !layer_.kv_cache && layer_.q.in == layer_.k.in && layer_.q.in == layer_.v.in &&
               layer_.embed_dim % 4 == 0 && bytes % context.device.alignment() == 0 &&
               3 * bytes <= context.device.limits().maxStorageBufferRange;
    }
    int load_joined(VulkanContext& context) {
        std::vector<float> weights, biases;
        for (int i = kQ; i <= kV; i++) {
            const std::vector<float> weight = values_of(projection(i).weight_data);
            const std::vector<float> bias = values_of(projection(i).bias_data);
            weights.insert(weights.end(), weight.begin(), weight.end());
            biases.insert(biases.end(), bias.begin(), bias.end());
        }
        QUOLL_RETURN_IF_ERROR(context.weights.add(weights, context.storage, &weights_[kJoined]));
        for (int i = kQ; i <= kV; i++) {
            weights_[i] = weights_[kJoined];
            weights_[i].bytes /= 3;
            weights_[i].offset += i * weights_[i].bytes;
        }
        return context.weights.add(biases, Storage::f32, &biases_[kJoined]);
    }

    // A view that has the first values of each row does not count.
    static bool same(const Value& a, const Value& b) {
        return a.block == b.block && a.constant == b.constant && a.first == b.first &&
               a.shape == b.shape;
    }
    static Value make_rows(Recorder& r, int width, int rows, int items) {
        Shape shape(width, rows);
        shape.n = items;
        return r.make(shape, Layout::kPlanar);
    }

    // In self-attention a row has its query, key and value side by side.
    void attend_joined(Recorder& r, const MultiHeadAttention::Sizes& s, const Value& x,
                       const Value* mask, const Value& joined) const {
        const uint32_t embed = (uint32_t)layer_.embed_dim, row = 3 * embed;
        const Value q = make_rows(r, (int)row, s.src, joined.shape.n);
        project(r, kJoined, x, q, 0, {0, row, 1, 0, 0}, Fused());
        Value k = q, v = q;
        k.first += embed, v.first += 2 * embed;
        const uint32_t each = embed / layer_.num_heads;
        attend(r, s, {&q, row, 1, each}, {&k, row, 1, each}, {&v, row, 1, each}, mask, joined);
    }

    void attend_parts(Recorder& r, const MultiHeadAttention::Sizes& s, const Values& in,
                      const Values& out, const Value* mask, const Value& joined) const {
        const int width = layer_.embed_dim, items = joined.shape.n;
        const uint32_t embed = (uint32_t)width, dst = (uint32_t)s.dst;
        const uint32_t each = embed / layer_.num_heads;
        const Value queries = make_rows(r, width, s.src, items);
        project(r, kQ, in[s.at.q], queries, 0, {0, embed, 1, 0, 0}, Fused());
        // Rows, if there is no cache, which is [embed_dim][keys].
        const bool cache = layer_.kv_cache;
        const Value keys = cache ? out[1] : make_rows(r, width, s.dst, items);
        const Value values = cache ? out[2] : make_rows(r, width, s.dst, items);
        const Value* const all[] = {&keys, &values};
        for (int i = 0; i < 2; i++) {
            if (s.past) copy_past(r, in[s.at.cache + i], *all[i]);
            if (s.from_cache) continue;
            project(r, kK + i, in[i == 0 ? s.at.k : s.at.v], *all[i], (uint32_t)s.past,
                    cache ? MatrixSteps{0, 1, dst, 0, 0} : MatrixSteps{0, embed, 1, 0, 0}, Fused());
        }
        HeadSteps k = {&keys, embed, 1, each};
        if (cache) k = {&keys, 1, dst, each * dst};
        HeadSteps v = k;
        v.value = &values;
        attend(r, s, {&queries, embed, 1, each}, k, v, mask, joined);
    }

    static void copy_past(Recorder& r, const Value& from, const Value& to) {
        const uint32_t past = from.shape.w, all = to.shape.w;
        record_strided_copy(r, from, from.first, to, to.first,
                            {{past, 1, 1},
                             {(uint32_t)from.shape.h, past, all},
                             {(uint32_t)to.shape.n, from.item_step(), to.item_step()}},
                            past);
    }

    // y = rows of x times the weight + bias, at y's steps from its value `first` on.
    void project(Recorder& r, int which, const Value& x, const Value& y, uint32_t first,
                 MatrixSteps y_steps, const Fused& fused) const {
        const MultiHeadAttention::Projection& of = projection(which == kJoined ? kQ : which);
        const uint32_t width = (uint32_t)of.in;
        MatrixProduct p;
        p.rows = x.shape.h, p.columns = which == kJoined ? 3 * of.out : of.out;
        p.depth = (int)width;
        p.c = y.shape.n;
        p.a = r.read(x), p.a_steps = {x.first, width, 1, x.item_step(), 0};
        p.b = weights_[which], p.b_steps = {0, 1, width, 0, 0};
        p.has_bias = true, p.bias = biases_[which];
        p.y = r.write(y), p.y_steps = y_steps, p.y_steps.first = y.first + first;
        p.y_steps.c = y.item_step();
        p.add_epilogue(r, fused);
        p.record(r);
    }

    void attend(Recorder& r, const MultiHeadAttention::Sizes& s, const HeadSteps& q,
                const HeadSteps& k, const HeadSteps& v, const Value* mask,
                const Value& joined) const {
        const uint32_t embed = (uint32_t)layer_.embed_dim, each = embed / layer_.num_heads;
        AttentionCall call;
        call.heads = layer_.num_heads, call.heads_per_group = 1;
        call.queries = s.src, call.keys = s.dst, call.size = call.out_size = (int)each;
        call.scale = layer_.scale;
        call.q = q, call.k = k, call.v = v;
        call.y = {&joined, embed, 1, each};
        call.mask = mask;
        call.record(r);
    }

    const MultiHeadAttention& layer_;
    uint32_t largest_binding_ = 0;  // bytes
    bool has_joined_ = false;       // kJoined
    Binding weights_[5], biases_[5];
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
