// Attention, in ONNX's form and those of com.microsoft, as SDPA, or as products and Softmax where
// it cannot be had so; rotary embeddings.
#include <math.h>

#include <functional>
#include <limits>

#include "onnx/nodes.h"
#include "onnx/ops.h"
#include "onnx/sdpa.h"

namespace quoll {
namespace onnx_tool {

namespace {

const float kMinusInfinity = -std::numeric_limits<float>::infinity();

// A size as a scalar of int64.
std::string size_of(Nodes& n, const std::string& x, int axis) {
    const Value* v = n.value(x);
    if (v && axis < v->rank() && v->shape[axis].known())
        return n.constant(Tensor::of_ints({v->shape[axis].value}, true));
    return n.add("Gather", {n.add("Shape", {x}), n.constant(Tensor::of_ints({axis}, true))});
}

// 0, 1, ... up to a scalar.
std::string count_to(Nodes& n, const std::string& end) {
    return n.add("Range", {n.constant(Tensor::of_ints({0}, true)), end,
                           n.constant(Tensor::of_ints({1}, true))});
}

std::string unsqueeze(Nodes& n, const std::string& x, const std::vector<int64_t>& axes) {
    return n.add("Unsqueeze", {x, n.ints(axes)});
}

// batch, length, heads * size as batch, heads, length, size.
std::string split_heads(Nodes& n, const std::string& x, int64_t heads) {
    return n.transpose(n.reshape(x, {0, 0, heads, -1}), {0, 2, 1, 3});
}

std::string join_heads(Nodes& n, const std::string& x) {
    return n.reshape(n.transpose(x, {0, 2, 1, 3}), {0, 0, -1});
}

// Each head of keys and values as often as queries share it.
std::string repeat_heads(Op& op, Nodes& n, const std::string& x, int64_t times) {
    const Value* v = n.value(x);
    if (!v || times == 1) return x;
    if (!v->shape[1].known()) {
        op.fail("an unknown number of heads");
        return "";
    }
    std::vector<int64_t> heads;
    for (int64_t h = 0; h < v->shape[1].value * times; h++) heads.push_back(h / times);
    return n.add("Gather", {x, n.ints(heads)}, {{"axis", attribute_of((int64_t)1)}});
}

struct Scores {
    std::string q, k, v;  // batch, heads, length, size
    float scale = 0;      // 0: 1 / sqrt(size)
    float softcap = 0;
    // Which positions see which: j <= i + offset; -window <= j - i - offset <= window.
    bool causal = false;
    bool last_sees_all = false;  // the last query, although `causal`
    int64_t left = -1, right = -1;
    std::string offset;                // a scalar, or batch x 1 x 1 x 1; "": 0
    std::vector<std::string> bias;     // added to scores
    std::vector<std::string> allowed;  // bool; false: as if minus infinity was added
    float masked = kMinusInfinity;
    bool guard = false;  // rows that see nothing give 0
    // Beside the scores in each row's softmax, whose weight is dropped: a scalar, or
    // 1 x heads x 1 x 1; "": none.
    std::string sink;
    // What a subgraph makes of scores, and of weights; if there is one.
    std::function<std::string(const std::string&)> change_scores, change_weights;
    // What came of it.
    std::string raw, capped, biased, weights, out;
};

void add_window(Nodes& n, Scores* s) {
    if (!s->causal && s->left < 0 && s->right < 0) return;
    const std::string queries = unsqueeze(n, count_to(n, size_of(n, s->q, 2)), {1});
    const std::string rows = s->offset.empty() ? queries : n.add("Add", {queries, s->offset});
    const std::string columns = count_to(n, size_of(n, s->k, 2));
    const auto bound = [&](const char* compare, int64_t by) {
        const std::string at =
            by ? n.add("Add", {rows, n.constant(Tensor::of_ints({by}, true))}) : rows;
        s->allowed.push_back(n.add(compare, {columns, at}));
    };
    if (s->causal) bound("LessOrEqual", 0);
    if (s->causal && s->last_sees_all) {
        const std::string one = n.constant(Tensor::of_ints({1}, true));
        const std::string last = n.add("Sub", {size_of(n, s->q, 2), one});
        s->allowed.back() = n.add("Or", {s->allowed.back(), n.add("Equal", {queries, last})});
    }
    if (s->left >= 0) bound("GreaterOrEqual", -s->left);
    if (s->right >= 0) bound("LessOrEqual", s->right);
}

// Some row of a mask that is known allows nothing, or the mask is not known.
bool may_see_nothing(const Value* mask) {
    if (!mask || !mask->is_constant() || mask->rank() < 1) return true;
    const Tensor& t = *mask->constant;
    const size_t row = (size_t)t.dims.back();
    for (size_t at = 0; row > 0 && at < t.count(); at += row) {
        bool any = false;
        for (size_t i = 0; i < row; i++) any = any || t.float_at(at + i) != 0.f;
        if (!any) return true;
    }
    return row == 0;
}

// The sink is the score of one more key of zeros, whose value is zero, too.
void add_sink(Nodes& n, Scores* s) {
    if (s->sink.empty()) return;
    const auto lengthen = [&](const std::string& x, int axis, int64_t fill, ElementType type) {
        const Value* v = n.value(x);
        std::vector<int64_t> pads(v ? 2 * (size_t)v->rank() : 0, 0);
        if (v) pads[(size_t)(v->rank() + (axis < 0 ? v->rank() + axis : axis))] = 1;
        const std::string value = type == ElementType::kFloat
                                      ? n.scalar((float)fill)
                                      : n.constant(Tensor::of_ints({fill}, true).cast(type));
        return n.add("Pad", {x, n.ints(pads), value});
    };
    const std::string keys = size_of(n, s->k, 2);
    for (std::string* x : {&s->k, &s->v}) *x = lengthen(*x, 2, 0, ElementType::kFloat);
    for (std::string& b : s->bias) b = lengthen(b, -1, 0, ElementType::kFloat);
    for (std::string& a : s->allowed)
        a = n.cast(lengthen(n.cast(a, ElementType::kInt32), -1, 1, ElementType::kInt32),
                   ElementType::kBool);
    const std::string last = n.add("Equal", {count_to(n, size_of(n, s->k, 2)), keys});
    s->bias.push_back(n.add("Where", {last, s->sink, n.scalar(0.f)}));
}

std::string all_allowed(Nodes& n, const Scores& s) {
    std::string mask;
    for (const std::string& a : s.allowed) mask = mask.empty() ? a : n.add("And", {mask, a});
    return mask;
}

// A mask with a row for each query, which may be one for all; "": not with sizes as they are known.
std::string mask_of_rows(Nodes& n, const std::string& mask, const Value& q, const Value& k) {
    const Value* v = n.value(mask);
    if (!v || v->rank() < 1) return "";
    const Dim rows = q.shape[2], columns = k.shape[2];
    if (v->rank() >= 2 && same(v->shape[(size_t)v->rank() - 2], rows) &&
        same(v->shape.back(), columns))
        return mask;
    if (!rows.known() || !columns.known()) return "";
    return n.add("Expand", {mask, n.ints({rows.value, columns.value})});
}

// As one layer, if nothing between its products is asked for; false: it takes several. SDPA gives 0
// for rows of minus infinity, but not for those of some other number.
bool attend_at_once(Op& op, Nodes& n, float scale, Scores* s) {
    if (s->softcap != 0.f || op.wants(3) || s->change_scores || s->change_weights) return false;
    const std::string allowed = all_allowed(n, *s);
    const bool guarded = s->masked == kMinusInfinity;
    if (s->guard && !guarded && !allowed.empty() && may_see_nothing(n.value(allowed))) return false;
    std::string mask;
    if (!allowed.empty()) mask = n.add("Where", {allowed, n.scalar(0.f), n.scalar(s->masked)});
    for (const std::string& b : s->bias) mask = mask.empty() ? b : n.add("Add", {mask, b});
    AttentionOperands o = {n.value(s->q), n.value(s->k), n.value(s->v), nullptr, scale};
    if (!n.ok() || !o.q || !o.k || !o.v) return false;
    if (!mask.empty()) {
        mask = mask_of_rows(n, mask, *o.q, *o.k);
        o.mask = mask.empty() ? nullptr : n.value(mask);
        if (!o.mask) return false;
    }
    if (!is_attention(op.c.symbols, o)) return false;
    s->out = n.emit("SDPA", [&](Op& layer) { return convert_attention(layer, o); });
    if (n.ok()) op.c.count("fused: SDPA");
    return n.ok();
}

// False when something could not be made.
bool attend(Op& op, Nodes& n, Scores* s) {
    const Value *q = n.value(s->q), *k = n.value(s->k), *v = n.value(s->v);
    if (!n.ok() || !q || !k || !v) return false;
    if (q->rank() != 4 || k->rank() != 4 || v->rank() != 4) return op.fail("rank %d", q->rank());
    const Dim heads = q->shape[1], shared = k->shape[1];
    if (heads.known() && shared.known()) {
        if (shared.value < 1 || heads.value % shared.value != 0)
            return op.fail("%lld heads of queries and %lld of keys", (long long)heads.value,
                           (long long)shared.value);
    }
    add_window(n, s);
    add_sink(n, s);
    float scale = s->scale;
    if (scale == 0.f) {
        if (!q->shape[3].known()) return op.fail("heads of unknown size");
        scale = 1.f / sqrtf((float)q->shape[3].value);
    }
    if (attend_at_once(op, n, scale, s)) return true;
    if (heads.known() && shared.known()) {
        s->k = repeat_heads(op, n, s->k, heads.value / shared.value);
        s->v = repeat_heads(op, n, s->v, heads.value / shared.value);
    } else if (!same(heads, shared)) {  // only the run tells how many share one
        const std::string all = size_of(n, s->q, 1);
        const std::string times = n.add("Div", {all, size_of(n, s->k, 1)});
        const std::string own = n.add("Div", {count_to(n, all), times});
        for (std::string* x : {&s->k, &s->v})
            *x = n.add("Gather", {*x, own}, {{"axis", attribute_of((int64_t)1)}});
    }
    s->raw =
        n.add("Mul", {n.add("MatMul", {s->q, n.transpose(s->k, {0, 1, 3, 2})}), n.scalar(scale)});
    s->capped = s->raw;
    if (s->softcap != 0.f) {
        const std::string cap = n.scalar(s->softcap);
        s->capped = n.add("Mul", {n.add("Tanh", {n.add("Div", {s->raw, cap})}), cap});
    }
    std::string scores = s->capped;
    const std::string mask = all_allowed(n, *s);
    for (const std::string& b : s->bias) scores = n.add("Add", {scores, b});
    if (!mask.empty()) scores = n.add("Where", {mask, scores, n.scalar(s->masked)});
    if (s->change_scores) scores = s->change_scores(scores);
    s->biased = scores;
    s->weights = n.add("Softmax", {scores}, {{"axis", attribute_of((int64_t)-1)}});
    if (s->guard && !mask.empty() && may_see_nothing(n.value(mask))) {
        const std::string any =
            n.add("ReduceMax", {n.cast(mask, ElementType::kInt32), n.ints({-1})});
        s->weights = n.add("Where", {n.cast(any, ElementType::kBool), s->weights, n.scalar(0.f)});
    }
    if (s->change_weights) s->weights = s->change_weights(s->weights);
    s->out = n.add("MatMul", {s->weights, s->v});
    return n.ok() && !s->out.empty();
}

// A mask that is shorter than the keys hides the rest of them.
std::string lengthen_mask(Nodes& n, const std::string& mask, const std::string& k, bool truth) {
    const Value *m = n.value(mask), *keys = n.value(k);
    if (!m || !keys || m->rank() < 1 || !m->shape.back().known() || !keys->shape[2].known())
        return mask;
    const int64_t more = keys->shape[2].value - m->shape.back().value;
    if (more <= 0 || m->shape.back().is(1)) return mask;
    std::vector<int64_t> pads(2 * (size_t)m->rank(), 0);
    pads.back() = more;
    if (!truth) return n.add("Pad", {mask, n.ints(pads), n.scalar(kMinusInfinity)});
    const std::string wide =
        n.add("Pad", {n.cast(mask, ElementType::kInt32), n.ints(pads),
                      n.constant(Tensor::of_ints({0}, true).cast(ElementType::kInt32))});
    return n.cast(wide, ElementType::kBool);
}

// ONNX Attention, opsets 23 on.
bool attention(Op& op) {
    const int64_t q_heads = op.attr("q_num_heads", 0), kv_heads = op.attr("kv_num_heads", 0);
    const int rank = op.in(0)->rank();
    if (!op.has(2) || op.has(4) != op.has(5))
        return op.fail("it lacks values or one of two caches");
    for (int i : {0, 1, 2})
        if ((rank != 3 && rank != 4) || op.in(i)->rank() != rank)
            return op.fail("input %d of rank %d, expected 3 or 4, as of the first", i,
                           op.in(i)->rank());
    for (int i : {4, 5})
        if (op.has(i) && op.in(i)->rank() != 4)
            return op.fail("a cache of rank %d, expected 4", op.in(i)->rank());
    if (rank == 3 && (q_heads < 1 || kv_heads < 1)) return op.fail("q_num_heads, kv_num_heads");
    Nodes n(op);
    Scores s;
    s.q = rank == 3 ? split_heads(n, n.in(0), q_heads) : n.in(0);
    s.k = rank == 3 ? split_heads(n, n.in(1), kv_heads) : n.in(1);
    s.v = rank == 3 ? split_heads(n, n.in(2), kv_heads) : n.in(2);
    if (op.has(4)) {
        s.offset = size_of(n, n.in(4), 2);
        s.k = n.add("Concat", {n.in(4), s.k}, {{"axis", attribute_of((int64_t)2)}});
        s.v = n.add("Concat", {n.in(5), s.v}, {{"axis", attribute_of((int64_t)2)}});
    }
    const std::string present_k = s.k, present_v = s.v;
    s.scale = op.attr_float("scale", 0.f);
    s.softcap = op.attr_float("softcap", 0.f);
    s.causal = op.attr("is_causal", 0) == 1;
    s.left = op.attr("left_window_size", -1), s.right = op.attr("right_window_size", -1);
    if (op.has(3)) {
        const bool truth = op.in(3)->type == ElementType::kBool;
        const std::string mask = lengthen_mask(n, n.in(3), s.k, truth);
        (truth ? s.allowed : s.bias).push_back(mask);
        s.guard = true;
        // Minus infinity in the mask is a position that is hidden, whatever its score is.
        if (!truth)
            s.allowed.push_back(
                n.add("Greater", {mask, n.scalar(-std::numeric_limits<float>::max())}));
        if (!truth)
            s.bias.back() = n.add("Max", {mask, n.scalar(-std::numeric_limits<float>::max())});
    }
    if (op.has(6)) {
        const std::string lengths = unsqueeze(n, n.in(6), {1, 2, 3});
        s.allowed.push_back(n.add("Less", {count_to(n, size_of(n, s.k, 2)), lengths}));
        if (!op.has(4)) s.offset = n.add("Sub", {lengths, size_of(n, s.q, 2)});
    }
    s.guard = s.guard || op.has(6) || s.left >= 0 || s.right >= 0;
    if (!attend(op, n, &s)) return false;
    const int64_t mode = op.attr("qk_matmul_output_mode", 0);
    if (!n.set(0, rank == 3 ? join_heads(n, s.out) : s.out) || !n.set(1, present_k) ||
        !n.set(2, present_v))
        return false;
    return !op.wants(3) || n.set(3, mode == 0   ? s.raw
                                    : mode == 1 ? s.capped
                                    : mode == 2 ? s.biased
                                                : s.weights);
}

// ai.onnx.preview FlexAttention: attention of which subgraphs change the scores and the weights.
bool flex_attention(Op& op) {
    if (!op.has(2)) return op.fail("it lacks values");
    const int model_opset = op.c.opset("");
    Nodes n(op);
    Scores s;
    s.q = n.in(0), s.k = n.in(1), s.v = n.in(2);
    s.scale = op.attr_float("scale", 0.f);
    const auto change = [&](const char* name) -> std::function<std::string(const std::string&)> {
        const Graph* graph = subgraph(op, name);
        if (!graph) return nullptr;
        return [&op, &n, graph, model_opset](const std::string& x) -> std::string {
            const int opset = op.c.opset("");
            std::vector<std::string> made;
            op.c.set_opset(model_opset);
            const bool done = n.ok() && !x.empty() && run_body(op, *graph, {x}, &made);
            op.c.set_opset(opset);
            if (done && made.size() != 1) op.fail("a subgraph of %zu outputs", made.size());
            return done && made.size() == 1 ? made[0] : "";
        };
    };
    s.change_scores = change("score_mod"), s.change_weights = change("prob_mod");
    return attend(op, n, &s) && n.set(0, s.out);
}

// com.microsoft's mask_index or key_padding_mask; false after op.fail(). What is padding has the
// filter value added, what comes later the lowest number: a row of padding sees padding alone.
bool padding_mask(Op& op, Nodes& n, int input, Scores* s) {
    const float filter = s->masked;
    s->masked = std::numeric_limits<float>::lowest();
    if (!op.has(input)) return true;
    const auto add = [&](const std::string& allowed) {
        s->bias.push_back(n.add("Where", {allowed, n.scalar(0.f), n.scalar(filter)}));
        return n.ok();
    };
    const Value* m = op.in(input);
    const std::string mask = n.in(input);
    if (m->rank() == 1) {  // keys of each item
        if (!same(m->shape[0], n.value(s->q)->shape[0]))
            return op.fail("a mask of rank 1 that is not one length an item");
        return add(n.add("Less", {count_to(n, size_of(n, s->k, 2)),
                                  n.cast(unsqueeze(n, mask, {1, 2, 3}), ElementType::kInt64)}));
    }
    if (m->rank() < 2 || m->rank() > 3) return op.fail("a mask of rank %d", m->rank());
    const std::vector<int64_t> axes =
        m->rank() == 2 ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1};
    return add(n.cast(unsqueeze(n, mask, axes), ElementType::kBool));
}

// Where com.microsoft's Attention and QAttention have what they can do without; -1: nowhere.
struct AttentionInputs {
    int mask, past, bias;
};

// What the operators of com.microsoft can be asked for and is not converted: an attribute that is
// 1, an input or an output.
struct Unsupported {
    const char* what;
    int input, output;
};

// False after op.fail() if the node has one of them.
bool without(Op& op, const std::vector<Unsupported>& all) {
    for (const Unsupported& u : all)
        if (op.attr(u.what, 0) == 1 || (u.input >= 0 && op.has(u.input)) ||
            (u.output >= 0 && op.wants(u.output)))
            return op.fail("%s", u.what);
    return true;
}

// com.microsoft Attention: `project` makes queries, keys and values of inputs 0, 1 and 2.
bool ms_attention(Op& op, const AttentionInputs& at, std::string (*project)(Op&, Nodes&)) {
    const Value *x = op.in(0), *w = op.in(1);
    const int64_t heads = op.attr("num_heads", 0);
    if (x->rank() != 3 || w->rank() != 2 || !w->shape[1].known() || heads < 1)
        return op.fail("rank %d, %lld heads", x->rank(), (long long)heads);
    if (!without(op, {{"do_rotary", -1, -1}, {"past_present_share_buffer", -1, -1}})) return false;
    std::vector<int64_t> sizes = op.attr_ints("qkv_hidden_sizes");
    if (sizes.empty()) sizes.assign(3, w->shape[1].value / 3);
    if (sizes.size() != 3 || sizes[0] + sizes[1] + sizes[2] != w->shape[1].value || sizes[0] < 1 ||
        sizes[2] < 1)
        return op.fail("qkv_hidden_sizes");
    Nodes n(op);
    const std::vector<std::string> parts = n.add_many("Split", {project(op, n), n.ints(sizes)},
                                                      {{"axis", attribute_of((int64_t)-1)}}, 3);
    Scores s;
    s.q = split_heads(n, parts[0], heads);
    s.k = split_heads(n, parts[1], heads);
    s.v = split_heads(n, parts[2], heads);
    if (op.has(at.past)) {  // 2 x batch x heads x length x size
        for (int64_t i = 0; i < 2; i++) {
            const std::string past =
                n.add("Gather", {n.in(at.past), n.constant(Tensor::of_ints({i}, true))});
            std::string& now = i ? s.v : s.k;
            if (i == 0) s.offset = size_of(n, past, 2);
            now = n.add("Concat", {past, now}, {{"axis", attribute_of((int64_t)2)}});
        }
    }
    const std::string k = s.k, v = s.v;
    s.scale = op.attr_float("scale", 0.f);
    s.causal = op.attr("unidirectional", 0) == 1;
    s.masked = op.attr_float("mask_filter_value", -10000.f);
    if (s.masked > -1e4f) return op.fail("mask_filter_value %g", s.masked);
    if (!n.ok() || !padding_mask(op, n, at.mask, &s)) return false;
    if (at.bias >= 0 && op.has(at.bias)) s.bias.push_back(n.in(at.bias));
    if (!attend(op, n, &s) || !n.set(0, join_heads(n, s.out))) return false;
    if (!op.wants(1)) return true;
    return n.set(1, n.add("Concat", {unsqueeze(n, k, {0}), unsqueeze(n, v, {0})},
                          {{"axis", attribute_of((int64_t)0)}}));
}

std::string float_projection(Op& op, Nodes& n) {
    const std::string all = n.add("MatMul", {n.in(0), n.in(1)});
    return op.has(2) ? n.add("Add", {all, n.in(2)}) : all;
}
bool float_attention(Op& op) { return ms_attention(op, {3, 4, 5}, float_projection); }

// input, weight, bias, input_scale, weight_scale, mask_index, input_zero_point,
// weight_zero_point, past.
std::string integer_projection(Op& op, Nodes& n) {
    Node product = op.node;
    product.op = "MatMulIntegerToFloat";
    product.attributes.clear();
    product.inputs = {n.in(0), n.in(1), n.in(3), n.in(4), n.in(6), n.in(7), n.in(2)};
    product.outputs = {op.c.unique_value(op.node.label() + "/projection")};
    return n.run(product) ? product.outputs[0] : "";
}
bool q_attention(Op& op) { return ms_attention(op, {5, 8, -1}, integer_projection); }

// Queries, keys and values that are one input (batch, length, heads, 3, size), or the last two of
// them (batch, length, heads, 2, size), become batch, heads, length, size.
bool unpack_heads(Op& op, Nodes& n, std::string parts[3]) {
    const int first = op.in(0)->rank() == 5 ? 0 : 1;
    if (first == 1 && op.in(0)->rank() != 3) return op.fail("rank %d", op.in(0)->rank());
    const Value* packed = op.in(first);
    if (!packed) return op.fail("it lacks keys or values");
    if (packed->rank() != 5) return op.has(2) || op.fail("it lacks keys or values");
    if (!packed->shape[3].is(3 - first) || op.has(3))
        return op.fail("packed values of other sizes, or with a bias");
    const std::string all = n.in(first);
    for (int i = first; i < 3; i++)
        parts[i] =
            n.transpose(n.squeeze(n.slice(all, 3, i - first, i - first + 1), {3}), {0, 2, 1, 3});
    return n.ok();
}

// com.microsoft MultiHeadAttention: query, key, value, bias, key_padding_mask, attention_bias,
// past_key, past_value.
bool multi_head_attention(Op& op) {
    const int64_t heads = op.attr("num_heads", 0);
    if (heads < 1) return op.fail("num_heads");
    Nodes n(op);
    Scores s;
    if (!without(op,
                 {{"past_sequence_length", 8, -1}, {"cache_indirection", 9, -1}, {"qk", -1, 3}}))
        return false;
    std::string parts[3] = {n.in(0), n.in(1), n.in(2)};
    if (!unpack_heads(op, n, parts)) return false;
    if (op.has(3)) {
        int64_t at = 0;
        for (int i = 0; i < 3; i++) {
            const Value* v = n.value(parts[i]);
            if (v->rank() != 3) continue;
            if (!v->shape[2].known()) return op.fail("heads of unknown size");
            const int64_t end = at + v->shape[2].value;
            parts[i] = n.add("Add", {parts[i], n.slice(n.in(3), 0, at, end)});
            at = end;
        }
    }
    if (!n.ok()) return false;
    for (int i = 0; i < 3; i++)
        if (n.value(parts[i])->rank() == 3) parts[i] = split_heads(n, parts[i], heads);
    s.q = parts[0], s.k = parts[1], s.v = parts[2];
    if (!n.ok()) return false;
    // ONNX Runtime hides nothing from the last query, which matters if there are more keys.
    s.last_sees_all = !same(n.value(s.q)->shape[2], n.value(s.k)->shape[2]);
    if (op.has(6)) {
        s.offset = size_of(n, n.in(6), 2);
        s.k = n.add("Concat", {n.in(6), s.k}, {{"axis", attribute_of((int64_t)2)}});
        s.v = n.add("Concat", {n.in(7), s.v}, {{"axis", attribute_of((int64_t)2)}});
    }
    const std::string k = s.k, v = s.v;
    s.scale = op.attr_float("scale", 0.f);
    s.causal = op.attr("unidirectional", 0) == 1;
    s.masked = op.attr_float("mask_filter_value", -10000.f);
    if (!n.ok() || !padding_mask(op, n, 4, &s)) return false;
    if (op.has(5)) s.bias.push_back(n.in(5));
    return attend(op, n, &s) && n.set(0, join_heads(n, s.out)) && n.set(1, k) && n.set(2, v);
}

// A cache (batch, heads, most, size) with the row of one position replaced.
std::string with_row(Nodes& n, const std::string& cache, const std::string& row,
                     const std::string& position) {
    const std::string rows = unsqueeze(n, count_to(n, size_of(n, cache, 2)), {1});
    return n.add("Where", {n.add("Equal", {rows, position}), row, cache});
}

// com.microsoft DecoderMaskedMultiHeadAttention, one query an item: query, key, value, mask_index,
// attention_bias, past_key, past_value, past_sequence_length, beam_width, cache_indirection, bias.
// Without past_key, key and value are those of another sequence, as heads. With it, the caches are
// as long as they ever get, and the new row is put at past_sequence_length.
bool decoder_masked_attention(Op& op) {
    const int64_t heads = op.attr("num_heads", 0);
    const Value* q = op.in(0);
    if (!without(op, {{"beam_width", 8, -1}, {"cache_indirection", 9, -1}, {"qk", -1, 3}}))
        return false;
    if (heads < 1 || q->rank() != 3 || !q->shape[2].known() || !op.has(1) || !op.has(2))
        return op.fail("num_heads, packed operands, or a query of rank %d", q->rank());
    const bool own = op.has(5);
    if (own && (!op.has(6) || !op.has(7))) return op.fail("it lacks past_sequence_length");
    for (int i : {1, 2})
        if (op.in(i)->rank() != (own ? 3 : 4)) return op.fail("keys of rank %d", op.in(i)->rank());
    if (own && (!op.in(1)->shape[2].known() || !op.in(2)->shape[2].known()))
        return op.fail("heads of unknown size");
    Nodes n(op);
    Scores s;
    std::string parts[3] = {n.in(0), n.in(1), n.in(2)};
    for (int64_t i = 0, at = 0; op.has(10) && i < (own ? 3 : 1); i++) {
        const int64_t end = at + op.in((int)i)->shape[2].value;
        parts[i] = n.add("Add", {parts[i], n.slice(n.in(10), 0, at, end)});
        at = end;
    }
    s.q = split_heads(n, parts[0], heads), s.k = parts[1], s.v = parts[2];
    std::string k, v;
    if (own) {
        const std::string at = n.cast(n.reshape(n.in(7), {1}), ElementType::kInt64);
        k = with_row(n, n.in(5), split_heads(n, s.k, heads), at);
        v = with_row(n, n.in(6), split_heads(n, s.v, heads), at);
        const std::string end = n.add("Add", {at, n.ints({1})});
        s.k = n.add("Slice", {k, n.ints({0}), end, n.ints({2})});
        s.v = n.add("Slice", {v, n.ints({0}), end, n.ints({2})});
    }
    s.scale = op.attr_float("scale", 0.f);
    s.masked = op.attr_float("mask_filter_value", -10000.f);
    if (!n.ok() || !padding_mask(op, n, 3, &s)) return false;
    if (op.has(4)) s.bias.push_back(n.in(4));
    if (!attend(op, n, &s) || !n.set(0, join_heads(n, s.out))) return false;
    return own ? n.set(1, k) && n.set(2, v)
               : (!op.wants(1) && !op.wants(2)) || op.fail("present_key without past_key");
}

struct Rotation {
    std::string cos, sin;   // length x size / 2, or those of each position
    std::string positions;  // batch x length; "": the caches are those of each position
    int64_t heads = 0, size = 0;
    bool interleaved = false;
};

// x: batch, heads, length, size.
std::string rotate(Op& op, Nodes& n, const std::string& x, const Rotation& r) {
    const Value* v = n.value(x);
    if (!n.ok() || !v) return "";
    if (v->rank() != 4 || !v->shape[3].known()) {
        op.fail("heads of unknown size");
        return "";
    }
    const int64_t all = v->shape[3].value, size = r.size ? r.size : all;
    if (size < 2 || size > all || size % 2 != 0) {
        op.fail("%lld values of heads of %lld are turned, expected an even number", (long long)size,
                (long long)all);
        return "";
    }
    std::string caches[2] = {r.cos, r.sin};
    for (std::string& cache : caches) {
        if (!r.positions.empty()) cache = n.add("Gather", {cache, r.positions});
        cache = unsqueeze(n, cache, {1});
        const Value* c = n.value(cache);
        if (c && c->shape.back().known() && c->shape.back().value > size / 2)
            cache = n.slice(cache, -1, 0, size / 2);
    }
    const std::string part = size < all ? n.slice(x, 3, 0, size) : x;
    std::string halves[2];
    for (int64_t i = 0; i < 2; i++)
        halves[i] =
            r.interleaved
                ? n.add("Slice", {part, n.ints({i}), n.ints({size}), n.ints({3}), n.ints({2})})
                : n.slice(part, 3, i * (size / 2), (i + 1) * (size / 2));
    std::string real =
        n.add("Sub", {n.add("Mul", {halves[0], caches[0]}), n.add("Mul", {halves[1], caches[1]})});
    std::string imaginary =
        n.add("Add", {n.add("Mul", {halves[0], caches[1]}), n.add("Mul", {halves[1], caches[0]})});
    std::string turned;
    const Attributes last = {{"axis", attribute_of((int64_t)3)}};
    if (r.interleaved) {
        // Columns 0, size / 2, 1, size / 2 + 1, ... of the halves side by side.
        std::vector<int64_t> order;
        for (int64_t i = 0; i < size; i++) order.push_back(i / 2 + (i % 2) * (size / 2));
        turned = n.add("Gather", {n.add("Concat", {real, imaginary}, last), n.ints(order)}, last);
    } else {
        turned = n.add("Concat", {real, imaginary}, last);
    }
    if (size == all) return turned;
    return n.add("Concat", {turned, n.slice(x, 3, size, all)}, last);
}

// Positions from one number that is the first's, or batch x length as they are.
std::string positions_of(Nodes& n, const std::string& given, const std::string& x) {
    const Value* v = n.value(given);
    if (!v || v->rank() > 1) return given;
    return unsqueeze(n, n.add("Add", {count_to(n, size_of(n, x, 2)), given}), {0});
}

bool rotary(Op& op, const std::string& positions, const std::string& cos, const std::string& sin,
            Nodes& n) {
    Rotation r;
    r.cos = cos, r.sin = sin;
    r.heads = op.attr("num_heads", 0), r.size = op.attr("rotary_embedding_dim", 0);
    r.interleaved = op.attr("interleaved", 0) == 1;
    const bool flat = op.in(0)->rank() == 3;
    if (flat && r.heads < 1 && r.size < 1) {
        const Value* c = n.value(cos);
        if (c->rank() < 1 || !c->shape.back().known() || c->shape.back().value < 1)
            return op.fail("num_heads");
        r.size = 2 * c->shape.back().value;
        r.heads = op.in(0)->shape[2].known() ? op.in(0)->shape[2].value / r.size : 0;
    }
    if (flat && r.heads < 1) return op.fail("num_heads");
    const std::string x = flat ? split_heads(n, n.in(0), r.heads) : n.in(0);
    if (!n.ok()) return false;
    if (!positions.empty()) r.positions = positions_of(n, positions, x);
    const std::string out = rotate(op, n, x, r);
    return n.set(0, flat && !out.empty() ? join_heads(n, out) : out);
}

bool rotary_embedding(Op& op) {
    Nodes n(op);
    return rotary(op, n.in(3), n.in(1), n.in(2), n);
}

bool ms_rotary_embedding(Op& op) {
    if (!without(op, {{"is_packed_batching", -1, -1}})) return false;
    if (op.attr_float("scale", 1.f) != 1.f) return op.fail("scale");
    Nodes n(op);
    return rotary(op, n.in(1), n.in(2), n.in(3), n);
}

// Which of the positions of time, height and width turns each of the values: `layout` 0: one
// section behind the other, 1: by turns, as long as there are so many of height and width.
std::vector<int64_t> streams_of(const std::vector<int64_t>& sections, bool by_turns) {
    std::vector<int64_t> streams;
    for (int64_t i = 0; i < 3; i++)
        streams.insert(streams.end(), (size_t)sections[(size_t)i], by_turns ? 0 : i);
    for (size_t i = 0; by_turns && i < streams.size(); i++)
        if ((int64_t)i < 3 * sections[i % 3]) streams[i] = (int64_t)(i % 3);
    return streams;
}

// The columns of a cache at the positions (3 x batch x length) of their streams.
std::string cache_of_streams(Nodes& n, const std::string& cache, const std::string& positions,
                             const std::vector<int64_t>& streams) {
    const int64_t columns = (int64_t)streams.size();
    std::vector<int64_t> order;  // of stream x column
    for (int64_t i = 0; i < columns; i++) order.push_back(streams[(size_t)i] * columns + i);
    const std::string all = n.transpose(n.add("Gather", {cache, positions}), {1, 2, 0, 3});
    return n.add("Gather", {n.reshape(all, {0, 0, -1}), n.ints(order)},
                 {{"axis", attribute_of((int64_t)-1)}});
}

// input, position_ids, cos_cache, sin_cache: rotary embeddings by three positions.
bool multimodal_rotary_embedding(Op& op) {
    if (!without(op, {{"is_packed_batching", -1, -1}})) return false;
    if (op.attr_float("scale", 1.f) != 1.f) return op.fail("scale");
    const std::vector<int64_t> sections = op.attr_ints("mrope_section");
    const Value *positions = op.in(1), *cache = op.in(2);
    int64_t columns = 0;
    for (int64_t size : sections) columns += size < 0 ? -columns - 1 : size;
    if (sections.size() != 3 || cache->rank() != 2 || !cache->shape[1].is(columns))
        return op.fail("mrope_section: expected 3 sizes that add up to the columns of the caches");
    if (positions->rank() != 3 || !positions->shape[0].is(3))
        return op.fail("position_ids: expected 3 x batch x length");
    Nodes n(op);
    const std::vector<int64_t> streams = streams_of(sections, op.attr("mrope_layout", 0) == 1);
    return rotary(op, "", cache_of_streams(n, n.in(2), n.in(1), streams),
                  cache_of_streams(n, n.in(3), n.in(1), streams), n);
}

// Queries and keys of GroupQueryAttention over their root mean squares, if it has weights for that.
bool norm_heads(Op& op, Nodes& n, Scores* s) {
    if (op.has(14) != op.has(15)) return op.fail("one of q_norm_weight and k_norm_weight alone");
    if (!op.has(14)) return true;
    const float epsilon = op.attr_float("qk_norm_epsilon", 1e-6f);
    const auto norm = [&](const std::string& x, int weights, const char* own) {
        return n.add("SimplifiedLayerNormalization", {x, n.in(weights)},
                     {{"epsilon", attribute_of(op.attr_float(own, epsilon))}});
    };
    s->q = norm(s->q, 14, "q_norm_epsilon"), s->k = norm(s->k, 15, "k_norm_epsilon");
    return n.ok();
}

// What GroupQueryAttention keeps of earlier calls. The caches may be longer than the keys in them
// (buffers that calls share), and items of a batch may have different numbers of keys: seqlens_k
// says how many an item has in the end, less 1. Where lengths are known only at run time and caches
// are of open length, all of a cache has to be keys, which keeps the usual case fast; a run checks.
struct Caches {
    bool any = false;      // there are earlier keys
    bool by_item = false;  // `past` is a number an item; else one scalar for all
    std::string past;      // of keys, before those of this call
    std::string rows;  // by_item: rows of [cache, new, zeros] that are an item's, batch x length
};

// The scalar `x`; a run in which caches have other lengths than it is an error. The layer's name is
// part of the message.
std::string if_full(Op& op, Nodes& n, const std::string& full, const std::string& x) {
    Value *condition = n.value(full), *v = n.value(x);
    if (!n.ok() || !condition || !v || condition->is_constant()) return x;
    op.c.note(
        "caches of open length have to be as long as seqlens_k and total_sequence_length say; a "
        "run checks. Give past_key and past_value sizes (--shape) for buffers that are longer, or "
        "for items of different lengths (GroupQueryAttention)");
    return n.emit("Select", [&](Op& layer) {
        const std::string from = layer.plain(v), flag = layer.plain(condition);
        if (from.empty() || flag.empty()) return false;
        ModelLayer& made = layer.emit("Select", {flag, from});
        made.name = op.c.unique(op.node.label() + "/past_key_is_as_long_as_seqlens_k_says");
        layer.set(0, v->type, v->shape, v->form, made.outputs[0]);
        return true;
    });
}

// The rows of an item's keys in [cache, new, zeros], whose lengths are buffer, steps and 1.
std::string rows_of_items(Nodes& n, const std::string& past, const std::string& buffer,
                          const std::string& steps, const std::string& total) {
    const std::string at = count_to(n, n.add("Max", {buffer, total}));
    const std::string since = n.add("Sub", {at, past});
    const std::string zero = n.constant(Tensor::of_ints({0}, true));
    const std::string is_new =
        n.add("And", {n.add("GreaterOrEqual", {since, zero}), n.add("Less", {since, steps})});
    const std::string is_old =
        n.add("And", {n.add("Less", {at, past}), n.add("Less", {at, buffer})});
    const std::string neither = n.add("Add", {buffer, steps});
    return n.add("Where",
                 {is_new, n.add("Add", {since, buffer}), n.add("Where", {is_old, at, neither})});
}

// Past and rows, which are the same for all layers of a decoder.
bool measure_caches(Op& op, Nodes& n, const std::string& q, Caches* c) {
    const auto scalar = [&](int64_t i) { return n.constant(Tensor::of_ints({i}, true)); };
    const std::string buffer = size_of(n, n.in(3), 2), steps = size_of(n, q, 2);
    const std::string lengths = n.reshape(n.cast(n.in(5), ElementType::kInt64), {-1});
    const std::string more = n.add("Sub", {scalar(1), steps});
    const std::string past = n.add("Max", {n.add("Add", {lengths, more}), scalar(0)});
    const std::string total = n.squeeze(n.reshape(n.cast(n.in(6), ElementType::kInt64), {-1}), {0});
    const std::string end = n.add("Add", {buffer, steps});
    const std::string off = n.add("ReduceMax", {n.add("Abs", {n.add("Sub", {past, buffer})})},
                                  {{"keepdims", attribute_of((int64_t)0)}});
    const std::string full =
        n.add("And", {n.add("Equal", {off, scalar(0)}), n.add("Equal", {total, end})});
    const Value* known = n.value(full);
    if (!n.ok() || !known) return false;
    const bool is_full = known->is_constant() && known->constant->int_at(0);
    c->by_item = known->is_constant() ? !is_full : op.in(3)->shape[2].known();
    if (!c->by_item) {
        c->past = if_full(op, n, full, buffer);
        return n.ok();
    }
    c->past = unsqueeze(n, past, {1});
    c->rows = rows_of_items(n, c->past, buffer, steps, total);
    return n.ok();
}

bool find_caches(Op& op, Nodes& n, const std::string& q, Caches* c) {
    if (!op.has(3) || op.in(3)->shape[2].is(0)) return true;
    if (!op.has(4) || !op.has(5) || !op.has(6))
        return op.fail("it lacks past_value, seqlens_k or total_sequence_length");
    c->any = true;
    const Dim buffer = op.in(3)->shape[2], steps = n.value(q)->shape[2];
    if (!same(buffer, buffer) || !same(steps, steps)) return measure_caches(op, n, q, c);
    const Symbols& symbols = op.c.symbols;
    const std::string key = "GroupQueryAttention " + n.in(5) + " " + n.in(6) + " " +
                            symbols.text(buffer) + " " + symbols.text(steps);
    std::vector<std::string>& made = op.c.shared_values[key];
    if (made.empty()) {
        if (!measure_caches(op, n, q, c)) return false;
        made = {c->past, c->rows};
    }
    c->past = made[0], c->rows = made[1];
    c->by_item = !c->rows.empty();
    return true;
}

// Earlier keys or values, and new ones: batch, heads, length, size.
std::string with_cache(Op& op, Nodes& n, const Caches& c, const std::string& cache,
                       const std::string& x) {
    if (!c.any) return x;
    const Attributes along = {{"axis", attribute_of((int64_t)2)}};
    const std::string all = n.add("Concat", {cache, x}, along);
    const Value* v = n.value(all);
    if (!c.by_item || !n.ok() || !v) return all;
    if (!v->shape[1].known() || !v->shape[3].known()) {
        op.fail("heads of unknown number or size");
        return "";
    }
    const int64_t heads = v->shape[1].value, size = v->shape[3].value;
    const std::string padded = n.add("Pad", {all, n.ints({0, 0, 0, 0, 0, 0, 1, 0}), n.scalar(0.f)});
    // Rows of all items and heads as one matrix.
    const std::string own = unsqueeze(n, count_to(n, size_of(n, all, 0)), {1});
    const std::string head =
        n.add("Add", {n.add("Mul", {own, n.ints({heads})}),
                      count_to(n, n.constant(Tensor::of_ints({heads}, true)))});
    const std::string first = n.add("Mul", {head, size_of(n, padded, 2)});
    const std::string rows = n.add("Add", {unsqueeze(n, first, {2}), unsqueeze(n, c.rows, {1})});
    return n.add("Gather", {n.reshape(padded, {-1, size}), rows});
}

// com.microsoft GroupQueryAttention: query, key, value, past_key, past_value, seqlens_k,
// total_sequence_length, cos_cache, sin_cache.
bool group_query_attention(Op& op) {
    const int64_t heads = op.attr("num_heads", 0), shared = op.attr("kv_num_heads", 0);
    if (heads < 1 || shared < 1 || op.in(0)->rank() != 3) return op.fail("num_heads, kv_num_heads");
    if (op.has(3) && op.in(3)->rank() != 4)
        return op.fail("a cache of rank %d, expected 4", op.in(3)->rank());
    if (!without(op, {{"sliding_window_cache", -1, -1},
                      {"k_scale", 12, -1},
                      {"v_scale", 13, -1},
                      {"query_seqlens", 16, -1},
                      {"output_qk", -1, 3}}))
        return false;
    Nodes n(op);
    std::string parts[3] = {n.in(0), n.in(1), n.in(2)};
    if (!op.has(1)) {
        const Dim width = op.in(0)->shape[2];
        if (!width.known()) return op.fail("heads of unknown size");
        const int64_t size = width.value / (heads + 2 * shared);
        const std::vector<std::string> split =
            n.add_many("Split", {n.in(0), n.ints({heads * size, shared * size, shared * size})},
                       {{"axis", attribute_of((int64_t)-1)}}, 3);
        for (int i = 0; i < 3; i++) parts[i] = split[i];
    }
    Scores s;
    s.q = split_heads(n, parts[0], heads);
    s.k = split_heads(n, parts[1], shared);
    s.v = split_heads(n, parts[2], shared);
    if (!n.ok() || !norm_heads(op, n, &s)) return false;
    Caches caches;
    if (!find_caches(op, n, s.q, &caches)) return false;
    s.offset = caches.by_item ? unsqueeze(n, caches.past, {2, 3}) : caches.past;
    if (op.attr("do_rotary", 0)) {
        Rotation r;
        r.cos = n.in(7), r.sin = n.in(8), r.interleaved = op.attr("rotary_interleaved", 0) == 1;
        const Value* cache = op.in(7);
        if (!cache || !op.has(8) || !cache->shape.back().known()) return op.fail("its caches");
        r.size = 2 * cache->shape.back().value;
        std::string at = count_to(n, size_of(n, s.q, 2));
        if (caches.any) at = n.add("Add", {at, caches.past});
        r.positions = op.has(9) ? n.in(9) : caches.by_item ? at : unsqueeze(n, at, {0});
        s.q = rotate(op, n, s.q, r), s.k = rotate(op, n, s.k, r);
        if (s.q.empty() || s.k.empty()) return false;  // a Concat would leave it out
    }
    s.k = with_cache(op, n, caches, n.in(3), s.k);
    s.v = with_cache(op, n, caches, n.in(4), s.v);
    const std::string k = s.k, v = s.v;
    s.scale = op.attr_float("scale", 0.f);
    s.softcap = op.attr_float("softcap", 0.f);
    s.causal = op.attr("causal", 1) != 0;
    if (op.has(11))
        s.sink = unsqueeze(n, n.in(11), {0, 2, 3});
    else if (op.attr("smooth_softmax", 0) == 1)
        s.sink = n.scalar(0.f);
    const int64_t window = op.attr("local_window_size", -1);
    if (window > 0) s.left = window - 1;
    if (op.has(10) && caches.by_item)
        return op.fail("attention_bias beside caches that are longer than their keys");
    if (op.has(10)) s.bias.push_back(n.in(10));
    return n.ok() && attend(op, n, &s) && n.set(0, join_heads(n, s.out)) && n.set(1, k) &&
           n.set(2, v);
}

}  // namespace

OpTable attention_ops() {
    const char* const ms = "com.microsoft";
    return {
        {"", "Attention", 23, 0, attention, "softmax in float32", 2},
        {"", "RotaryEmbedding", 23, 0, rotary_embedding, "", 3},
        {"ai.onnx.preview", "FlexAttention", 1, 0, flex_attention, "softmax in float32"},
        {ms, "Attention", 1, 0, float_attention,
         "no do_rotary or shared buffers; masks of rank 2, 3, or a length an item", 2},
        {ms, "QAttention", 1, 0, q_attention, "masks of rank 2, 3, or a length an item", 5},
        {ms, "MultiHeadAttention", 1, 0, multi_head_attention,
         "masks of rank 2, 3, or a length an item"},
        {ms, "DecoderMaskedMultiHeadAttention", 1, 0, decoder_masked_attention,
         "one beam; masks of rank 2, 3, or a length an item"},
        {ms, "GroupQueryAttention", 1, 0, group_query_attention,
         "caches of floats; of open length: as long as seqlens_k says"},
        {ms, "RotaryEmbedding", 1, 0, ms_rotary_embedding, "no scale", 3},
        {ms, "MRotaryEmbedding", 1, 0, multimodal_rotary_embedding, "no scale", 4},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
