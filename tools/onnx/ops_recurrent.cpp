// LSTM, GRU, RNN.
#include <string.h>
#include <algorithm>

#include "layer/common/onnxrecurrent.h"
#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

namespace {

int activation_of(std::string name) {
    static const char* const kNames[] = {
        "relu",       "tanh",        "sigmoid", "affine",   "leakyrelu", "thresholdedrelu",
        "scaledtanh", "hardsigmoid", "elu",     "softsign", "softplus"};
    std::transform(name.begin(), name.end(), name.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; });
    for (int i = 0; i < kNumOnnxActivations; i++)
        if (name == kNames[i]) return i;
    return -1;
}

struct Cell {
    const char* layer;
    int gates, functions;
    const char* variant;  // attribute of params id 4, "" if there is none
    bool has_cell;
};

bool set_activations(Op& op, const Cell& cell, int directions, ModelLayer* layer) {
    const auto found = op.node.attributes.find("activations");
    if (found != op.node.attributes.end() && !found->second.strings.empty()) {
        std::vector<int> types;
        for (const std::string& name : found->second.strings) {
            types.push_back(activation_of(name));
            if (types.back() < 0) return op.fail("activation %s", name.c_str());
        }
        if ((int)types.size() != cell.functions * directions)
            return op.fail("%zu activations", types.size());
        layer->set("activations", types);
    }
    const std::vector<float> alpha = op.attr_floats("activation_alpha");
    const std::vector<float> beta = op.attr_floats("activation_beta");
    if (!alpha.empty()) layer->set("activation_alpha", alpha);
    if (!beta.empty()) layer->set("activation_beta", beta);
    return true;
}

bool recurrent(Op& op, const Cell& cell) {
    Value *x = op.in(0), *w = op.in(1), *r = op.in(2), *b = op.in(3), *p = op.in(7);
    const std::string direction = op.attr_string("direction", "forward");
    const int kind = direction == "bidirectional" ? 2 : direction == "reverse" ? 1 : 0;
    const int directions = kind == 2 ? 2 : 1;
    if (x->rank() != 3 || w->rank() != 3 || r->rank() != 3 || !r->shape[2].known())
        return op.fail("an input of rank %d", x->rank());
    const int64_t hidden = op.attr("hidden_size", r->shape[2].value);
    const int layout = (int)op.attr("layout", 0);
    const bool dynamic = !w->is_constant() || !r->is_constant() || (b && !b->is_constant()) ||
                         (p && !p->is_constant());
    std::vector<std::string> from = {op.plain(x)};
    if (dynamic) {
        from.push_back(op.plain(w));
        from.push_back(op.plain(r));
        if (b) from.push_back(op.plain(b));
    }
    for (int i = 4; i <= (cell.has_cell ? 6 : 5); i++)
        if (op.has(i)) from.push_back(op.plain(op.in(i)));
    if (dynamic && p) from.push_back(op.plain(p));
    for (const std::string& blob : from)
        if (blob.empty()) return false;
    const int outputs = cell.has_cell ? 3 : 2;
    ModelLayer& layer = op.emit(cell.layer, from, 0, outputs);
    const std::vector<std::string> outs = layer.outputs;
    layer.set("hidden_size", (int)hidden);
    layer.set("direction", kind);
    layer.set("layout", layout);
    if (*cell.variant) layer.set(cell.variant, (int)op.attr(cell.variant, 0));
    layer.set("clip", op.attr_float("clip", 0.f));
    if (cell.has_cell && op.attr(kRoundInputs, 0)) layer.set("round_inputs", 1);
    // Weights of int8, whose scales come behind the inputs that LSTM has.
    const bool int8 = op.attr(kRoundInputs, 0) && op.has(8);
    if (int8) layer.set("int8_scale_term", 1);
    if (b) layer.set("bias_term", 1);
    if (cell.has_cell && p) layer.set("peephole", 1);
    if (op.has(4)) layer.set("sequence_lens", 1);
    if (op.has(5)) layer.set("initial_h", 1);
    if (cell.has_cell && op.has(6)) layer.set("initial_c", 1);
    if (!set_activations(op, cell, directions, &layer)) return false;
    if (dynamic) {
        layer.set("dynamic_weight", 1);
    } else {
        layer.set("weight_data_size", (int)w->constant->count());
        const std::pair<const char*, Value*> weights[] = {
            {"weight_data", w},
            {"recurrent_data", r},
            {"bias_data", b},
            {"peephole_data", p},
            {"weight_data_int8_scales", int8 ? op.in(8) : nullptr},
            {"recurrent_data_int8_scales", int8 ? op.in(9) : nullptr}};
        for (const auto& entry : weights) {
            if (!entry.second) continue;
            layer.set_weight(entry.first, entry.second->constant->weight());
            op.c.keep(*entry.second->constant);
        }
    }
    const Dim steps = x->shape[layout ? 1 : 0], batch = x->shape[layout ? 0 : 1];
    const std::vector<Dim> y = layout
                                   ? std::vector<Dim>{batch, steps, Dim(directions), Dim(hidden)}
                                   : std::vector<Dim>{steps, Dim(directions), batch, Dim(hidden)};
    const std::vector<Dim> state = layout ? std::vector<Dim>{batch, Dim(directions), Dim(hidden)}
                                          : std::vector<Dim>{Dim(directions), batch, Dim(hidden)};
    op.set(0, x->type, y, Form::plain(4), outs[0]);
    for (int i = 1; i < outputs; i++) op.set(i, x->type, state, Form::plain(3), outs[i]);
    return true;
}

bool lstm(Op& op) { return recurrent(op, {"OnnxLSTM", 4, 3, "input_forget", true}); }
bool gru(Op& op) { return recurrent(op, {"OnnxGRU", 3, 2, "linear_before_reset", false}); }
bool rnn(Op& op) { return recurrent(op, {"OnnxRNN", 1, 1, "", false}); }

}  // namespace

OpTable recurrent_ops() {
    return {
        {"", "LSTM", 7, 0, lstm, "", 3},
        {"", "GRU", 7, 0, gru, "", 3},
        {"", "RNN", 7, 0, rnn, "", 3},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
