// Borders around a tensor.
#include <math.h>

#include <algorithm>

#include "onnx/nodes.h"
#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

namespace {

// Wrapping, of at most the whole axis, by cutting parts off and joining them.
std::string wrapped_border(Op& op, const std::string& from, int mat_axis, int64_t before,
                           int64_t behind) {
    std::vector<std::string> parts;
    const auto cut = [&](int64_t start, int64_t end) {
        ModelLayer& layer = op.emit("StridedSlice", {from});
        layer.set("starts", to_ints({start}));
        layer.set("ends", to_ints({end}));
        layer.set("axes", std::vector<int>{mat_axis});
        return layer.outputs[0];
    };
    if (before > 0) parts.push_back(cut(-before, 2147483647));
    parts.push_back(from);
    if (behind > 0) parts.push_back(cut(0, behind));
    ModelLayer& layer = op.emit("Concat", parts);
    layer.set("axis", mat_axis);
    return layer.outputs[0];
}

// One axis of a border of any form: a Mat of outer, axis, inner. last: the Padding of an earlier
// axis of the two innermost ones, or null; it takes this one too where that is such.
std::string pad_axis(Op& op, const std::string& from, const std::vector<Dim>& dims, int mat_axis,
                     int64_t before, int64_t behind, const std::string& mode, float value,
                     ModelLayer** last) {
    if (mode == "wrap") return wrapped_border(op, from, mat_axis, before, behind);
    const int place = (int)dims.size() - 1 - mat_axis;  // 0: w, 1: h, 2: d or c
    const bool joins = place < 2 && *last && (*last)->outputs[0] == from;
    ModelLayer& layer = joins ? **last : op.emit("Padding", {from});
    *last = place < 2 ? &layer : nullptr;
    static const char* const kBefore[] = {"left", "top", "front"};
    static const char* const kBehind[] = {"right", "bottom", "behind"};
    layer.set(kBefore[place], (int)before);
    layer.set(kBehind[place], (int)behind);
    layer.set("type", mode == "edge" ? 1 : mode == "reflect" ? 2 : 0);
    if (mode == "constant") layer.set("value", value);
    return layer.outputs[0];
}

// The one value that borders have; false if it is known only at run time, or an integer that a
// float may not hold.
bool fill_value(Op& op, float* value) {
    const float kMostWhole = (float)(1 << 24);
    float fill = 0.f;
    if (!op.has(2)) return true;
    if (!uniform(op.in(2), &fill) || (!op.in(2)->floats() && fabsf(fill) >= kMostWhole))
        return false;
    *value = fill;
    return true;
}

// Border widths that are known only at run time: along each axis the values at the indexes -before
// to size + behind - 1, as the mode maps them into the tensor. Negative widths cut.
bool pad_at_run_time(Op& op, std::vector<int64_t> axes, const std::string& mode) {
    const Value *x = op.in(0), *pads = op.in(1);
    const int rank = x->rank();
    if (axes.empty())
        for (int a = 0; a < rank; a++) axes.push_back(a);
    const int64_t count = (int64_t)axes.size();
    if (pads->rank() != 1 || (pads->shape[0].known() && pads->shape[0].value != 2 * count))
        return op.fail("expected %lld pads", (long long)(2 * count));
    const auto is_zero = [&](int64_t i) {
        return pads->has_content && i < (int64_t)pads->content.size() &&
               pads->content[(size_t)i].is(0);
    };
    Nodes n(op);
    const std::string zero = n.constant(Tensor::of_ints({0}, true)),
                      one = n.constant(Tensor::of_ints({1}, true));
    const std::string sizes = n.cast(n.add("Shape", {n.in(0)}), ElementType::kInt64);
    const auto element = [&](const std::string& list, int64_t i) {
        return n.add("Gather", {list, n.constant(Tensor::of_ints({i}, true))});
    };
    const std::string widths = n.cast(n.in(1), ElementType::kInt64);
    std::string now = n.in(0);
    float value = 0.f;
    const bool known_fill = fill_value(op, &value);
    Tensor number(x->type, {});
    if (is_float(x->type))
        number.set_float(0, value);
    else
        number.set_int(0, (int64_t)value);
    const std::string fill = n.constant(number);
    for (int64_t i = 0; i < count && n.ok(); i++) {
        int axis = 0;
        if (!op.axis(axes[(size_t)i], rank, &axis)) return false;
        if (is_zero(i) && is_zero(i + count)) continue;
        const std::string size = element(sizes, axis), last = n.add("Sub", {size, one});
        const std::string from = n.add("Sub", {zero, element(widths, i)});
        const std::string to = n.add("Add", {size, element(widths, i + count)});
        const std::string at = n.add("Range", {from, to, one});
        const auto along = [&](const std::string& indexes) {
            return n.add("Gather", {now, indexes}, {{"axis", attribute_of((int64_t)axis)}});
        };
        if (mode != "constant") {
            std::string mapped = at;
            if (mode != "edge") {
                // Periodically, or reflected, within what negative widths leave.
                const std::string begin = n.add("Max", {from, zero}),
                                  end = n.add("Min", {to, size});
                const std::string top = n.add("Sub", {n.add("Sub", {end, begin}), one});
                const std::string period =
                    n.add("Max", {n.add("Add", {top, mode == "wrap" ? one : top}), one});
                std::string within = n.add("Mod", {n.add("Sub", {at, begin}), period});
                if (mode == "reflect")
                    within = n.add("Sub", {top, n.add("Abs", {n.add("Sub", {top, within})})});
                mapped = n.add("Add", {begin, within});
            }
            now = along(n.add("Max", {n.add("Min", {mapped, last}), zero}));
            continue;
        }
        // What is outside is found behind the last index, in a border of one.
        std::vector<int64_t> border(2 * (size_t)rank, 0);
        border[(size_t)(rank + axis)] = 1;
        now = n.add("Pad", {now, n.ints(border), fill});
        now = along(n.add("Where", {n.add("Less", {at, zero}), size, n.add("Min", {at, size})}));
        if (known_fill) continue;
        std::vector<int64_t> shape((size_t)rank, 1);
        shape[(size_t)axis] = -1;
        const std::string inside =
            n.add("And", {n.add("GreaterOrEqual", {at, zero}), n.add("Less", {at, size})});
        now = n.add("Where", {n.reshape(inside, shape), now, n.reshape(n.in(2), {})});
    }
    return n.set(0, now);
}

bool pad(Op& op) {
    Value* x = op.in(0);
    std::vector<int64_t> pads, axes;
    float value = op.attr_float("value", 0.f);
    const std::string mode = op.attr_string("mode", "constant");
    if (op.opset < 11) {
        pads = op.attr_ints("pads");
    } else {
        if (op.has(3) && !op.ints(3, "axes", &axes)) return false;
        const Value* given = op.in(1);
        const bool known =
            given->is_constant() || (given->has_content && all_known(given->content));
        if (!known || !fill_value(op, &value)) return pad_at_run_time(op, axes, mode);
        if (!op.ints(1, "pads", &pads)) return false;
    }
    if (axes.empty())
        for (int a = 0; a < x->rank(); a++) axes.push_back(a);
    if (pads.size() != 2 * axes.size())
        return op.fail("%zu pads for %zu axes", pads.size(), axes.size());
    // Borders that may go round the axis more than once.
    for (size_t i = 0; i < axes.size() && mode == "wrap" && op.opset >= 11; i++) {
        int axis = 0;
        if (!op.axis(axes[i], x->rank(), &axis)) return false;
        const int64_t before = pads[i], behind = pads[i + axes.size()];
        const int64_t cut = std::min<int64_t>(before, 0) + std::min<int64_t>(behind, 0);
        const int64_t most = std::max(before, behind);
        const Dim& size = x->shape[axis];
        if (most > 0 && (!size.known() || most > size.value + cut))
            return pad_at_run_time(op, axes, mode);
    }
    Value part;
    part.name = op.node.outputs[0], part.type = x->type;
    Value* now = x;
    ModelLayer* last = nullptr;
    for (size_t i = 0; i < axes.size(); i++) {
        int axis = 0;
        if (!op.axis(axes[i], x->rank(), &axis)) return false;
        const int64_t before = pads[i], behind = pads[i + axes.size()];
        if (before == 0 && behind == 0) continue;
        if (std::max(before, behind) > 1 << 30 || std::min(before, behind) < -(1 << 30))
            return op.fail("pads of %lld and %lld", (long long)before, (long long)behind);
        int mat_axis = 0;
        Form form = op.axis_form(now, axis, &mat_axis);
        // Padding has no place for a fourth axis, and reflects along the two innermost ones.
        const int inner = (int)form.groups.size() - 1 - mat_axis;
        if (inner == 3 || (inner == 2 && mode == "reflect")) {
            form.groups.resize((size_t)mat_axis + 1);
            form.groups.push_back(x->rank() - axis - 1);
        }
        std::string blob = op.blob(now, form);
        if (blob.empty()) return false;
        std::vector<Dim> shape = now->shape;
        if (before < 0 || behind < 0) {  // negative pads cut
            ModelLayer& cut = op.emit("StridedSlice", {blob});
            cut.set("starts", to_ints({std::max<int64_t>(0, -before)}));
            cut.set("ends", to_ints({behind < 0 ? behind : 2147483647}));
            cut.set("axes", std::vector<int>{mat_axis});
            blob = cut.outputs[0];
            shape[axis] = op.c.symbols.add(
                shape[axis], Dim(std::min<int64_t>(before, 0) + std::min<int64_t>(behind, 0)));
        }
        const int64_t more = std::max<int64_t>(before, 0) + std::max<int64_t>(behind, 0);
        if (more > 0)
            blob = pad_axis(op, blob, op.c.mat_dims(shape, form), mat_axis,
                            std::max<int64_t>(before, 0), std::max<int64_t>(behind, 0), mode, value,
                            &last);
        shape[axis] = op.c.symbols.add(shape[axis], Dim(more));
        part.shape = shape, part.form = form;
        part.blobs.clear();
        part.blobs[{0, form}] = blob;
        now = &part;
    }
    if (now == x) {
        op.alias(0, x);
        return true;
    }
    op.set(0, x->type, part.shape, part.form, part.blobs[{0, part.form}]);
    return true;
}

}  // namespace

OpTable pad_ops() { return {{"", "Pad", 1, 0, pad, "", RequiredInputs(2, 11)}}; }

}  // namespace onnx_tool
}  // namespace quoll
