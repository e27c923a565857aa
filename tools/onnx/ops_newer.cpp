// Operators of opsets 27 on, and those of com.microsoft they come from, that are written in terms
// of others.
#include <math.h>

#include "onnx/nodes.h"
#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

namespace {

bool swiglu(Op& op) {
    Nodes n(op);
    const float alpha = op.attr_float("alpha", 1.f);
    const std::string gate = alpha == 1.f ? n.in(0) : n.add("Mul", {n.in(0), n.scalar(alpha)});
    return n.set(0, n.add("Mul", {n.add("Mul", {n.in(0), n.add("Sigmoid", {gate})}), n.in(1)}));
}

// input, weight, bias, past_state: a depthwise convolution that sees the past alone.
bool causal_conv(Op& op) {
    const Value *x = op.in(0), *w = op.in(1);
    if (x->rank() != 3 || w->rank() != 3 || !w->shape[2].known() || !x->shape[1].known())
        return op.fail("rank %d, or a kernel of unknown size", x->rank());
    const int64_t past = w->shape[2].value - 1;
    Nodes n(op);
    std::string padded = n.in(0);
    if (op.has(3) && past > 0)
        padded = n.add("Concat", {n.in(3), padded}, {{"axis", attribute_of((int64_t)2)}});
    else if (past > 0)
        padded = n.add("Pad", {padded, n.ints({0, 0, past, 0, 0, 0})});
    std::vector<std::string> inputs = {padded, n.in(1)};
    if (op.has(2)) inputs.push_back(n.in(2));
    std::string out = n.add("Conv", inputs, {{"group", attribute_of(x->shape[1].value)}});
    const std::string activation = op.attr_string("activation", "none");
    if (activation == "silu" || activation == "swish")
        out = n.add("Mul", {out, n.add("Sigmoid", {out})});
    else if (activation != "none")
        return op.fail("activation %s", activation.c_str());
    if (!n.set(0, out)) return false;
    if (!op.wants(1)) return true;
    if (past == 0) {
        if (!all_known(x->shape)) return op.fail("the state of a kernel of size 1");
        return op.set_constant(1, Tensor(x->type, {x->shape[0].value, x->shape[1].value, 0})) !=
               nullptr;
    }
    return n.set(1, n.slice(padded, 2, -past, INT32_MAX));
}

struct Recurrence {
    int64_t steps = 0, q_heads = 0, kv_heads = 0;
    float scale = 0;
    std::string q, k, v, decay, beta, state;  // batch, heads, steps, size
};

// The rows of one step: batch, heads, 1, size.
std::string step_of(Nodes& n, const std::string& x, int64_t i) { return n.slice(x, 2, i, i + 1); }

// state = exp(decay) state + k^T (beta (v - k state)); the output is scale * q state.
bool recur(Nodes& n, Recurrence* r, std::vector<std::string>* rows) {
    std::vector<int64_t> heads;
    for (int64_t h = 0; h < r->q_heads; h++) heads.push_back(h / (r->q_heads / r->kv_heads));
    for (int64_t i = 0; i < r->steps && n.ok(); i++) {
        const std::string k = step_of(n, r->k, i), column = n.transpose(k, {0, 1, 3, 2});
        std::string v = step_of(n, r->v, i);
        if (!r->decay.empty()) {
            const std::string kept = n.add("Exp", {step_of(n, r->decay, i)});
            r->state = n.add("Mul", {r->state, n.transpose(kept, {0, 1, 3, 2})});
        }
        if (!r->beta.empty()) {
            const std::string error = n.add("Sub", {v, n.add("MatMul", {k, r->state})});
            v = n.add("Mul", {step_of(n, r->beta, i), error});
        }
        r->state = n.add("Add", {r->state, n.add("MatMul", {column, v})});
        const std::string read =
            r->q_heads == r->kv_heads
                ? r->state
                : n.add("Gather", {r->state, n.ints(heads)}, {{"axis", attribute_of((int64_t)1)}});
        rows->push_back(n.add("MatMul", {step_of(n, r->q, i), read}));
    }
    return n.ok();
}

// query, key, value, past_state, decay, beta.
bool linear_attention(Op& op) {
    Recurrence r;
    r.q_heads = op.attr("q_num_heads", 0), r.kv_heads = op.attr("kv_num_heads", 0);
    const int64_t most = 256;
    for (int i = 0; i < 3; i++)
        if (op.in(i)->rank() != 3 || !all_known(op.in(i)->shape))
            return op.fail("input %d: rank 3 and known sizes are expected", i);
    if (r.kv_heads < 1 || r.q_heads < 1 || r.q_heads % r.kv_heads != 0)
        return op.fail("q_num_heads, kv_num_heads");
    r.steps = op.in(0)->shape[1].value;
    if (r.steps > most)
        return op.fail("%lld steps, more than %lld", (long long)r.steps, (long long)most);
    Nodes n(op);
    const auto heads = [&](int i, int64_t count) {
        return n.transpose(n.reshape(n.in(i), {0, 0, count, -1}), {0, 2, 1, 3});
    };
    r.q = heads(0, r.q_heads), r.k = heads(1, r.kv_heads), r.v = heads(2, r.kv_heads);
    const int64_t size = op.in(0)->shape[2].value / r.q_heads;
    if (op.has(4)) r.decay = heads(4, r.kv_heads);
    if (op.has(5)) r.beta = heads(5, op.in(5)->shape.back().is(1) ? 1 : r.kv_heads);
    const float scale = op.attr_float("scale", 0.f);
    r.state = n.in(3);
    if (r.state.empty())
        r.state =
            n.constant(Tensor(ElementType::kFloat, {op.in(0)->shape[0].value, r.kv_heads, size,
                                                    op.in(2)->shape[2].value / r.kv_heads}));
    std::vector<std::string> rows;
    if (!n.ok() || !recur(n, &r, &rows)) return false;
    std::string out =
        rows.size() == 1 ? rows[0] : n.add("Concat", rows, {{"axis", attribute_of((int64_t)2)}});
    out = n.add("Mul", {out, n.scalar(scale == 0.f ? 1.f / sqrtf((float)size) : scale)});
    return n.set(0, n.reshape(n.transpose(out, {0, 2, 1, 3}), {0, 0, -1})) && n.set(1, r.state);
}

// Whether com.microsoft's form of an operator asks for nothing that ONNX's does not have; false
// after op.fail().
bool is_plain(Op& op, const std::map<std::string, int64_t>& defaults) {
    for (const auto& one : defaults)
        if (op.attr(one.first.c_str(), one.second) != one.second)
            return op.fail("%s %lld", one.first.c_str(), (long long)op.attr(one.first.c_str(), 0));
    return true;
}

bool ms_causal_conv(Op& op) {
    if (!is_plain(op, {{"ndim", 1},
                       {"dilation", 1},
                       {"channels_last", 0},
                       {"state_window", 0},
                       {"state_length", 0},
                       {"state_channels_last", -1},
                       {"input_channels", 0},
                       {"input_channel_offset", 0},
                       {"state_update_capacity", 0}}))
        return false;
    return causal_conv(op);
}

bool ms_linear_attention(Op& op) {
    return is_plain(op, {{"state_window", 0}}) && linear_attention(op);
}

// a, dt_bias, decay_scale, b: decay_scale * softplus(a + dt_bias), and sigmoid(b).
bool linear_attention_gate(Op& op) {
    if (op.wants(1) && !op.has(3)) return op.fail("it lacks input 3");
    Nodes n(op);
    const std::string steps = n.add("Softplus", {n.add("Add", {n.in(0), n.in(1)})});
    if (!n.set(0, n.add("Mul", {steps, n.in(2)}))) return false;
    return !op.wants(1) || n.set(1, n.add("Sigmoid", {n.in(3)}));
}

// X, scale, gate: the root mean square of each group of as many values as scale has.
bool gated_rms_norm(Op& op) {
    const Value *x = op.in(0), *scale = op.in(1);
    if (x->rank() < 1 || scale->rank() != 1 || !scale->shape[0].known() || scale->shape[0].is(0))
        return op.fail("rank %d, %d of the scale", x->rank(), scale->rank());
    const bool whole = same(x->shape.back(), scale->shape[0]);
    const std::string type = op.attr_string("activation", "silu");
    if (type != "silu" && type != "swish" && type != "sigmoid")
        return op.fail("activation %s", type.c_str());
    Nodes n(op);
    const std::string sizes = n.add("Shape", {n.in(0)});
    std::string y = whole ? n.in(0) : n.reshape(n.in(0), {-1, scale->shape[0].value});
    y = n.add("SimplifiedLayerNormalization", {y, n.in(1)},
              {{"epsilon", attribute_of(op.attr_float("epsilon", 1e-5f))}});
    if (!whole) y = n.add("Reshape", {y, sizes});
    std::string gate = n.add("Sigmoid", {n.in(2)});
    if (type != "sigmoid") gate = n.add("Mul", {n.in(2), gate});
    return n.set(0, n.add("Mul", {y, gate}));
}

}  // namespace

OpTable newer_ops() {
    const char* const ms = "com.microsoft";
    return {
        {"", "SwiGLU", 27, 0, swiglu, "", 2},
        {"", "CausalConvWithState", 27, 0, causal_conv, "kernels of known size", 2},
        {"", "LinearAttention", 27, 0, linear_attention, "known sizes, at most 256 steps; unrolled",
         3},
        {ms, "CausalConvWithState", 1, 0, ms_causal_conv,
         "one spatial axis, channels first, no dilation or window of states; kernels of known size",
         2},
        {ms, "LinearAttention", 1, 0, ms_linear_attention,
         "no window of states; known sizes, at most 256 steps; unrolled", 3},
        {ms, "LinearAttentionGate", 1, 0, linear_attention_gate, "", 3},
        {ms, "GatedRMSNorm", 1, 0, gated_rms_norm, "", 3},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
