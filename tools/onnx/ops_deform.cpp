// DeformConv: DeformableConv2D layers, one for each part of the channels that has offsets or
// weights of its own.
#include <algorithm>

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
    const int64_t channels = x->shape[1].value, outputs = w->constant->dims[0],
                  parts = std::max(groups, fields);
    if (groups < 1 || fields < 1 || (groups > 1 && fields > 1) || channels % parts != 0 ||
        outputs % groups != 0)
        return op.fail("%lld groups and %lld offset groups", (long long)groups, (long long)fields);
    Deformation d;
    if (!read_window(op, x, {w->constant->dims[2], w->constant->dims[3]}, &d.window)) return false;
    d.shape = x->shape;
    for (int a = 0; a < 2; a++)
        d.shape[a + 2] = window_size(op, d.window, a, x->shape[a + 2], false);
    const int64_t taps = d.window.kernel[0] * d.window.kernel[1], each = channels / parts;
    Nodes n(op);
    std::vector<std::string> made;
    for (int64_t p = 0; p < parts; p++) {
        const auto part = [&](const std::string& v, int64_t axis, int64_t size, bool cut) {
            return cut ? n.slice(v, axis, p * size, (p + 1) * size) : v;
        };
        const std::string mask = op.has(4) ? part(n.in(4), 1, taps, fields > 1) : "";
        const std::string weight = groups > 1 ? part(n.in(1), 0, outputs / groups, true)
                                              : part(n.in(1), 1, each, fields > 1);
        made.push_back(deform(op, n, d, part(n.in(0), 1, each, parts > 1), weight,
                              part(n.in(2), 1, 2 * taps, fields > 1), mask));
        if (made.back().empty()) return false;
    }
    std::string out = made[0];
    if (groups > 1) out = n.add("Concat", made, {{"axis", attribute_of((int64_t)1)}});
    for (size_t i = 1; i < made.size() && groups == 1; i++) out = n.add("Add", {out, made[i]});
    if (op.has(3)) out = n.add("Add", {out, n.add("Unsqueeze", {n.in(3), n.ints({1, 2})})});
    return n.set(0, out);
}

}  // namespace

OpTable deform_ops() {
    return {{"", "DeformConv", 19, 0, deform_conv,
             "2 spatial axes, constant weights; groups or offset groups, not both"}};
}

}  // namespace onnx_tool
}  // namespace quoll
