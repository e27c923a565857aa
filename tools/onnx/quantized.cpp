#include "onnx/quantized.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include <algorithm>

#include "layer/nn/convolution.h"
#include "layer/nn/deconvolution.h"
#include "layer/nn/innerproduct.h"
#include "layer/quantize/affine.h"
#include "onnx/block_weights.h"
#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

namespace {

bool is_int8(ElementType type) { return type == ElementType::kInt8 || type == ElementType::kUint8; }

bool usable_scale(float scale) { return scale > 1e-30f && scale < 1e30f; }

Mat one_value(float value) {
    Mat m(1);
    m[0] = value;
    return m;
}

// An int8 value of the converter's own.
Value* add_int8(Op& op, const std::vector<Dim>& shape, const Form& form, const std::string& blob) {
    Value* v = op.c.add_value(op.c.unique_value(op.node.label() + "_int8"));
    v->type = ElementType::kInt8, v->shape = shape, v->form = form;
    v->blobs[{0, form}] = blob;
    return v;
}

// A quantised value as int8: u8 ones get a twin that is less by 128. Null if that fails.
Value* as_int8(Op& op, Value* x) {
    if (x->type == ElementType::kInt8) return x;
    if (Value* twin = x->coded.empty() ? nullptr : op.c.find_value(x->coded)) return twin;
    const std::string from = op.blob(x);
    if (from.empty()) return nullptr;
    ModelLayer& cast = op.c.emit("CastTo", {from}, x->name + "_float");
    cast.set("to", 0);
    const std::string floats = cast.outputs[0];
    ModelLayer& layer = op.c.emit("AffineQuantize", {floats}, x->name + "_int8");
    layer.set("zero_point", -128);
    Value* twin = add_int8(op, x->shape, x->form, layer.outputs[0]);
    x->coded = twin->name;
    return twin;
}

// The node's output is `q`, as int8 or as uint8.
bool publish(Op& op, ElementType type, Value* q) {
    if (type == ElementType::kInt8) return op.alias(0, q) != nullptr;
    const std::string from = op.blob(q);
    if (from.empty()) return false;
    ModelLayer& layer = op.c.emit("AffineDequantize", {from}, op.node.outputs[0] + "_float");
    layer.set("zero_point", -128);
    const std::string floats = layer.outputs[0];
    ModelLayer& cast = op.emit("CastTo", {floats});
    cast.set("to", cast_code(type));
    Value* out = op.set(0, type, q->shape, q->form, cast.outputs[0]);
    if (out) out->coded = q->name;
    return out != nullptr;
}

// Converts a node whose outputs have names of their own; null if that fails.
Value* convert(Converter& c, const Node& node) {
    const OpEntry* entry = find_op(node.domain, node.op, c.opset(node.domain));
    Op op(c, node, c.opset(node.domain));
    if (!entry || !op.convert(*entry)) return nullptr;
    return c.find_value(node.outputs[0]);
}

void set_top(ModelLayer* layer, const AffineScale& top) {
    layer->set("top_zero_point", top.zero);
    if (layer->is<AffineBinary>()) {
        layer->set("top_scale", top.scale);
        return;
    }
    layer->set("int8_scale_term", 101);
    layer->set_weight("top_blob_int8_scales", one_value(1.f / top.scale));
}

ModelLayer& emit_copy(Op& op, const ModelLayer& layer) {
    ModelLayer& made = op.emit(layer.type.c_str(), layer.inputs);
    made.params = layer.params;
    made.weights = layer.weights;
    return made;
}

ModelLayer requantize(const AffineScale& from, const std::string& blob) {
    ModelLayer layer;
    layer.type = "AffineBinary";
    layer.inputs = {blob};
    layer.set("a_scale", from.scale);
    layer.set("a_zero_point", from.zero);
    return layer;
}

// A Concat of int8 values of the same scale.
Value* concat_int8(Op& op, const Node& concat, const AffineScale& top) {
    Node node = concat;
    for (std::string& name : node.inputs) {
        const Value* x = op.c.find_value(name);
        Value* q = x && x->quantized ? op.c.find_value(x->quantized->q) : nullptr;
        if (!q) return nullptr;
        if (!(x->quantized->affine == top)) {
            const std::string from = op.blob(q);
            if (from.empty()) return nullptr;
            ModelLayer& layer = emit_copy(op, requantize(x->quantized->affine, from));
            set_top(&layer, top);
            q = add_int8(op, q->shape, q->form, layer.outputs[0]);
        }
        name = q->name;
    }
    node.outputs = {op.c.unique_value(op.node.label() + "_int8")};
    return convert(op.c, node);
}

// The int8 value that QuantizeLinear makes of x. Null after fail().
Value* quantized(Op& op, Value* x, const AffineScale& top) {
    if (x->quantized && x->quantized->affine == top)
        if (Value* q = op.c.find_value(x->quantized->q)) return q;
    if (x->int8_source && x->int8_source->concat) {
        Value* q = concat_int8(op, *x->int8_source->concat, top);
        if (q) op.c.count("int8: Concat");
        if (q) return q;
    } else if (x->int8_source) {
        const Int8Source source = *x->int8_source;
        ModelLayer& layer = emit_copy(op, source.layer);
        set_top(&layer, top);
        if (layer.is<AffineBinary>()) op.c.count("int8: Add, Mul and activations");
        return add_int8(op, x->shape, source.form, layer.outputs[0]);
    }
    const std::string from = op.blob(x);
    if (from.empty()) return nullptr;
    ModelLayer& layer = op.emit("AffineQuantize", {from});
    layer.set("scale", top.scale);
    layer.set("zero_point", top.zero);
    return add_int8(op, x->shape, op.form_of(x), layer.outputs[0]);
}

}  // namespace

