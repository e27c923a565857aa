// Activations, normalisation, and sums of blobs.
#include <math.h>

#include "caffe/converter.h"

namespace quoll {

namespace {

void map_relu(CaffeLayer& l) { l.emit("ReLU").set("slope", l.p.relu_param().negative_slope()); }

void map_relu6(CaffeLayer& l) {
    ModelLayer& m = l.emit("Clip");
    m.set("min", 0.f), m.set("max", 6.f);
}

void map_clip(CaffeLayer& l) {
    ModelLayer& m = l.emit("Clip");
    m.set("min", l.p.clip_param().min()), m.set("max", l.p.clip_param().max());
}

void map_prelu(CaffeLayer& l) {
    const Mat slope = l.blob(0);
    if (!l.error.empty()) return;
    ModelLayer& m = l.emit("PReLU");
    m.set("num_slope", slope.w);
    m.set_weight("slope_data", slope);
}

void map_elu(CaffeLayer& l) { l.emit("ELU").set("alpha", l.p.elu_param().alpha()); }
void map_sigmoid(CaffeLayer& l) { l.emit("Sigmoid"); }
void map_tanh(CaffeLayer& l) { l.emit("TanH"); }
void map_absval(CaffeLayer& l) { l.emit("AbsVal"); }
void map_bnll(CaffeLayer& l) { l.emit("BNLL"); }

void map_swish(CaffeLayer& l) {
    if (l.p.swish_param().beta() != 1.f) return l.fail("beta: expected 1");
    l.emit("Swish");
}

void map_threshold(CaffeLayer& l) {
    l.emit("Threshold").set("threshold", l.p.threshold_param().threshold());
}

void map_power(CaffeLayer& l) {
    const caffe::PowerParameter& p = l.p.power_param();
    ModelLayer& m = l.emit("Power");
    m.set("power", p.power()), m.set("scale", p.scale()), m.set("shift", p.shift());
}

void map_exp(CaffeLayer& l) {
    const caffe::ExpParameter& p = l.p.exp_param();
    ModelLayer& m = l.emit("Exp");
    m.set("base", p.base()), m.set("scale", p.scale()), m.set("shift", p.shift());
}

void map_log(CaffeLayer& l) {
    const caffe::LogParameter& p = l.p.log_param();
    ModelLayer& m = l.emit("Log");
    m.set("base", p.base()), m.set("scale", p.scale()), m.set("shift", p.shift());
}

// At test time nothing is dropped; without scale_train it is then that values are scaled.
void map_dropout(CaffeLayer& l) {
    const caffe::DropoutParameter& p = l.p.dropout_param();
    ModelLayer& m = l.emit("Dropout");
    if (!p.scale_train()) m.set("scale", 1.f - p.dropout_ratio());
}

Mat filled(int count, float value) {
    Mat m(count);
    m.fill(value);
    return m;
}

void emit_batch_norm(CaffeLayer& l, float eps, const Mat& slope, const Mat& mean, const Mat& var,
                     const Mat& bias) {
    if (!l.error.empty()) return;
    ModelLayer& m = l.emit("BatchNorm");
    m.set("channels", mean.w), m.set("eps", eps);
    m.set_weight("slope_data", slope), m.set_weight("mean_data", mean);
    m.set_weight("var_data", var), m.set_weight("bias_data", bias);
}

// Mean and variance are stored as sums: the third blob is what to divide them by.
void map_batch_norm(CaffeLayer& l) {
    const caffe::BatchNormParameter& p = l.p.batch_norm_param();
    if (p.has_use_global_stats() && !p.use_global_stats()) {
        const Shape s = l.shape(0);
        if (s.dims != 3) return l.fail("statistics of the batch need an input of a known size");
        ModelLayer& m = l.emit("InstanceNorm");
        m.set("channels", s.c), m.set("eps", p.eps()), m.set("affine", 0);
        return;
    }
    const Mat mean = l.blob(0), var = l.blob(1, mean.w), factor = l.blob(2, 1);
    if (!l.error.empty()) return;
    const float scale = factor[0] == 0.f ? 0.f : 1.f / factor[0];
    for (int i = 0; i < mean.w; i++)
        ((float*)mean.data)[i] *= scale, ((float*)var.data)[i] *= scale;
    emit_batch_norm(l, p.eps(), filled(mean.w, 1.f), mean, var, filled(mean.w, 0.f));
}

// The "BN" of forks: slope, bias, mean, variance, or (SegNet's for inference) slope and bias alone.
void map_bn(CaffeLayer& l) {
    const Mat slope = l.blob(0), bias = l.blob(1, slope.w);
    if (l.has_blob(2)) {
        const Mat mean = l.blob(2, slope.w), var = l.blob(3, slope.w);
        return emit_batch_norm(l, l.p.bn_param().eps(), slope, mean, var, bias);
    }
    if (!l.error.empty()) return;
    ModelLayer& m = l.emit("Scale");
    m.set("scale_data_size", slope.w), m.set("bias_term", 1);
    m.set_weight("scale_data", slope), m.set_weight("bias_data", bias);
}

// One value for all channels becomes one for each.
Mat per_channel(CaffeLayer& l, const Mat& values) {
    const Shape s = l.shape(0);
    const int channels = s.dims ? s.size(0) : values.w;
    if (values.w == channels || !l.error.empty()) return values;
    if (values.w == 1) return filled(channels, values[0]);
    l.fail("only one value for each channel is supported");
    return values;
}

void map_scale(CaffeLayer& l) {
    const caffe::ScaleParameter& p = l.p.scale_param();
    if (l.in.size() == 2) {
        const Shape s = l.shape(1);
        if (p.axis() > 1) return l.fail("axis: expected 0 or 1");
        std::vector<std::string> in = l.in;
        if (s.dims == 3 && s.w == 1 && s.h == 1) {
            ModelLayer& r = l.emit("Reshape", {l.in[1]}, {l.between("scale")}, "_scale");
            r.set("w", -1);
            in[1] = l.between("scale");
        } else if (s.dims > 1) {
            return l.fail("only one value for each channel is supported");
        }
        const Mat bias = p.bias_term() ? per_channel(l, l.blob(0)) : Mat();
        if (!l.error.empty()) return;
        if (p.bias_term()) return l.fail("a bias with a scale from a blob is not supported");
        l.emit("Scale", in, l.out, "").set("scale_data_size", -233);
        return;
    }
    if (p.axis() != 1 && l.shape(0).dims != 1) return l.fail("axis: expected 1");
    const Mat scale = per_channel(l, l.blob(0));
    const Mat bias = p.bias_term() ? per_channel(l, l.blob(1)) : Mat();
    if (!l.error.empty()) return;
    ModelLayer& m = l.emit("Scale");
    m.set("scale_data_size", scale.w), m.set("bias_term", (int)p.bias_term());
    m.set_weight("scale_data", scale);
    if (p.bias_term()) m.set_weight("bias_data", bias);
}

void map_bias(CaffeLayer& l) {
    if (l.in.size() != 1) return l.fail("a bias from a blob is not supported");
    if (l.p.bias_param().axis() != 1) return l.fail("axis: expected 1");
    const Mat bias = per_channel(l, l.blob(0));
    if (!l.error.empty()) return;
    ModelLayer& m = l.emit("Bias");
    m.set("bias_data_size", bias.w);
    m.set_weight("bias_data", bias);
}

void map_lrn(CaffeLayer& l) {
    const caffe::LRNParameter& p = l.p.lrn_param();
    const bool within = p.norm_region() == caffe::LRNParameter::WITHIN_CHANNEL;
    ModelLayer& m = l.emit("LRN");
    m.set("region_type", within ? 1 : 0), m.set("local_size", (int)p.local_size());
    m.set("alpha", p.alpha()), m.set("beta", p.beta());
    m.set("bias", within ? 1.f : p.k());  // within a channel Caffe does not read k
}

void map_mvn(CaffeLayer& l) {
    const caffe::MVNParameter& p = l.p.mvn_param();
    ModelLayer& m = l.emit("MVN");
    if (!l.error.empty()) return;
    m.set("normalize_variance", (int)p.normalize_variance());
    m.set("across_channels", (int)p.across_channels());
    m.set("eps", p.eps());
}

void map_eltwise(CaffeLayer& l) {
    const caffe::EltwiseParameter& p = l.p.eltwise_param();
    if (l.in.size() < 2) return l.fail("expected 2 inputs or more");
    for (size_t i = 1; i < l.in.size(); i++)
        if (l.shape(0).dims && l.shape(i).dims && l.shape(0) != l.shape(i))
            return l.fail("its inputs differ in size");
    ModelLayer& m = l.emit("Eltwise");
    m.set("op_type", (int)p.operation());
    if (p.coeff_size() == 0) return;
    if (p.operation() != caffe::EltwiseParameter::SUM || p.coeff_size() != (int)l.in.size())
        return l.fail("coeff: expected one for each input of a sum");
    m.set("coeffs", std::vector<float>(p.coeff().begin(), p.coeff().end()));
}

void map_softmax(CaffeLayer& l) {
    ModelLayer& m = l.emit("Softmax");
    m.set("axis", l.axis(l.p.softmax_param().axis(), l.shape(0).dims)), m.set("fixbug0", 1);
}

void map_argmax(CaffeLayer& l) {
    const caffe::ArgMaxParameter& p = l.p.argmax_param();
    if (p.has_axis() && l.shape(0).dims != 1)
        return l.fail("axis: only the maximum of all values is supported");
    ModelLayer& m = l.emit("ArgMax");
    m.set("out_max_val", (int)p.out_max_val()), m.set("topk", (int)p.top_k());
}

// SUM, ASUM, SUMSQ and MEAN count from 1 there, from 0 here. All axes from `axis` on; the batch has
// one item.
void map_reduction(CaffeLayer& l) {
    const caffe::ReductionParameter& p = l.p.reduction_param();
    const int dims = l.shape(0).dims;
    const int first = p.axis() == 0 || p.axis() == -dims - 1 ? 0 : l.axis(p.axis(), dims);
    if (!l.error.empty()) return;
    ModelLayer& m = l.emit("Reduction");
    m.set("operation", (int)p.operation() - 1), m.set("coeff", p.coeff());
    if (first == 0) return;
    if (dims == 0) return l.fail("axis: it needs the size of the input");
    std::vector<int> axes;
    for (int a = first; a < dims; a++) axes.push_back(a);
    m.set("reduce_all", 0), m.set("axes", axes), m.set("fixbug0", 1);
}

}  // namespace

CaffeMapper find_elementwise_mapper(const std::string& type) {
    static const std::pair<const char*, CaffeMapper> kTable[] = {
        {"AbsVal", map_absval},
        {"ArgMax", map_argmax},
        {"BN", map_bn},
        {"BNLL", map_bnll},
        {"BatchNorm", map_batch_norm},
        {"Bias", map_bias},
        {"Clip", map_clip},
        {"Dropout", map_dropout},
        {"ELU", map_elu},
        {"Eltwise", map_eltwise},
        {"Exp", map_exp},
        {"LRN", map_lrn},
        {"Log", map_log},
        {"MVN", map_mvn},
        {"PReLU", map_prelu},
        {"Power", map_power},
        {"ReLU", map_relu},
        {"ReLU6", map_relu6},
        {"Reduction", map_reduction},
        {"Scale", map_scale},
        {"Sigmoid", map_sigmoid},
        {"Softmax", map_softmax},
        {"Swish", map_swish},
        {"TanH", map_tanh},
        {"Threshold", map_threshold},
    };
    return find_in(kTable, type);
}

}  // namespace quoll
