// DeformConv: DeformableConv2D layers, one for each part of the channels that has offsets or
// weights of its own.
#include <numeric>

#include "onnx/nodes.h"
#include "onnx/window.h"

namespace quoll {
namespace onnx_tool {

namespace {

struct Deformation {
    Window window;
    std::vector<Dim> shape;  // of the output
};

// One layer over values of those names; the name of its output. "" after op.fail().
std::string deform(Op& op, Nodes& n, const Deformation& d, const std::string& x,
                   const std::string& weight, const std::string& offset, const std::string& mask) {
    if (!n.ok()) return "";
    // Parts of constants are none while a node of constants alone is tried as one
    // (Converter::fold).
    if (!n.value(weight)->is_constant()) {
        op.fail("parts of weights that are no constants");
        return "";
    }
    std::vector<std::string> from = {op.batched(n.value(x)), op.batched(n.value(offset))};
    if (!mask.empty()) from.push_back(op.batched(n.value(mask)));
    for (const std::string& blob : from)
        if (blob.empty()) return "";
    const Tensor& w = *n.value(weight)->constant;
    ModelLayer& layer = op.emit("DeformableConv2D", from);
    layer.set("num_output", (int)w.dims[0]);
    d.window.set_sizes(&layer, true);
    d.window.set_pads(&layer);
    layer.set("weight_data_size", (int)w.count());
    layer.set_weight("weight_data", w.weight());
    op.c.keep(w);
    Value* out = op.c.add_value(op.c.unique_value(op.node.label() + "/part"));
    out->type = op.in(0)->type, out->form = Form::batched(4);
    out->shape = d.shape;
    out->shape[1] = Dim(w.dims[0]);
    out->blobs[{0, out->form}] = layer.outputs[0];
    return out->name;
}

// X, W, offset, B, mask.
bool deform_conv(Op& op) {
    const Value *x = op.in(0), *w = op.in(1);
    const int64_t groups = op.attr("group", 1), fields = op.attr("offset_group", 1);
    if (x->rank() != 4 || w->rank() != 4 || !op.has(2)) return op.fail("rank %d", x->rank());
    if (!w->is_constant() || !x->shape[1].known()) return op.fail("weights that are no constants");
    const int64_t channels = x->shape[1].value, outputs = w->constant->dims[0];
    if (groups < 1 || fields < 1 || channels % groups != 0 || channels % fields != 0 ||
        outputs % groups != 0 || w->constant->dims[1] != channels / groups)
        return op.fail("%lld groups and %lld offset groups of %lld channels", (long long)groups,
                       (long long)fields, (long long)channels);
    Deformation d;
    if (!read_window(op, x, {w->constant->dims[2], w->constant->dims[3]}, &d.window)) return false;
    d.shape = x->shape;
    for (int a = 0; a < 2; a++)
        d.shape[a + 2] = window_size(op, d.window, a, x->shape[a + 2], false);
    // Parts of the channels that share weights and offsets.
    const int64_t parts = std::lcm(groups, fields), per_group = parts / groups;
    const int64_t taps = d.window.kernel[0] * d.window.kernel[1], each = channels / parts;
    Nodes n(op);
    const auto cut = [&](const std::string& v, int64_t axis, int64_t size, int64_t p, int64_t of) {
        return of > 1 ? n.slice(v, axis, p * size, (p + 1) * size) : v;
    };
    std::vector<std::string> made;
    for (int64_t p = 0; p < parts; p++) {
        const int64_t group = p / per_group, field = p * fields / parts;
        const std::string mask = op.has(4) ? cut(n.in(4), 1, taps, field, fields) : "";
        const std::string rows = cut(n.in(1), 0, outputs / groups, group, groups);
        const std::string part = deform(op, n, d, cut(n.in(0), 1, each, p, parts),
                                        cut(rows, 1, each, p % per_group, per_group),
                                        cut(n.in(2), 1, 2 * taps, field, fields), mask);
        if (part.empty()) return false;
        if (p % per_group == 0)
            made.push_back(part);
        else
            made.back() = n.add("Add", {made.back(), part});
    }
    std::string out = made[0];
    if (groups > 1) out = n.add("Concat", made, {{"axis", attribute_of((int64_t)1)}});
    if (op.has(3)) out = n.add("Add", {out, n.add("Unsqueeze", {n.in(3), n.ints({1, 2})})});
    return n.set(0, out);
}

}  // namespace

OpTable deform_ops() {
    return {{"", "DeformConv", 19, 0, deform_conv, "2 spatial axes, constant weights", 3}};
}

}  // namespace onnx_tool
}  // namespace quoll