bool read_affine(Op& op, ElementType type, AffineScale* affine) {
    const Value *scale = op.in(1), *zero = op.in(2);
    const auto single = [](const Value* v) {
        return v->is_constant() && v->constant->count() == 1;
    };
    if (!is_int8(type) || !scale || !single(scale) || !scale->floats() || (zero && !single(zero)) ||
        op.attr("block_size", 0) != 0)
        return false;
    affine->scale = scale->constant->float_at(0);
    affine->zero = zero ? (int)zero->constant->int_at(0) : 0;
    if (type == ElementType::kUint8) affine->zero -= 128;
    return usable_scale(affine->scale) && affine->zero >= -128 && affine->zero <= 127;
}

bool quantize_as_int8(Op& op, ElementType type) {
    Value* x = op.in(0);
    AffineScale top;
    if (x->is_constant() || !x->floats() || !read_affine(op, type, &top)) return false;
    // A blob of the node's name holds the node's values: of uint8 ones it is not that of int8.
    Node twin = op.node;
    if (type != ElementType::kInt8) twin.outputs[0] += "_int8";
    Op inner(op.c, twin, op.opset);
    Value* q = quantized(inner, x, top);
    return q && publish(op, type, q);
}

bool dequantize_int8(Op& op) {
    Value* x = op.in(0);
    AffineScale from;
    if (x->is_constant() || !read_affine(op, x->type, &from)) return false;
    Value* q = as_int8(op, x);
    const std::string blob = q ? op.blob(q) : "";
    if (blob.empty()) return false;
    ModelLayer& layer = op.emit("AffineDequantize", {blob});
    layer.set("scale", from.scale);
    layer.set("zero_point", from.zero);
    Value* out = op.set(0, ElementType::kFloat, q->shape, op.form_of(q), layer.outputs[0]);
    if (!out) return false;
    out->quantized = std::make_shared<Quantized>(Quantized{q->name, from});
    return true;
}

// Values less their zero points, one for all or for each `inner` values in turn; false if one does
// not fit.
static bool less_zeros(const Tensor& x, const std::vector<int64_t>& zeros, size_t inner,
                       Tensor* to) {
    const size_t count = x.count();
    // Most of those that do not fit are found early, by looking at a few values.
    if (zeros.size() == 1) inner = 1 << 12;
    if (x.type == ElementType::kInt8 && zeros == std::vector<int64_t>(zeros.size(), 0)) {
        *to = x;
        return true;
    }
    *to = Tensor::unset(ElementType::kInt8, x.dims);
    int8_t* const values = (int8_t*)to->bytes();
    int beyond = 0;
    with_values(x, [&](const auto* v) {
        for (size_t begin = 0, row = 0; begin < count && beyond == 0; begin += inner, row++) {
            const int zero = (int)zeros[row % zeros.size()];
            const size_t end = std::min(count, begin + inner);
            for (size_t i = begin; i < end; i++) {
                const int value = (int)v[i] - zero;
                beyond |= value - (int8_t)value;
                values[i] = (int8_t)value;
            }
        }
    });
    return beyond == 0;
}

