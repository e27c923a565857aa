// Scale and Bias in all their forms: values from weights or from a blob, for one axis or several.
#include "caffe/converter.h"
#include "layer/elementwise/binaryop.h"

namespace quoll {

namespace {

// The axes of an input that a factor or summand spans: [first, first + count), the engine's.
struct Span {
    int first, count;
};

bool spans(const Shape& s, const Span& span, size_t values) {
    size_t product = 1;
    for (int a = span.first; a < span.first + span.count; a++) product *= s.size(a);
    return product == values;
}

void emit_binary(CaffeLayer& l, int op, const std::string& a, const std::string& b,
                 const std::string& to, const std::string& suffix) {
    l.emit("BinaryOp", {a, b}, {to}, suffix).set("op_type", op);
}

// One value for each channel: the engine's own operators.
void emit_per_channel(CaffeLayer& l, const std::string& from, const std::string& to,
                      const std::string& suffix, const Mat& scale, const Mat& bias) {
    // Bias takes a blob of 1 or 2 axes as one channel.
    if (scale.empty() && l.shape(from).dims == 3) {
        ModelLayer& m = l.emit("Bias", {from}, {to}, suffix);
        m.set("bias_data_size", bias.w);
        m.set_weight("bias_data", bias);
        return;
    }
    ModelLayer& m = l.emit("Scale", {from}, {to}, suffix);
    const Mat factors = scale.empty() ? filled(bias.w, 1.f) : scale;
    m.set("scale_data_size", factors.w), m.set("bias_term", (int)!bias.empty());
    m.set_weight("scale_data", factors);
    if (!bias.empty()) m.set_weight("bias_data", bias);
}

// The sizes of values for a span among axes of size 1.
std::vector<int> spread(const Shape& s, const Span& span) {
    std::vector<int> sizes(s.dims, 1);
    for (int a = span.first; a < span.first + span.count; a++) sizes[a] = s.size(a);
    return sizes;
}

void emit_spread(CaffeLayer& l, const Shape& s, const Span& span, const Mat& scale,
                 const Mat& bias) {
    const std::vector<int> sizes = spread(s, span);
    std::string from = l.in[0];
    if (!scale.empty()) {
        const std::string to = bias.empty() ? l.out[0] : l.between("scaled");
        emit_binary(l, BinaryOp::MUL, from, l.constant("scale", sizes, scale), to, "");
        from = to;
    }
    if (!bias.empty())
        emit_binary(l, BinaryOp::ADD, from, l.constant("bias", sizes, bias), l.out[0], "_add");
}

void emit_scalar(CaffeLayer& l, int op, float b, const std::string& from, const std::string& to,
                 const std::string& suffix) {
    ModelLayer& m = l.emit("BinaryOp", {from}, {to}, suffix);
    m.set("op_type", op), m.set("with_scalar", 1), m.set("b", b);
}

// One value for all.
void emit_scalars(CaffeLayer& l, const Mat& scale, const Mat& bias) {
    std::string from = l.in[0];
    if (!scale.empty()) {
        const std::string to = bias.empty() ? l.out[0] : l.between("scaled");
        emit_scalar(l, BinaryOp::MUL, scale[0], from, to, "");
        from = to;
    }
    if (!bias.empty()) emit_scalar(l, BinaryOp::ADD, bias[0], from, l.out[0], "_add");
}

// Factors and summands from the weights; one of them may be missing.
void affine_of_weights(CaffeLayer& l, int axis, int num_axes, const Mat& scale, const Mat& bias) {
    if (!l.error.empty()) return;
    const Shape s = l.shape(0);
    const Mat& values = scale.empty() ? bias : scale;
    if (s.dims == 0) {
        if (axis != 1 || num_axes != 1) return l.fail("axis: it needs the size of the input");
        return emit_per_channel(l, l.in[0], l.out[0], "", scale, bias);
    }
    if (num_axes == 0 && values.w == 1) return emit_scalars(l, scale, bias);
    const int first = l.axis(axis, s.dims);
    if (!l.error.empty()) return;
    const Span span = {first, num_axes < 0 ? s.dims - first : num_axes};
    if (span.first + span.count > s.dims || !spans(s, span, values.w))
        return l.fail("weight 0: " + std::to_string(values.w) + " values do not fit the axes");
    if (first == 0 && values.w == s.size(0))
        return emit_per_channel(l, l.in[0], l.out[0], "", scale, bias);
    emit_spread(l, s, span, scale, bias);
}

// x op y, where y has the sizes of x from an axis on; then a bias of y's size.
void affine_of_blob(CaffeLayer& l, int op, int axis, const Mat& bias) {
    const Shape s = l.shape(0), y = l.shape(1);
    if (!l.error.empty()) return;
    if (!s.dims || !y.dims) return l.fail("the sizes of its inputs must be known");
    const bool items = l.is_batch(axis);
    const int first = items ? 0 : l.axis(axis, s.dims);
    std::string other = l.in[1];
    if (!l.error.empty()) return;
    std::vector<int> sizes;  // of y, its batch counted if it lies on another axis of x
    if (!items) sizes.push_back(y.n);
    for (int a = 0; a < y.dims; a++) sizes.push_back(y.size(a));
    std::vector<int64_t> among(s.dims, 1);
    for (size_t i = 0; i < sizes.size(); i++) {
        if (first + i >= among.size() || (sizes[i] != s.size(first + (int)i) && sizes[i] != 1))
            return l.fail("its inputs do not fit");
        among[first + i] = sizes[i];
    }
    if (!items) {
        l.emit("BatchAxis", {other}, {l.between("whole")}, "_whole").set("inverse", 1);
        other = l.between("whole");
    }
    emit_reshape(l, other, l.between("spread"), "_spread", among);
    const std::string to = bias.empty() ? l.out[0] : l.between("scaled");
    emit_binary(l, op, l.in[0], l.between("spread"), to, "");
    if (bias.empty()) return;
    const std::vector<int> bias_sizes(among.begin(), among.end());
    emit_binary(l, BinaryOp::ADD, to, l.constant("bias", bias_sizes, bias), l.out[0], "_add");
}

void map_scale(CaffeLayer& l) {
    const caffe::ScaleParameter& p = l.p.scale_param();
    const bool from_blob = l.in.size() == 2;
    const Mat scale = from_blob ? Mat() : l.blob(0);
    const Mat bias = p.bias_term() ? l.blob(from_blob ? 0 : 1, scale.w) : Mat();
    if (from_blob) return affine_of_blob(l, BinaryOp::MUL, p.axis(), bias);
    affine_of_weights(l, p.axis(), p.num_axes(), scale, bias);
}

void map_bias(CaffeLayer& l) {
    const caffe::BiasParameter& p = l.p.bias_param();
    if (l.in.size() == 2) return affine_of_blob(l, BinaryOp::ADD, p.axis(), Mat());
    affine_of_weights(l, p.axis(), p.num_axes(), Mat(), l.blob(0));
}

// SENet's: a factor for each channel of the second input, and the third added.
void map_axpy(CaffeLayer& l) {
    if (l.in.size() != 3) return l.fail("expected 3 inputs: factors, x and y");
    emit_reshape(l, l.in[0], l.between("factors"), "_factors", {-1, 1, 1});
    emit_binary(l, BinaryOp::MUL, l.in[1], l.between("factors"), l.between("scaled"), "");
    emit_binary(l, BinaryOp::ADD, l.between("scaled"), l.in[2], l.out[0], "_add");
}

// The "BN" of forks: slope, bias, mean, variance, or (SegNet's for inference) slope and bias alone.
void map_bn(CaffeLayer& l) {
    const Mat slope = l.blob(0), bias = l.blob(1, slope.w);
    const bool folded = !l.has_blob(2);
    const Mat mean = folded ? Mat() : l.blob(2, slope.w);
    const Mat variance = folded ? Mat() : l.blob(3, slope.w);
    if (!l.error.empty()) return;
    if (folded) return emit_per_channel(l, l.in[0], l.out[0], "", slope, bias);
    ModelLayer& m = l.emit("BatchNorm");
    m.set("channels", slope.w), m.set("eps", l.p.bn_param().eps());
    m.set_weight("slope_data", slope), m.set_weight("bias_data", bias);
    m.set_weight("mean_data", mean), m.set_weight("var_data", variance);
}

}  // namespace

CaffeMapper find_affine_mapper(const std::string& type) {
    static const std::pair<const char*, CaffeMapper> kTable[] = {
        {"Axpy", map_axpy}, {"BN", map_bn}, {"Bias", map_bias}, {"Scale", map_scale}};
    return find_in(kTable, type);
}

}  // namespace quoll
