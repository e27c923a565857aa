// Normalisation.
#include <math.h>
#include <algorithm>

#include "onnx/nodes.h"
#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

namespace {

bool all_constant(Op& op, int first) {
    for (int i = first; i < op.inputs(); i++)
        if (op.has(i) && !op.in(i)->is_constant()) return false;
    return true;
}

void set_weight(Op& op, ModelLayer* layer, const char* name, const Tensor& t) {
    layer->set_weight(name, t.weight());
    op.c.keep(t);
}

// A vector along axis 1 of a batched blob of that rank; "" after fail().
std::string along_channels(Op& op, Value* v, int rank) {
    Form form{true, {1}};
    std::vector<Dim> shape = {Dim(1), v->shape.empty() ? Dim(1) : v->shape[0]};
    for (int a = 2; a < rank; a++) shape.push_back(Dim(1)), form.groups.push_back(1);
    const std::string from = op.plain(v);
    if (from.empty()) return "";
    const std::string to = op.c.regroup(from, op.c.mat_dims(v->shape, Form::plain(v->rank())),
                                        op.c.mat_dims(shape, form), v->floats(), v->name);
    if (to.empty()) op.fail("%s", op.c.why.c_str());
    return to;
}

std::string binary(Op& op, int type, const std::string& a, const std::string& b) {
    ModelLayer& layer = op.emit("BinaryOp", {a, b});
    layer.set("op_type", type);
    return layer.outputs[0];
}

// (x - mean) / sqrt(var + eps) * scale + bias with inputs that are known at run time.
bool dynamic_batch_norm(Op& op, Value* x, float eps) {
    const int rank = x->rank();
    const std::string from = op.batched(x);
    std::string part[4];
    for (int i = 0; i < 4; i++) {
        part[i] = along_channels(op, op.in(i + 1), rank);
        if (part[i].empty()) return false;
    }
    if (from.empty()) return false;
    const std::string centred = binary(op, kSub, from, part[2]);
    ModelLayer& root = op.emit("UnaryOp", {scalar_op(op, part[3], kAdd, eps)});
    root.set("op_type", 5);
    const std::string normal = binary(op, kDiv, centred, root.outputs[0]);
    const std::string scaled = binary(op, kMul, normal, part[0]);
    op.set(0, x->type, x->shape, Form::batched(rank), binary(op, kAdd, scaled, part[1]));
    return true;
}

// With the mean and variance of the input itself. Exporters write weight standardization so.
bool batch_norm_of_itself(Op& op, float eps) {
    Nodes n(op);
    std::vector<int64_t> axes = {0}, spread;
    for (int64_t a = 2; a < op.in(0)->rank(); a++) axes.push_back(a), spread.push_back(a - 1);
    const auto along = [&](const std::string& v) {
        return spread.empty() ? v : n.add("Unsqueeze", {v, n.ints(spread)});
    };
    const std::string mean = n.add("ReduceMean", {n.in(0), n.ints(axes)});
    const std::string centred = n.add("Sub", {n.in(0), mean});
    const std::string variance =
        n.add("ReduceMean", {n.add("Mul", {centred, centred}), n.ints(axes)});
    const std::string root = n.add("Sqrt", {n.add("Add", {variance, n.scalar(eps)})});
    const std::string scaled = n.add("Mul", {n.add("Div", {centred, root}), along(n.in(1))});
    if (!n.set(0, n.add("Add", {scaled, along(n.in(2))}))) return false;
    const float momentum = op.attr_float("momentum", 0.9f);
    for (int i = 1; i < 3; i++) {
        if (!op.wants(i)) continue;
        const std::string now = n.reshape(i == 1 ? mean : variance, {-1});
        if (!n.set(i, n.add("Add", {n.add("Mul", {n.in(i + 2), n.scalar(momentum)}),
                                    n.add("Mul", {now, n.scalar(1.f - momentum)})})))
            return false;
    }
    return true;
}

bool batch_norm(Op& op) {
    Value* x = op.in(0);
    const float eps = op.attr_float("epsilon", 1e-5f);
    if (x->rank() < 2) return op.fail("rank %d", x->rank());
    const bool training = op.attr("training_mode", 0) != 0;
    if (training && op.opset >= 14) return batch_norm_of_itself(op, eps);
    if (training || op.wants(1)) return op.fail("training mode");
    for (int i = 1; i <= 4; i++)
        if (!op.has(i) || op.in(i)->rank() != 1 || !op.in(i)->floats())
            return op.fail("expected four vectors of float");
    if (!all_constant(op, 1)) return dynamic_batch_norm(op, x, eps);
    const size_t n = op.in(1)->constant->count();
    for (int i = 2; i <= 4; i++)
        if (op.in(i)->constant->count() != n) return op.fail("vectors of different lengths");
    const std::string from = op.batched(x);
    if (from.empty()) return false;
    ModelLayer& layer = op.emit("BatchNorm", {from});
    layer.set("channels", (int)n);
    layer.set("eps", eps);
    set_weight(op, &layer, "slope_data", *op.in(1)->constant);
    set_weight(op, &layer, "bias_data", *op.in(2)->constant);
    set_weight(op, &layer, "mean_data", *op.in(3)->constant);
    set_weight(op, &layer, "var_data", *op.in(4)->constant);
    op.set(0, x->type, x->shape, Form::batched(x->rank()), layer.outputs[0]);
    return true;
}

// Sizes c, h, w of a Mat for a tensor n c ..., all behind the channels together.
std::vector<Dim> channel_dims(Op& op, const Value* x) {
    return {x->shape[1], Dim(1), op.c.symbols.product({x->shape.begin() + 2, x->shape.end()})};
}

// A size that the model leaves open is that of the scale that goes with it; one of 1 may be spread.
void learn_size(Value* x, int axis, const Value* scale, int scale_axis) {
    const Dim& size = scale->shape[scale_axis];
    if (!x->shape[axis].known() && size.known() && size.value > 1) x->shape[axis] = size;
}

// GroupNorm and InstanceNorm work on any number of spatial axes; gamma and beta follow where they
// are no constants.
bool channel_norm(Op& op, const char* type, int groups, Value* scale, Value* bias, float eps) {
    Value* x = op.in(0);
    const int rank = x->rank();
    if (rank < 3) return op.fail("rank %d", rank);
    // InstanceNorm has a scale per channel; others spread one.
    if (!x->shape[1].known() && scale && scale->rank() == 1 && scale->shape[0].known())
        x->shape[1] = scale->shape[0];
    const Form own = rank == 4 ? Form::batched(4) : Form{true, {1, rank - 2}};
    std::string from = op.blob(x, own);
    if (from.empty()) return false;
    if (rank != 4) {
        from = op.c.regroup(from, op.c.mat_dims(x->shape, own), channel_dims(op, x), true, x->name);
        if (from.empty()) return op.fail("%s", op.c.why.c_str());
    }
    const bool constant = scale && bias && scale->is_constant() && bias->is_constant();
    ModelLayer& layer = op.emit(type, {from});
    layer.set("eps", eps);
    if (groups) layer.set("group", groups);
    layer.set("affine", constant ? 1 : 0);
    if (x->shape[1].known()) layer.set("channels", (int)x->shape[1].value);
    if (constant) {
        if (!x->shape[1].is((int64_t)scale->constant->count()) ||
            !x->shape[1].is((int64_t)bias->constant->count()))
            return op.fail("scale and bias are not one a channel");
        set_weight(op, &layer, "gamma_data", *scale->constant);
        set_weight(op, &layer, "beta_data", *bias->constant);
    }
    std::string out = layer.outputs[0];
    if (rank != 4)
        out = op.c.regroup(out, channel_dims(op, x), op.c.mat_dims(x->shape, own), true, x->name);
    if (!constant && scale && bias) {
        const std::string gamma = along_channels(op, scale, (int)own.groups.size() + 1);
        const std::string beta = along_channels(op, bias, (int)own.groups.size() + 1);
        if (gamma.empty() || beta.empty()) return false;
        out = binary(op, kAdd, binary(op, kMul, out, gamma), beta);
    }
    op.set(0, x->type, x->shape, own, out);
    return true;
}

bool instance_norm(Op& op) {
    return channel_norm(op, "InstanceNorm", 0, op.in(1), op.in(2), op.attr_float("epsilon", 1e-5f));
}

bool group_norm(Op& op) {
    Value *x = op.in(0), *scale = op.in(1), *bias = op.in(2);
    const int64_t groups = op.attr("num_groups", 1);
    if (groups < 1 || groups > 1 << 24) return op.fail("%lld groups", (long long)groups);
    if (scale->rank() != 1 || bias->rank() != 1)
        return op.fail("a scale and a bias of ranks %d and %d, expected vectors", scale->rank(),
                       bias->rank());
    if (x->rank() < 3) return op.fail("rank %d", x->rank());
    // Opset 18 had one scale per group.
    if (op.opset < 21 && !x->shape[1].known()) return op.fail("channels of unknown number");
    if (op.opset < 21 && scale->shape[0].known() && !scale->shape[0].is(x->shape[1].value)) {
        if (!scale->is_constant() || !bias->is_constant())
            return op.fail("a scale a group that is no constant");
        if (x->shape[1].value % groups != 0 || !scale->shape[0].is(groups) ||
            (int64_t)bias->constant->count() != groups)
            return op.fail("%lld groups of %lld channels, %lld scales and %lld biases",
                           (long long)groups, (long long)x->shape[1].value,
                           (long long)scale->shape[0].value, (long long)bias->constant->count());
        const int64_t each = x->shape[1].value / groups;
        Value* full[2];
        for (int k = 0; k < 2; k++) {
            const Tensor& t = *(k ? bias : scale)->constant;
            Tensor wide(ElementType::kFloat, {x->shape[1].value});
            for (size_t i = 0; i < wide.count(); i++) wide.set_float(i, t.float_at(i / each));
            full[k] = op.c.add_constant(op.c.unique_value("group_scale"), wide);
        }
        scale = full[0], bias = full[1];
    }
    return channel_norm(op, "GroupNorm", (int)groups, scale, bias, op.attr_float("epsilon", 1e-5f));
}

// A tensor of the normalised axes' shape as a blob that is spread over rows; "" after fail().
std::string as_row(Op& op, Value* v, const Form& rows) {
    const std::string name = op.blob(v, Form{false, {v->rank()}});
    if (name.empty() || rows.groups.size() < 2) return name;
    const Dim count = op.c.symbols.product(v->shape);
    const std::string to = op.c.regroup(name, {count}, {Dim(1), count}, true, v->name);
    if (to.empty()) op.fail("%s", op.c.why.c_str());
    return to;
}

// The scale or bias of the axes from `axis` on, spread over those that it has not. Null after
// fail().
Value* spread_over(Op& op, Value* v, const std::vector<Dim>& sizes) {
    if (!v || op.c.symbols.product(v->shape).is(op.c.symbols.product(sizes).value)) return v;
    if (!all_known(sizes)) {
        op.fail("a scale of other sizes than the normalised axes");
        return nullptr;
    }
    Nodes n(op);
    const std::string spread = n.add("Expand", {v->name, n.ints(values_of(sizes))});
    return n.ok() ? n.value(spread) : nullptr;
}

// A scale or bias that differs between rows: the norm without, then a product and a sum.
bool scaled_norm(Op& op, const char* type, const Value& x, const Value& scale, const Value* bias,
                 int axis, float eps) {
    const std::vector<Dim> sizes(x.shape.begin() + axis, x.shape.end());
    if (!all_known(sizes)) return op.fail("normalised axes of unknown size");
    Tensor ones(ElementType::kFloat, values_of(sizes));
    for (size_t i = 0; i < ones.count(); i++) ones.set_float(i, 1.f);
    Nodes n(op);
    std::string y = n.add(type, {x.name, n.constant(ones)},
                          {{"axis", attribute_of((int64_t)axis)}, {"epsilon", attribute_of(eps)}});
    y = n.add("Mul", {y, scale.name});
    return n.set(0, bias ? n.add("Add", {y, bias->name}) : y);
}

// LayerNorm and RMSNorm over all axes from `axis` on.
bool row_norm(Op& op, const char* type, Value* x, Value* scale, Value* bias, int64_t first_axis,
              float eps) {
    int axis = 0;
    if (!op.axis(first_axis, x->rank(), &axis)) return false;
    for (int a = axis; scale && a < x->rank() && scale->rank() == x->rank() - axis; a++)
        learn_size(x, a, scale, a - axis);
    const Dim size = op.c.symbols.product({x->shape.begin() + axis, x->shape.end()});
    if (!size.known()) return op.fail("normalised axes of unknown size");
    const std::vector<Dim> normalised(x->shape.begin() + axis, x->shape.end());
    const int most = (int)normalised.size();
    if (scale && (scale->rank() > most || (bias && bias->rank() > most)))
        return scaled_norm(op,
                           std::string(type) == "LayerNorm" ? "LayerNormalization"
                                                            : "SimplifiedLayerNormalization",
                           *x, *scale, bias, axis, eps);
    for (Value** v : {&scale, &bias})
        if (*v && !(*v = spread_over(op, *v, normalised))) return false;
    const bool batch = x->form.batch && axis > 0;
    Form form{batch, {}};
    const int lead = axis - (batch ? 1 : 0);
    const bool at_run_time = (scale && !scale->is_constant()) || (bias && !bias->is_constant());
    if (!at_run_time && x->form.batch == batch && x->form.separate() && axis == x->rank() - 1 &&
        x->form.groups.size() <= 3 && !x->form.groups.empty()) {
        form = x->form;
    } else {
        if (lead > 0) form.groups.push_back(lead);
        form.groups.push_back(x->rank() - axis);
    }
    const std::string from = op.blob(x, form);
    if (from.empty()) return false;
    const bool layer_norm = std::string(type) == "LayerNorm";
    const bool full = scale && (int64_t)op.c.symbols.product(scale->shape).value == size.value;
    const bool constant = scale && full && scale->is_constant() && (!bias || bias->is_constant());
    ModelLayer& layer = op.emit(type, {from});
    layer.set("affine_size", (int)size.value);
    layer.set("eps", eps);
    layer.set("affine", constant ? 1 : 0);
    if (constant) {
        set_weight(op, &layer, "gamma_data", *scale->constant);
        Tensor beta(ElementType::kFloat, {size.value});
        if (bias && bias->constant->count() == beta.count()) beta = *bias->constant;
        if (layer_norm) set_weight(op, &layer, "beta_data", beta);
    }
    std::string out = layer.outputs[0];
    if (!constant) {
        for (int type : {kMul, kAdd}) {  // scale and bias may be one value
            Value* v = type == kMul ? scale : bias;
            if (!v) continue;
            if (form.groups.size() > 2) return op.fail("a scale that is no constant");
            const std::string row = as_row(op, v, form);
            if (row.empty()) return false;
            out = binary(op, type, out, row);
        }
    }
    op.set(0, x->type, x->shape, form, out);
    return true;
}

// Mean and 1 / sqrt(variance + eps) of LayerNormalization.
bool row_statistics(Op& op, Value* x, int64_t first_axis, float eps) {
    int axis = 0;
    if (!op.axis(first_axis, x->rank(), &axis)) return false;
    Form form{false, {}};
    if (axis > 0) form.groups.push_back(axis);
    form.groups.push_back(x->rank() - axis);
    const std::string from = op.blob(x, form);
    if (from.empty()) return false;
    std::vector<Dim> shape = x->shape;
    std::fill(shape.begin() + axis, shape.end(), Dim(1));
    const auto mean_of = [&](const std::string& blob, int operation) {
        ModelLayer& mean = op.emit("Reduction", {blob});
        mean.set("operation", operation);
        mean.set("reduce_all", 0);
        mean.set("axes", std::vector<int>{(int)form.groups.size() - 1});
        mean.set("keepdims", 1);
        mean.set("fixbug0", 1);
        return mean.outputs[0];
    };
    const std::string mean = mean_of(from, 3);
    op.set(1, ElementType::kFloat, shape, form, mean);
    if (!op.wants(2)) return true;
    ModelLayer& square = op.emit("UnaryOp", {binary(op, kSub, from, mean)});
    square.set("op_type", 4);
    ModelLayer& root =
        op.emit("UnaryOp", {scalar_op(op, mean_of(square.outputs[0], 3), kAdd, eps)});
    root.set("op_type", 6);
    op.set(2, ElementType::kFloat, shape, form, root.outputs[0]);
    return true;
}

bool layer_norm(Op& op) {
    const float eps = op.attr_float("epsilon", 1e-5f);
    const int64_t axis = op.attr("axis", -1);
    if (!row_norm(op, "LayerNorm", op.in(0), op.in(1), op.in(2), axis, eps)) return false;
    return (!op.wants(1) && !op.wants(2)) || row_statistics(op, op.in(0), axis, eps);
}

bool rms_norm(Op& op) {
    return row_norm(op, "RMSNorm", op.in(0), op.in(1), nullptr, op.attr("axis", -1),
                    op.attr_float("epsilon", 1e-5f));
}

// com.microsoft: (input + skip + bias) normalised; the sum is output 3.
bool skip_norm(Op& op, bool simplified) {
    Value *x = op.in(0), *skip = op.in(1), *scale = op.in(2);
    Value *beta = simplified ? nullptr : op.in(3), *bias = op.in(simplified ? 3 : 4);
    Broadcast b;
    std::vector<Value*> all = {x, skip};
    if (bias) all.push_back(bias);
    if (op.wants(1) || op.wants(2)) return op.fail("outputs for training");
    if (!broadcast(op, all, &b)) return false;
    std::string sum = binary(op, kAdd, b.blobs[0], b.blobs[1]);
    if (bias) sum = binary(op, kAdd, sum, b.blobs[2]);
    Value* total = op.c.add_value(op.c.unique_value(op.node.label() + "_sum"));
    total->type = x->type, total->shape = b.shape, total->form = b.form;
    total->blobs[{0, b.form}] = sum;
    op.set(3, x->type, b.shape, b.form, sum);
    return row_norm(op, simplified ? "RMSNorm" : "LayerNorm", total, scale, beta, -1,
                    op.attr_float("epsilon", 1e-5f));
}
bool skip_layer_norm(Op& op) { return skip_norm(op, false); }
bool skip_rms_norm(Op& op) { return skip_norm(op, true); }

bool lrn(Op& op) {
    Value* x = op.in(0);
    const int64_t size = op.attr("size", 1);
    if (x->rank() < 3 || x->rank() > 4 || size < 1 || size > 32768)
        return op.fail("rank %d, size %lld", x->rank(), (long long)size);
    const std::string from = op.batched(x);
    if (from.empty()) return false;
    if (x->rank() == 3) return op.fail("rank 3");
    if (size % 2 == 0) return op.fail("an even size");
    ModelLayer& layer = op.emit("LRN", {from});
    layer.set("local_size", (int)size);
    layer.set("alpha", op.attr_float("alpha", 1e-4f));
    layer.set("beta", op.attr_float("beta", 0.75f));
    layer.set("bias", op.attr_float("bias", 1.f));
    op.set(0, x->type, x->shape, Form::batched(4), layer.outputs[0]);
    return true;
}

}  // namespace

OpTable norm_ops() {
    return {
        {"", "BatchNormalization", 1, 0, batch_norm, "training mode from opset 14 on", 5},
        {"", "InstanceNormalization", 1, 0, instance_norm, "", 3, kOpNormalizes},
        {"", "GroupNormalization", 18, 0, group_norm, "", 3, kOpNormalizes},
        {"", "LayerNormalization", 1, 0, layer_norm, "normalised axes of known size", 2,
         kOpNormalizes},
        {"", "SimplifiedLayerNormalization", 1, 0, rms_norm, "", 2},
        {"", "RMSNormalization", 23, 0, rms_norm, "", 2, kOpNormalizes},
        {"com.microsoft", "SkipLayerNormalization", 1, 0, skip_layer_norm, "", 3},
        {"com.microsoft", "SkipSimplifiedLayerNormalization", 1, 0, skip_rms_norm, "", 3},
        {"", "LRN", 1, 0, lrn, "images, odd sizes"},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