std::shared_ptr<const QuantizedWeight> read_weight(const Tensor& x, const Tensor& scale,
                                                   const Tensor* zero, int64_t axis) {
    const size_t scales = scale.count(), zeros = zero ? zero->count() : 1;
    if (axis < 0) axis += x.rank();
    if (!is_int8(x.type) || x.rank() < 1 || !is_float(scale.type) || axis < 0 || axis >= x.rank())
        return nullptr;
    const size_t size = (size_t)x.dims[(size_t)axis];
    if ((scales != 1 && scales != size) || (zeros != 1 && zeros != size)) return nullptr;
    size_t inner = 1;
    for (int a = (int)axis + 1; a < x.rank(); a++) inner *= (size_t)x.dims[(size_t)a];
    auto weight = std::make_shared<QuantizedWeight>();
    weight->axis = scales == 1 ? -1 : (int)axis;
    weight->scales = scale.floats();
    for (float s : weight->scales)
        if (!usable_scale(s)) return nullptr;
    const std::vector<int64_t> offsets = zero ? zero->ints() : std::vector<int64_t>{0};
    return less_zeros(x, offsets, inner, &weight->values) ? weight : nullptr;
}

bool is_integer_weight(const Tensor& x, const Tensor& scale, const Tensor* zero) {
    if (!is_int8(x.type) || x.rank() != 2 || x.count() == 0 || !is_float(scale.type) ||
        scale.rank() > 1 || (zero && (!is_int8(zero->type) || zero->rank() > 1)))
        return false;
    const size_t n = (size_t)x.dims[1];
    if ((scale.count() != 1 && scale.count() != n) ||
        (zero && zero->count() != 1 && zero->count() != n))
        return false;
    const std::vector<float> scales = scale.floats();
    return std::all_of(scales.begin(), scales.end(), usable_scale);
}

void set_integer_weight(ModelLayer* layer, const Tensor& b, const Tensor* zero) {
    Mat values((int)b.count(), (size_t)1u);
    memcpy(values.data, b.bytes(), b.count());
    layer->set("num_output", (int)b.dims[1]);
    layer->set("weight_data_size", (int)b.count());
    layer->set("b_unsigned", b.type == ElementType::kUint8 ? 1 : 0);
    layer->set_weight("weight_data", values);
    if (!zero) return;
    std::vector<int> zeros;
    for (size_t i = 0; i < zero->count(); i++) zeros.push_back((int)zero->int_at(i));
    layer->set("b_zero_points", zeros);
}

void remember_weight(Converter& c, const Node& node) {
    const auto tensor = [&](size_t i) -> const Tensor* {
        const Value* v = i < node.inputs.size() && !node.inputs[i].empty()
                             ? c.find_value(node.inputs[i])
                             : nullptr;
        return v && v->is_constant() ? v->constant.get() : nullptr;
    };
    const Tensor *x = tensor(0), *scale = tensor(1);
    Value* out = node.outputs.empty() ? nullptr : c.find_value(node.outputs[0]);
    const auto axis = node.attributes.find("axis"), blocks = node.attributes.find("block_size");
    if (node.op == "Transpose" && x && out && x->rank() == 2 && out->rank() == 2) {
        const Value* from = c.find_value(node.inputs[0]);
        const auto perm = node.attributes.find("perm");
        const bool turned =
            perm == node.attributes.end() || perm->second.ints == std::vector<int64_t>{1, 0};
        if (from->block_weight)
            out->block_weight = turned ? transposed(*from->block_weight) : from->block_weight;
    }
    if (node.op != "DequantizeLinear" || !x || !scale || !out) return;
    if (blocks != node.attributes.end() && blocks->second.i != 0) {
        out->block_weight = read_block_weight(c, node);
        return;
    }
    if (scale->rank() > 1) return;
    const Tensor* zero = tensor(2);
    // One scale and one zero point for all have no axis.
    const bool one = scale->count() == 1 && (!zero || zero->count() == 1);
    const int64_t along = one ? 0 : axis == node.attributes.end() ? 1 : axis->second.i;
    out->quantized_weight = read_weight(*x, *scale, zero, along);
}

