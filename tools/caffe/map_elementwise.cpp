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

void map_swish(CaffeLayer& l) { l.emit("Swish").set("beta", l.p.swish_param().beta()); }

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

// Mean and variance are stored as sums: the third blob is what to divide them by. NVIDIA's
// (scale_bias) and Intel's Caffe have what is a Scale layer elsewhere in two more.
void map_batch_norm(CaffeLayer& l) {
    const caffe::BatchNormParameter& p = l.p.batch_norm_param();
    if (p.has_use_global_stats() && !p.use_global_stats()) {
        const Shape s = l.shape(0);
        if (s.dims != 3) return l.fail("statistics of the batch need an input of a known size");
        if (s.n > 1)
            return l.fail("use_global_stats: false: expected a batch of 1, got " +
                          std::to_string(s.n));
        const Mat scale = l.has_blob(3) ? l.blob(3, s.c) : Mat();
        const Mat shift = l.has_blob(3) ? l.blob(4, s.c) : Mat();
        if (!l.error.empty()) return;
        ModelLayer& m = l.emit("InstanceNorm");
        m.set("channels", s.c), m.set("eps", p.eps()), m.set("affine", (int)!scale.empty());
        if (scale.empty()) return;
        m.set_weight("gamma_data", scale), m.set_weight("beta_data", shift);
        return;
    }
    const Mat mean = l.blob(0), var = l.blob(1, mean.w), factor = l.blob(2, 1);
    const bool scaled = p.scale_bias() || l.has_blob(3);
    const Mat slope = scaled ? l.blob(3, mean.w) : Mat(), bias = scaled ? l.blob(4, mean.w) : Mat();
    if (!l.error.empty()) return;
    const float scale = factor[0] == 0.f ? 0.f : 1.f / factor[0];
    for (int i = 0; i < mean.w; i++)
        ((float*)mean.data)[i] *= scale, ((float*)var.data)[i] *= scale;
    ModelLayer& m = l.emit("BatchNorm");
    m.set("channels", mean.w), m.set("eps", p.eps());
    m.set_weight("slope_data", scaled ? slope : filled(mean.w, 1.f));
    m.set_weight("bias_data", scaled ? bias : filled(mean.w, 0.f));
    m.set_weight("mean_data", mean), m.set_weight("var_data", var);
}

void map_lrn(CaffeLayer& l) {
    const caffe::LRNParameter& p = l.p.lrn_param();
    const bool within = p.norm_region() == caffe::LRNParameter::WITHIN_CHANNEL;
    if (p.local_size() % 2 == 0) return l.fail("local_size: expected an odd number");
    ModelLayer& m = l.emit("LRN");
    m.set("region_type", within ? 1 : 0), m.set("local_size", (int)p.local_size());
    m.set("alpha", p.alpha()), m.set("beta", p.beta());
    m.set("bias", within ? 1.f : p.k());  // within a channel Caffe does not read k
}

void map_mvn(CaffeLayer& l) {
    const caffe::MVNParameter& p = l.p.mvn_param();
    const Shape s = l.shape(0);
    // The engine takes a blob of fewer axes as one channel.
    const bool flat = s.dims == 1 || s.dims == 2;
    const std::string from = flat ? l.between("channels") : l.in[0];
    const std::string to = flat ? l.between("normalized") : l.out[0];
    if (flat) emit_reshape(l, l.in[0], from, "_channels", {s.size(0), 1, -1});
    ModelLayer& m = l.emit("MVN", {from}, {to}, "");
    m.set("normalize_variance", (int)p.normalize_variance());
    m.set("across_channels", (int)p.across_channels());
    m.set("eps", p.eps());
    if (!flat) return;
    std::vector<int64_t> sizes;
    for (int a = 0; a < s.dims; a++) sizes.push_back(s.size(a));
    emit_reshape(l, to, l.out[0], "_axes", sizes);
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
    if (l.is_batch(l.p.softmax_param().axis())) l.unpack_batch();
    ModelLayer& m = l.emit("Softmax");
    m.set("axis", l.axis(l.p.softmax_param().axis(), l.shape(0).dims)), m.set("fixbug0", 1);
}

