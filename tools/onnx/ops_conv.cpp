// Convolutions.
#include <algorithm>

#include "onnx/window.h"

namespace quoll {
namespace onnx_tool {

namespace {

const char* const kSuffix[] = {"", "1D", "", "3D"};

// Weights and bias into the layer, or as inputs of it.
void conv_weights(Op& op, const Tensor& weight, Value* bias, ModelLayer* layer) {
    layer->set("weight_data_size", (int)weight.count());
    layer->set_weight("weight_data", weight.weight());
    op.c.keep(weight);
    if (!bias) return;
    layer->set("bias_term", 1);
    layer->set_weight("bias_data", bias->constant->weight());
    op.c.keep(*bias->constant);
}

void set_padding(const Window& w, ModelLayer* layer) {
    if (w.auto_pad == Window::kSameUpper || w.auto_pad == Window::kSameLower)
        layer->set("pad_left", w.auto_pad == Window::kSameUpper ? -233 : -234);
    else
        w.set_pads(layer);
}

// Layers pad along d as SAME_UPPER in both modes, as ncnn does.
bool resolve_depth(Op& op, const Value* x, Window* w) {
    if (w->axes != 3 || w->auto_pad != Window::kSameLower) return true;
    resolve_same(x, true, w);
    const bool even = w->stride[0] == 1 && w->extent(0) % 2 == 1;  // whatever the size
    return w->auto_pad == Window::kExplicit || even ||
           op.fail("auto_pad SAME_LOWER of sizes that are known only at run time");
}

void set_output_pads(const std::vector<int64_t>& pads, ModelLayer* layer) {
    static const char* const kNames[] = {"output_pad_right", "output_pad_bottom",
                                         "output_pad_behind"};
    for (size_t i = 0; i < pads.size(); i++) layer->set(kNames[i], (int)pads[pads.size() - 1 - i]);
}

// Weights that are inputs.
bool emit_dynamic(Op& op, const std::string& type, const char* flag, const Window& w, int64_t group,
                  const std::vector<Dim>& shape, const std::vector<int64_t>* output_pads) {
    const bool volume = w.axes == 3;  // whose weights have an axis for both channel counts
    if (volume && !shape[1].known()) return op.fail("an unknown number of output channels");
    std::vector<std::string> from = {
        op.batched(op.in(0)),
        volume ? op.blob(op.in(1), Form{false, {2, 1, 1, 1}}) : op.plain(op.in(1))};
    if (op.has(2)) from.push_back(op.plain(op.in(2)));
    for (const std::string& blob : from)
        if (blob.empty()) return false;
    ModelLayer& layer = op.emit(type.c_str(), from);
    if (shape[1].known()) layer.set("num_output", (int)shape[1].value);
    w.set_sizes(&layer, true);
    set_padding(w, &layer);
    if (output_pads) set_output_pads(*output_pads, &layer);
    layer.set(flag, 1);
    if (from.size() > 2) layer.set("bias_term", 1);
    if (group > 1) layer.set("group", (int)group);
    op.set(0, op.in(0)->type, shape, Form::batched((int)shape.size()), layer.outputs[0]);
    return true;
}

bool bias_is_usable(Op& op, Value* bias, const Dim& outputs) {
    if (!bias || (bias->rank() == 1 && (same(bias->shape[0], outputs) || !outputs.known())))
        return true;
    return op.fail("a bias of another size than the outputs");
}

bool conv(Op& op) {
    Value *x = op.in(0), *weight = op.in(1), *bias = op.in(2);
    const int64_t group = op.attr("group", 1);
    if (weight->rank() != x->rank() || x->rank() < 3)
        return op.fail("ranks %d and %d", x->rank(), weight->rank());
    Window w;
    const std::vector<Dim> spatial(weight->shape.begin() + 2, weight->shape.end());
    if (!op.has_attr("kernel_shape") && !all_known(spatial))
        return op.fail("kernel sizes are not known");
    if (!read_window(op, x, all_known(spatial) ? values_of(spatial) : std::vector<int64_t>(), &w) ||
        !resolve_depth(op, x, &w))
        return false;
    std::vector<Dim> shape = x->shape;
    shape[1] = weight->shape[0];
    for (int a = 0; a < w.axes; a++) shape[a + 2] = window_size(op, w, a, x->shape[a + 2], false);
    for (size_t a = 2; a < shape.size(); a++)
        if (shape[a].known() && shape[a].value < 1)
            return op.fail("a window larger than the input");
    if (!bias_is_usable(op, bias, shape[1])) return false;
    if (group < 1 || (shape[1].known() && shape[1].value % group != 0))
        return op.fail("%lld groups", (long long)group);
    const std::string kind = group > 1 ? "ConvolutionDepthWise" : "Convolution";
    if (!weight->is_constant() || (bias && !bias->is_constant()))
        return emit_dynamic(op, kind + kSuffix[w.axes], "dynamic_weight", w, group, shape, nullptr);
    if (x->shape[1].known() && weight->shape[1].value * group != x->shape[1].value)
        return op.fail("weights for %lld channels, the input has %lld",
                       (long long)(weight->shape[1].value * group), (long long)x->shape[1].value);
    const std::string from = op.batched(x);
    if (from.empty()) return false;
    ModelLayer& layer = op.emit((kind + kSuffix[w.axes]).c_str(), {from});
    layer.set("num_output", (int)shape[1].value);
    w.set_sizes(&layer, true);
    set_padding(w, &layer);
    if (group > 1) layer.set("group", (int)group);
    conv_weights(op, *weight->constant, bias, &layer);
    op.set(0, x->type, shape, Form::batched(x->rank()), layer.outputs[0]);
    return true;
}

// ONNX keeps weights of transposed convolutions as [in][out / group]...; layers want
// [group][out / group][in / group]...
Tensor deconv_weight(const Tensor& t, int64_t group) {
    std::vector<int64_t> dims = {group, t.dims[0] / group};
    dims.insert(dims.end(), t.dims.begin() + 1, t.dims.end());
    std::vector<int> perm = {0, 2, 1};
    for (int a = 3; a < (int)dims.size(); a++) perm.push_back(a);
    return t.reshaped(dims).transposed(perm);
}

struct DeconvPads {
    std::vector<int64_t> out;  // output_padding
    std::vector<Dim> sizes;    // of the output
};

// Resolves output_shape and auto_pad into pads.
bool deconv_pads(Op& op, const Value* x, Window* w, DeconvPads* d) {
    d->out = op.attr_ints("output_padding");
    if (d->out.empty()) d->out.assign((size_t)w->axes, 0);
    const std::vector<int64_t> wanted = op.attr_ints("output_shape");
    const size_t axes = (size_t)w->axes;
    if (d->out.size() != axes || (!wanted.empty() && wanted.size() != axes))
        return op.fail("%zu values of output_padding and %zu of output_shape for %zu axes",
                       d->out.size(), wanted.size(), axes);
    Symbols& s = op.c.symbols;
    for (int a = 0; a < w->axes; a++) {
        const Dim in = x->shape[a + 2];
        const Dim full = s.add(s.multiply(s.subtract(in, Dim(1)), Dim(w->stride[a])),
                               Dim(w->extent(a) + d->out[a]));
        const bool same_size =
            w->auto_pad == Window::kSameUpper || w->auto_pad == Window::kSameLower;
        if (wanted.empty() && !same_size) {
            d->sizes.push_back(s.subtract(full, Dim(w->before[a] + w->behind[a])));
            continue;
        }
        const Dim goal = wanted.empty() ? s.multiply(in, Dim(w->stride[a])) : Dim(wanted[a]);
        const Dim total = s.subtract(full, goal);
        if (!total.known()) return op.fail("output_shape of an input of unknown size");
        const int64_t pads = std::max<int64_t>(0, total.value);
        // The rule of the operator's definition: SAME_UPPER has the smaller half in front.
        w->before[a] = w->auto_pad == Window::kSameUpper ? pads / 2 : pads - pads / 2;
        w->behind[a] = pads - w->before[a];
        if (total.value < 0) d->out[a] -= total.value;
        d->sizes.push_back(goal);
    }
    w->auto_pad = Window::kExplicit;
    return true;
}

bool conv_transpose(Op& op) {
    Value *x = op.in(0), *weight = op.in(1), *bias = op.in(2);
    const int64_t group = op.attr("group", 1);
    if (weight->rank() != x->rank() || x->rank() < 3)
        return op.fail("ranks %d and %d", x->rank(), weight->rank());
    Window w;
    DeconvPads d;
    const std::vector<Dim> spatial(weight->shape.begin() + 2, weight->shape.end());
    if (!all_known(spatial)) return op.fail("kernel sizes are not known");
    if (!read_window(op, x, values_of(spatial), &w) || !deconv_pads(op, x, &w, &d)) return false;
    std::vector<Dim> shape = x->shape;
    shape[1] = op.c.symbols.multiply(weight->shape[1], Dim(group));
    for (int a = 0; a < w.axes; a++) shape[a + 2] = d.sizes[a];
    for (int64_t v : d.out)
        if (v < 0 || v > 1 << 24) return op.fail("an output_padding of %lld", (long long)v);
    if (!bias_is_usable(op, bias, shape[1])) return false;
    const bool dynamic = !weight->is_constant() || (bias && !bias->is_constant());
    const std::string kind = group > 1 ? "DeconvolutionDepthWise" : "Deconvolution";
    if (dynamic)
        return emit_dynamic(op, kind + kSuffix[w.axes], "dynamic_weight", w, group, shape, &d.out);
    if (group < 1 || weight->shape[0].value % group != 0)
        return op.fail("%lld groups", (long long)group);
    const std::string from = op.batched(x);
    if (from.empty()) return false;
    ModelLayer* layer = &op.emit((kind + kSuffix[w.axes]).c_str(), {from});
    layer->set("num_output", (int)shape[1].value);
    w.set_sizes(layer, true);
    w.set_pads(layer);
    set_output_pads(d.out, layer);
    if (group > 1) layer->set("group", (int)group);
    conv_weights(op, deconv_weight(*weight->constant, group), bias, layer);
    op.set(0, x->type, shape, Form::batched(x->rank()), layer->outputs[0]);
    return true;
}

}  // namespace

OpTable conv_ops() {
    return {
        {"", "Conv", 1, 0, conv, "1 to 3 spatial axes", 2},
        {"", "ConvTranspose", 1, 0, conv_transpose, "1 to 3 spatial axes", 2},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