namespace {

// A node that has been converted, and what its first input and output are.
struct Converted {
    Converter& c;
    const Node& node;
    Op op;
    Value *x, *y;

    Converted(Converter& c, const Node& node)
        : c(c), node(node), op(c, node, c.opset(node.domain)), x(op.in(0)), y(nullptr) {
        y = node.outputs.empty() ? nullptr : c.find_value(node.outputs[0]);
    }
    // A copy of the layer that made y and came last; false if it is another.
    template <class T>
    bool last_layer(ModelLayer* layer) const {
        if (c.model.layers.empty()) return false;
        ModelLayer& last = c.model.layers.back();
        const auto blob = y->blobs.find({0, y->form});
        if (!last.is<T>() || last.inputs.size() != 1 || last.outputs.size() != 1 ||
            blob == y->blobs.end() || last.outputs[0] != blob->second)
            return false;
        *layer = last;
        return true;
    }
};

// s8 weights with their scales.
void set_weights(ModelLayer* layer, const Tensor& weights, const std::vector<float>& scales,
                 int outputs) {
    Mat values((int)weights.count(), (size_t)1u), factors(outputs);
    memcpy(values.data, weights.bytes(), weights.count());
    for (int p = 0; p < outputs; p++) factors[p] = 1.f / scales[scales.size() == 1 ? 0 : (size_t)p];
    layer->set_weight("weight_data", values);
    layer->set_weight("weight_data_int8_scales", factors);
    layer->set("int8_scale_term", 1);
}

void set_int8(ModelLayer* layer, const Tensor& weights, const std::vector<float>& scales,
              int outputs, const AffineScale& input) {
    set_weights(layer, weights, scales, outputs);
    layer->set_weight("bottom_blob_int8_scales", one_value(1.f / input.scale));
    layer->set("int8_affine", 1);
    layer->set("bottom_zero_point", input.zero);
}

// Puts the int8 form of the last layer into its place.
bool replace_last(const Converted& t, ModelLayer layer, const Form& form) {
    Value* q = t.c.find_value(t.x->quantized->q);
    if (!q || q->rank() != t.x->rank()) return false;
    t.c.model.layers.pop_back();
    const std::string from = t.c.blob(q, form);
    layer.inputs = {from};
    if (!from.empty()) t.c.model.layers.push_back(layer);
    return !from.empty();
}

void conv(const Converted& t) {
    const Value* w = t.op.in(1);
    ModelLayer layer;
    if (!t.x->quantized || !w || !w->quantized_weight || w->quantized_weight->axis > 0 ||
        !t.last_layer<Convolution>(&layer) || !as<Convolution>(layer.prototype())->has_int8_form())
        return;
    const QuantizedWeight& weight = *w->quantized_weight;
    const ModelLayer before = layer;
    set_int8(&layer, weight.values, weight.scales, (int)weight.values.dims[0],
             t.x->quantized->affine);
    const Form form = Form::batched(t.x->rank());
    if (!replace_last(t, layer, form)) {
        t.c.model.layers.push_back(before);
        return;
    }
    auto source = std::make_shared<Int8Source>();
    source->layer = t.c.model.layers.back();
    source->form = t.y->form;
    t.y->int8_source = source;
    t.c.count("int8: Conv");
}

// Windows side by side: each input pixel becomes a square of pixels. Its width, or 0.
int square_of(const Converted& t, const Tensor& weight) {
    const auto all = [&](const char* name, int64_t value) {
        const std::vector<int64_t> given = t.op.attr_ints(name);
        return std::all_of(given.begin(), given.end(), [=](int64_t x) { return x == value; });
    };
    const int64_t width = weight.rank() == 4 ? weight.dims[3] : 0;
    const bool alone = all("pads", 0) && all("output_padding", 0) && all("dilations", 1) &&
                       t.op.attr("group", 1) == 1 && !t.op.has_attr("output_shape") &&
                       t.op.attr_string("auto_pad", "NOTSET") == "NOTSET";
    return alone && width > 1 && weight.dims[2] == width && t.op.has_attr("strides") &&
                   all("strides", width)
               ? (int)width
               : 0;
}

// Such a deconvolution: a 1x1 convolution, whose channels become pixels.
void conv_transpose(const Converted& t) {
    const Value* w = t.op.in(1);
    ModelLayer before;
    if (!t.x->quantized || !w || !w->quantized_weight || !t.last_layer<Deconvolution>(&before))
        return;
    const QuantizedWeight& weight = *w->quantized_weight;
    const int width = square_of(t, weight.values);
    if (!width || (weight.axis >= 0 && weight.axis != 1)) return;
    // From [inputs][outputs][places] to [outputs][places][inputs].
    const std::vector<int64_t>& dims = weight.values.dims;
    const int places = width * width, outputs = (int)dims[1] * places;
    const Tensor values = weight.values.transposed({1, 2, 3, 0});
    const auto repeated = [&](const float* from, size_t count) {
        std::vector<float> to;
        for (size_t i = 0; i < count; i++) to.insert(to.end(), (size_t)places, from[i]);
        return to;
    };
    ModelLayer layer;
    layer.type = "Convolution", layer.name = before.name;
    layer.inputs = before.inputs, layer.outputs = before.outputs;
    layer.set("num_output", outputs);
    layer.set("kernel_w", 1);
    layer.set("weight_data_size", (int)values.count());
    set_int8(&layer, values,
             weight.scales.size() == 1 ? weight.scales
                                       : repeated(weight.scales.data(), weight.scales.size()),
             outputs, t.x->quantized->affine);
    if (const StoredWeight* bias = before.find_weight("bias_data")) {
        const std::vector<float> all = repeated(bias->data, (size_t)bias->data.w);
        Mat data((int)all.size());
        memcpy(data.data, all.data(), all.size() * sizeof(float));
        layer.set("bias_term", 1);
        layer.set_weight("bias_data", data);
    }
    if (!replace_last(t, layer, Form::batched(t.x->rank()))) {
        t.c.model.layers.push_back(before);
        return;
    }
    const std::string y = before.outputs[0];
    ModelLayer& shuffle = t.c.emit("PixelShuffle", {y}, y + "_channels");
    const std::string channels = shuffle.outputs[0];
    shuffle.set("upscale_factor", width);
    shuffle.inputs[0] = channels, shuffle.outputs[0] = y;
    t.c.model.layers[t.c.model.layers.size() - 2].outputs[0] = channels;
    t.c.count("int8: ConvTranspose");
}

// A product with weights of few bits, in place of the last layer. Gemm makes rows: those of items
// that are vectors become such again.
void block_rows(const Converted& t, const BlockWeight& weight) {
    ModelLayer before;
    if (weight.columns == (t.op.attr("transB", 0) != 0) || t.op.attr_float("alpha", 1.f) != 1.f ||
        t.y->form.groups.size() > 2 || !t.last_layer<InnerProduct>(&before))
        return;
    ModelLayer layer;
    layer.type = "Gemm", layer.name = before.name;
    layer.inputs = before.inputs, layer.outputs = before.outputs;
    const StoredWeight* bias = before.find_weight("bias_data");
    set_block_product(&layer, weight, bias ? &bias->data : nullptr);
    t.c.model.layers.back() = layer;
    t.c.count("weights in blocks of few bits");
    if (t.y->form.groups.size() == 2) return;
    const std::string y = before.outputs[0];
    ModelLayer& vector = t.c.emit("Reshape", {y}, y + "_row");
    const std::string row = vector.outputs[0];
    vector.set("w", (int)weight.rows);
    vector.inputs[0] = row, vector.outputs[0] = y;
    t.c.model.layers[t.c.model.layers.size() - 2].outputs[0] = row;
}

void product(const Converted& t) {
    const Value* w = t.op.in(1);
    ModelLayer layer;
    if (w && w->block_weight) return block_rows(t, *w->block_weight);
    const bool transposed = t.op.attr("transB", 0) != 0;
    if (!t.x->quantized || !w || !w->quantized_weight || w->rank() != 2 ||
        t.op.attr_float("alpha", 1.f) != 1.f || !t.last_layer<InnerProduct>(&layer))
        return;
    const QuantizedWeight& weight = *w->quantized_weight;
    const int columns = transposed ? 0 : 1;
    if (weight.axis >= 0 && weight.axis != columns) return;
    const ModelLayer before = layer;
    const Tensor values = transposed ? weight.values : weight.values.transposed({1, 0});
    set_int8(&layer, values, weight.scales, (int)values.dims[0], t.x->quantized->affine);
    if (!replace_last(t, layer, t.y->form)) {
        t.c.model.layers.push_back(before);
        return;
    }
    t.c.count("int8: Gemm and MatMul");
}

bool limit(const Converted& t, const char* name, int i, float* value) {
    const Value* v = t.op.in(i);
    if (t.op.has_attr(name)) *value = t.op.attr_float(name, *value);
    if (!v) return true;
    if (!v->is_constant() || !v->floats() || v->constant->count() != 1) return false;
    *value = v->constant->float_at(0);
    return true;
}

void activation(const Converted& t) {
    auto source = std::make_shared<Int8Source>();
    if (t.x->int8_source && !t.x->int8_source->concat) {
        *source = *t.x->int8_source;
    } else if (t.x->quantized) {
        Value* q = t.c.find_value(t.x->quantized->q);
        const std::string from = q ? t.c.blob(q, t.y->form) : "";
        if (from.empty()) return;
        source->layer = requantize(t.x->quantized->affine, from);
        source->form = t.y->form;
    } else {
        return;
    }
    // Parameter 9 of all of these.
    if (source->layer.params.type(9) != 0) return;
    float low = -FLT_MAX, high = FLT_MAX;
    if (t.node.op == "Relu") {
        source->layer.set("activation_type", kActivationReLU);
    } else {
        if (!limit(t, "min", 1, &low) || !limit(t, "max", 2, &high)) return;
        low = std::min(low, high);  // where they cross, all is the upper one
        source->layer.set("activation_type", kActivationClip);
        source->layer.set("activation_params", std::vector<float>{low, high});
    }
    t.y->int8_source = source;
}

void binary(Converted& t) {
    Value* b = t.op.in(1);
    if (!t.x->quantized || !b || !b->quantized) return;
    Value *qa = t.c.find_value(t.x->quantized->q), *qb = t.c.find_value(b->quantized->q);
    Broadcast lined;
    if (!qa || !qb || !broadcast(t.op, {qa, qb}, &lined) || lined.blobs.size() != 2 ||
        lined.blobs[0].empty() || lined.blobs[1].empty())
        return;
    auto source = std::make_shared<Int8Source>();
    source->layer = requantize(t.x->quantized->affine, lined.blobs[0]);
    source->layer.inputs.push_back(lined.blobs[1]);
    source->layer.set("op_type", t.node.op == "Mul" ? 1 : 0);
    source->layer.set("b_scale", b->quantized->affine.scale);
    source->layer.set("b_zero_point", b->quantized->affine.zero);
    source->form = lined.form;
    t.y->int8_source = source;
}

void concat(const Converted& t) {
    for (int i = 0; i < t.op.inputs(); i++)
        if (!t.op.in(i) || !t.op.in(i)->quantized) return;
    auto source = std::make_shared<Int8Source>();
    source->concat = std::make_shared<Node>(t.node);
    t.y->int8_source = source;
}

// Pad moves values unless its border has one of its own, Resize those of the nearest places, where
// it does not crop.
bool moves_values(const Converted& t) {
    const std::string& op = t.node.op;
    const std::string mode = t.op.attr_string("mode", op == "Pad" ? "constant" : "nearest");
    const bool crops =
        t.op.attr_string("coordinate_transformation_mode", "") == "tf_crop_and_resize";
    return has_trait(t.node, kOpMovesValues) || (op == "Pad" && mode != "constant") ||
           ((op == "Resize" || op == "Upsample") && mode == "nearest" && !crops);
}

// Operators that only move values (or choose the largest) do so with int8 as well.
void move(const Converted& t) {
    if (t.node.op == "MaxPool" && t.node.outputs.size() > 1) return;
    const std::string from = t.x->quantized ? t.x->quantized->q : t.x->coded;
    if (from.empty() || !t.c.find_value(from)) return;
    Node node = t.node;
    node.inputs[0] = from;
    for (std::string& name : node.outputs)
        if (!name.empty()) name = t.c.unique_value(name + "_int8");
    if (!convert(t.c, node)) return;
    for (size_t i = 0; i < node.outputs.size(); i++) {
        const Value* q = t.c.find_value(node.outputs[i]);
        Value* y = t.c.find_value(t.node.outputs[i]);
        if (!q || !y || q->type != ElementType::kInt8) continue;
        if (t.x->quantized)
            y->quantized = std::make_shared<Quantized>(Quantized{q->name, t.x->quantized->affine});
        else
            y->coded = q->name;
    }
    t.c.count("int8: " + t.node.op);
}

}  // namespace

