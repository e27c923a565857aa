// Pooling.
#include <algorithm>

#include "layer/nn/windowpool.h"
#include "onnx/nodes.h"
#include "onnx/window.h"

namespace quoll {
namespace onnx_tool {

namespace {

const char* const kPooling[] = {"", "Pooling1D", "Pooling", "Pooling3D"};

// Sizes of the output; false when a window does not fit.
bool pooled_shape(Op& op, const Value* x, const Window& w, bool ceil_mode,
                  std::vector<Dim>* shape) {
    *shape = x->shape;
    for (int a = 0; a < w.axes; a++) {
        Dim& d = (*shape)[a + 2];
        d = window_size(op, w, a, x->shape[a + 2], ceil_mode);
        if (d.known() && d.value < 1) return op.fail("a window larger than the input");
    }
    return true;
}

std::vector<int> both(const Window& w) {
    std::vector<int64_t> pads = w.before;
    pads.insert(pads.end(), w.behind.begin(), w.behind.end());
    return to_ints(pads);
}

// The layer with ncnn's semantics says the same: no dilation, no SAME, no ceiling of averages.
bool is_plain(const Window& w, bool average, bool ceil_mode, const std::vector<Dim>& in,
              const std::vector<Dim>& out) {
    for (int a = 0; a < w.axes; a++) {
        if (w.dilation[a] != 1 || w.before[a] >= w.kernel[a] || w.behind[a] >= w.kernel[a])
            return false;
        if (!ceil_mode) continue;
        // Full mode adds a tail; it must be one that ONNX has, too.
        if (average || !in[a + 2].known() || !out[a + 2].known()) return false;
        const int64_t room = in[a + 2].value + w.before[a] + w.behind[a] - w.kernel[a];
        if (room < 0 || (room + w.stride[a] - 1) / w.stride[a] + 1 != out[a + 2].value)
            return false;
    }
    return w.auto_pad == Window::kExplicit || w.auto_pad == Window::kValid;
}

bool pool(Op& op, int type) {
    Value* x = op.in(0);
    Window w;
    if (!op.has_attr("kernel_shape")) return op.fail("no kernel_shape");
    if (!read_window(op, x, {}, &w)) return false;
    // In SAME modes the number of windows is known without it.
    const bool ceil_mode = op.attr("ceil_mode", 0) == 1 && w.auto_pad != Window::kSameUpper &&
                           w.auto_pad != Window::kSameLower;
    resolve_same(x, false, &w);
    const bool average = type == 2, count_pad = op.attr("count_include_pad", 0) != 0;
    std::vector<Dim> shape;
    if (!pooled_shape(op, x, w, ceil_mode, &shape)) return false;
    const std::string from = op.batched(x);
    if (from.empty()) return false;
    const Form form = Form::batched(x->rank());
    if (!op.wants(1) && type != 3 &&
        (x->floats() || (type == 0 && x->type == ElementType::kInt8)) &&
        is_plain(w, average, ceil_mode, x->shape, shape)) {
        ModelLayer& layer = op.emit(kPooling[w.axes], {from});
        layer.set("pooling_type", average ? 1 : 0);
        layer.set("pad_mode", ceil_mode ? 0 : 1);
        Window sizes = w;
        sizes.set_sizes(&layer, false);
        sizes.set_pads(&layer);
        if (average) layer.set("avgpool_count_include_pad", count_pad ? 1 : 0);
        op.set(0, x->type, shape, form, layer.outputs[0]);
        return true;
    }
    ModelLayer& layer = op.emit("WindowPool", {from}, 0, op.wants(1) ? 2 : 1);
    layer.set("op_type", type);
    layer.set("kernel", to_ints(w.kernel));
    layer.set("strides", to_ints(w.stride));
    layer.set("dilations", to_ints(w.dilation));
    layer.set("pads", both(w));
    layer.set("ceil_mode", ceil_mode ? 1 : 0);
    layer.set("auto_pad", (int)w.auto_pad);
    if (average) layer.set("count_include_pad", count_pad ? 1 : 0);
    if (type == 3) layer.set("p", (int)op.attr("p", 2));
    if (type == 0) layer.set("storage_order", (int)op.attr("storage_order", 0));
    const std::vector<std::string> outs = layer.outputs;
    op.set(0, x->type, shape, form, outs[0]);
    if (op.wants(1)) op.set(1, ElementType::kInt64, shape, form, outs[1]);
    return true;
}
bool max_pool(Op& op) { return pool(op, 0); }
bool average_pool(Op& op) { return pool(op, 2); }
bool lp_pool(Op& op) { return pool(op, 3); }

// Over all of a channel; the axes stay with size 1.
bool global_pool(Op& op, int pooling_type) {
    Value* x = op.in(0);
    const int axes = x->rank() - 2;
    if (axes < 1 || axes > 3) return op.fail("%d spatial axes, expected 1 to 3", axes);
    const std::string from = op.batched(x);
    if (from.empty()) return false;
    ModelLayer& layer = op.emit(kPooling[axes], {from});
    layer.set("pooling_type", pooling_type);
    layer.set("global_pooling", 1);
    std::vector<Dim> shape = x->shape;
    std::fill(shape.begin() + 2, shape.end(), Dim(1));
    // The layer gives one axis of channels.
    const Form form{true, {axes + 1}};
    op.set(0, x->type, shape, form, layer.outputs[0]);
    return true;
}
bool global_max_pool(Op& op) { return global_pool(op, 0); }
bool global_average_pool(Op& op) { return global_pool(op, 1); }

// As operators of ONNX.
bool global_power_pool(Op& op, int64_t p) {
    Nodes n(op);
    std::vector<int64_t> axes;
    for (int64_t a = 2; a < op.in(0)->rank(); a++) axes.push_back(a);
    const std::string powers = n.add("Pow", {n.add("Abs", {n.in(0)}), n.scalar((float)p)});
    const std::string sum = n.add("ReduceSum", {powers, n.ints(axes)});
    return n.set(0, n.add("Pow", {sum, n.scalar(1.f / (float)p)}));
}

// (sum of |x|^p)^(1/p)
bool global_lp_pool(Op& op) {
    Value* x = op.in(0);
    const int64_t p = op.attr("p", 2);
    const int axes = x->rank() - 2;
    if (axes < 1 || p < 1) return op.fail("rank %d, p of %lld", x->rank(), (long long)p);
    if (p > 2 || axes > 3) return global_power_pool(op, p);
    const std::string from = op.batched(x);
    if (from.empty()) return false;
    ModelLayer& layer = op.emit("Reduction", {from});
    layer.set("operation", p == 1 ? 7 : 8);
    layer.set("reduce_all", 0);
    std::vector<int> all;
    for (int a = 1; a <= axes; a++) all.push_back(a);
    layer.set("axes", all);
    layer.set("keepdims", 1);
    layer.set("fixbug0", 1);
    std::vector<Dim> shape = x->shape;
    std::fill(shape.begin() + 2, shape.end(), Dim(1));
    op.set(0, x->type, shape, Form::batched(x->rank()), layer.outputs[0]);
    return true;
}

// Whether they are the places that a MaxPool of the model gives.
bool made_by_max_pool(const Op& op, const Value* places) {
    const auto blob = places->blobs.find({0, places->form});
    const int maker = blob == places->blobs.end() ? -1 : op.c.model.producer(blob->second);
    return maker >= 0 && op.c.model.layers[(size_t)maker].is<WindowPool>();
}

bool max_unpool(Op& op) {
    Value *x = op.in(0), *at = op.in(1);
    Window w;
    if (!read_window(op, x, {}, &w)) return false;
    std::vector<Dim> shape = x->shape;
    std::vector<std::string> from = {op.batched(x), op.batched(at)};
    Symbols& s = op.c.symbols;
    for (int a = 0; a < w.axes; a++)
        shape[a + 2] = s.add(s.multiply(s.subtract(x->shape[a + 2], Dim(1)), Dim(w.stride[a])),
                             Dim(w.kernel[a] - w.before[a] - w.behind[a]));
    // Places of a MaxPool count in its input, whose shape is given back; those that come from
    // elsewhere in the size that follows from the window, as in the operator's own example.
    Value* const given = op.has(2) && made_by_max_pool(op, at) ? op.in(2) : nullptr;
    if (given) {
        if (given->rank() != 1 || (given->has_content && (int)given->content.size() != x->rank()))
            return op.fail("output_shape of another length than %d", x->rank());
        shape.assign((size_t)x->rank(), Dim());
        if (given->has_content) shape = given->content;
        shape[0] = x->shape[0];
        from.push_back(op.plain(given));
    }
    for (const std::string& blob : from)
        if (blob.empty()) return false;
    ModelLayer& layer = op.emit("MaxUnpool", from);
    layer.set("kernel", to_ints(w.kernel));
    layer.set("strides", to_ints(w.stride));
    layer.set("pads", both(w));
    std::string out = layer.outputs[0];
    if (op.has(2) && !given) {
        // The rest is filled up.
        std::vector<int64_t> sizes;
        if (!op.ints(2, "output_shape", &sizes)) return false;
        if ((int)sizes.size() != x->rank() || !all_known(shape) || w.axes != 2)
            return op.fail("output_shape of %zu axes", sizes.size());
        const int64_t down = sizes[2] - shape[2].value, right = sizes[3] - shape[3].value;
        if (down < 0 || right < 0) return op.fail("an output_shape that cuts");
        ModelLayer& border = op.emit("Padding", {out});
        border.set("bottom", (int)down);
        border.set("right", (int)right);
        out = border.outputs[0];
        shape = dims_of(sizes);
    }
    op.set(0, x->type, shape, Form::batched(x->rank()), out);
    return true;
}

// One region of one image; the name of what comes out. "" after op.fail().
std::string pool_region(Op& op, Nodes& n, const std::string& image, const std::string& corners) {
    if (!n.ok()) return "";
    Value *x = n.value(image), *region = n.value(corners);
    const std::vector<int64_t> size = op.attr_ints("pooled_shape");
    const std::string from = op.batched(x), at = op.blob(region, Form{false, {2}});
    if (from.empty() || at.empty()) return "";
    ModelLayer& layer = op.emit("ROIPooling", {from, at});
    layer.set("pooled_height", (int)size[0]);
    layer.set("pooled_width", (int)size[1]);
    layer.set("spatial_scale", op.attr_float("spatial_scale", 1.f));
    layer.set("exact_bins", 1);
    Value* out = op.c.add_value(op.c.unique_value(op.node.label() + "/region"));
    out->type = x->type, out->form = Form::batched(4);
    out->shape = {Dim(1), x->shape[1], Dim(size[0]), Dim(size[1])};
    out->blobs[{0, out->form}] = layer.outputs[0];
    return out->name;
}

// X, regions of 5 numbers: the image's index, left, top, right, bottom.
bool max_roi_pool(Op& op) {
    const int64_t most = 256;
    const Value *x = op.in(0), *rois = op.in(1);
    const std::vector<int64_t> size = op.attr_ints("pooled_shape");
    if (size.size() != 2 || size[0] < 1 || size[1] < 1 || x->rank() != 4 || rois->rank() != 2)
        return op.fail("ranks %d and %d, pooled_shape", x->rank(), rois->rank());
    const Dim count = rois->shape[0];
    if (!count.known() || count.value < 1 || count.value > most)
        return op.fail("an unknown number of regions, or more than %lld", (long long)most);
    Nodes n(op);
    std::vector<std::string> made;
    for (int64_t r = 0; r < count.value; r++) {
        const std::string region = n.slice(n.in(1), 0, r, r + 1);
        std::string image = n.in(0);
        if (!x->shape[0].is(1)) {
            const std::string index = n.reshape(n.slice(region, 1, 0, 1), {1});
            image = n.add("Gather", {image, n.cast(index, ElementType::kInt64)});
        }
        made.push_back(pool_region(op, n, image, n.slice(region, 1, 1, 5)));
        if (made.back().empty()) return false;
    }
    return n.set(0, made.size() == 1 ? made[0]
                                     : n.add("Concat", made, {{"axis", attribute_of((int64_t)0)}}));
}

}  // namespace

OpTable pool_ops() {
    const char* const axes = "1 to 3 spatial axes";
    return {
        {"", "MaxPool", 1, 0, max_pool, axes, 1, kOpMovesValues},
        {"", "AveragePool", 1, 0, average_pool, axes},
        {"", "LpPool", 2, 0, lp_pool, axes},
        {"", "GlobalMaxPool", 1, 0, global_max_pool, axes},
        {"", "GlobalAveragePool", 1, 0, global_average_pool, axes},
        {"", "GlobalLpPool", 2, 0, global_lp_pool, ""},
        {"", "MaxUnpool", 9, 0, max_unpool, axes, 2},
        {"", "MaxRoiPool", 1, 0, max_roi_pool, "a known number of regions, at most 256", 2},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