// The places of the largest values; the engine has the values first where Caffe has them last.
void arg_max_of_all(CaffeLayer& l, const caffe::ArgMaxParameter& p) {
    const bool values = p.out_max_val();
    ModelLayer& m = l.emit("ArgMax", l.in, {values ? l.between("rows") : l.out[0]}, "");
    m.set("out_max_val", (int)values), m.set("topk", (int)p.top_k());
    if (!values) return;
    const std::vector<std::string> rows = {l.between("values"), l.between("places")};
    l.emit("Slice", {l.between("rows")}, rows, "_rows").set("slices", std::vector<int>{1, 1});
    l.emit("Concat", {rows[1], rows[0]}, l.out, "_swap").set("axis", 0);
}

void map_argmax(CaffeLayer& l) {
    const caffe::ArgMaxParameter& p = l.p.argmax_param();
    if (p.top_k() < 1 || p.top_k() > 0x7fffffff) return l.fail("top_k: expected 1 or more");
    if (!p.has_axis()) return arg_max_of_all(l, p);
    if (l.shape(0).dims == 0) return l.fail("axis: it needs the size of the input");
    if (l.is_batch(p.axis())) l.unpack_batch();
    const int axis = l.axis(p.axis(), l.shape(0).dims);
    const std::string places = l.between("places");
    if (p.top_k() > 1) {
        const std::string values = p.out_max_val() ? l.out[0] : l.between("values");
        ModelLayer& m = l.emit("TopK", l.in, {values, places}, "");
        m.set("k", (int)p.top_k()), m.set("axis", axis);
        l.notes.push_back("of equal values the first counts, in Caffe the last");
    } else if (p.out_max_val()) {
        ModelLayer& m = l.emit("Reduction");
        m.set("operation", 4), m.set("reduce_all", 0), m.set("axes", std::vector<int>{axis});
        m.set("keepdims", 1), m.set("fixbug0", 1);
    } else {
        ModelLayer& m = l.emit("ArgReduce", l.in, {places}, "");
        m.set("axis", axis), m.set("select_last_index", 1);
    }
    if (!p.out_max_val()) l.emit("CastTo", {places}, l.out, "_float");
}

// SUM, ASUM, SUMSQ and MEAN count from 1 there, from 0 here. All axes from `axis` on.
void map_reduction(CaffeLayer& l) {
    const caffe::ReductionParameter& p = l.p.reduction_param();
    const Shape s = l.shape(0);
    const bool all = l.is_batch(p.axis());
    std::vector<std::string> from = l.in;
    if (all && s.n > 1) {
        from = {l.between("whole")};
        l.emit("BatchAxis", l.in, from, "_whole").set("inverse", 1);
    }
    const int first = all ? 0 : l.axis(p.axis(), s.dims);
    if (!l.error.empty()) return;
    ModelLayer& m = l.emit("Reduction", from, l.out, "");
    m.set("operation", (int)p.operation() - 1), m.set("coeff", p.coeff());
    if (first == 0) return;
    if (s.dims == 0) return l.fail("axis: it needs the size of the input");
    std::vector<int> axes;
    for (int a = first; a < s.dims; a++) axes.push_back(a);
    m.set("reduce_all", 0), m.set("axes", axes), m.set("fixbug0", 1);
}

}  // namespace

CaffeMapper find_elementwise_mapper(const std::string& type) {
    static const std::pair<const char*, CaffeMapper> kTable[] = {
        {"AbsVal", map_absval},
        {"ArgMax", map_argmax},
        {"BNLL", map_bnll},
        {"BatchNorm", map_batch_norm},
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
        {"Sigmoid", map_sigmoid},
        {"Softmax", map_softmax},
        {"Swish", map_swish},
        {"TanH", map_tanh},
        {"Threshold", map_threshold},
    };
    return find_in(kTable, type);
}

}  // namespace quoll