namespace {

// The layer for weights that int8 holds without their zero points.
ModelLayer& inner_product_by_range(Op& op, const std::string& from, const QuantizedWeight& weight) {
    const Tensor values = weight.values.transposed({1, 0});
    const int n = (int)values.dims[0];
    ModelLayer& layer = op.emit("InnerProduct", {from});
    layer.set("num_output", n);
    layer.set("weight_data_size", (int)values.count());
    set_weights(&layer, values, weight.scales, n);
    layer.set("int8_affine", 2);
    return layer;
}

// The layer for any zero points.
ModelLayer& integer_product_by_range(Op& op, const std::string& from, const Tensor& w,
                                     const Tensor& scale, const Tensor* zero) {
    ModelLayer& layer = op.emit("MatMulInteger", {from});
    set_integer_weight(&layer, w, zero);
    layer.set("ranged", 1);
    Mat scales((int)w.dims[1]);
    for (int i = 0; i < scales.w; i++)
        scales[i] = scale.float_at(scale.count() == 1 ? 0 : (size_t)i);
    layer.set_weight("weight_scales", scales);
    return layer;
}

}  // namespace

bool int8_product_by_range(Op& op, const Value* w, const Value* scale, const Value* zero,
                           const Value* bias) {
    Value* x = op.in(0);
    const bool constants = w->is_constant() && scale->is_constant() &&
                           (!zero || zero->is_constant()) && (!bias || bias->is_constant());
    if (!constants || x->is_constant() || !x->floats() || x->rank() < 1 || w->rank() != 2 ||
        w->constant->count() == 0)
        return false;
    const Tensor* point = zero ? zero->constant.get() : nullptr;
    const auto weight = read_weight(*w->constant, *scale->constant, point, 1);
    const int n = (int)w->constant->dims[1], rank = x->rank();
    if ((!weight && !is_integer_weight(*w->constant, *scale->constant, point)) ||
        (bias && (int)bias->constant->count() != n))
        return false;
    // One range for all items of a batch.
    Form form{x->form.batch && rank > 1 && x->shape[0].is(1), {}};
    const int lead = rank - 1 - (form.batch ? 1 : 0);
    if (lead > 0) form.groups.push_back(lead);
    form.groups.push_back(1);
    const std::string from = op.blob(x, form);
    if (from.empty()) return false;
    ModelLayer& layer =
        weight ? inner_product_by_range(op, from, *weight)
               : integer_product_by_range(op, from, *w->constant, *scale->constant, point);
    if (bias) {
        layer.set("bias_term", 1);
        layer.set_weight("bias_data", bias->constant->weight());
        op.c.keep(*bias->constant);
    }
    std::vector<Dim> shape = x->shape;
    shape.back() = Dim(n);
    op.set(0, ElementType::kFloat, shape, form, layer.outputs[0]);
    op.c.count("int8: MatMulInteger of a quantised range");
    return true;
}

void follow_quantized(Converter& c, const Node& node) {
    if (!node.domain.empty() || node.inputs.empty()) return;
    Converted t(c, node);
    if (!t.x || t.x->is_constant() || !t.y || t.y->is_constant()) return;
    if (node.op == "Conv") conv(t);
    if (node.op == "ConvTranspose") conv_transpose(t);
    if (node.op == "MatMul" || node.op == "Gemm") product(t);
    if (node.op == "Relu" || node.op == "Clip") activation(t);
    if (node.op == "Add" || node.op == "Mul") binary(t);
    if (node.op == "Concat") concat(t);
    if (moves_values(t)) move(t);
}

}  // namespace onnx_tool
}  // namespace quoll
