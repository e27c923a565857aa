// Layers with a window, and those with a matrix of weights.
#include <algorithm>

#include "caffe/converter.h"

namespace quoll {

namespace {

// The engine's limit for all numbers of a window.
const int kMostPositions = 1 << 24;

// height and width of a repeated field that may have one value for both, or of its own two fields.
template <class Repeated>
void pair_of(CaffeLayer& l, const char* what, const Repeated& values, bool has_own, int own_h,
             int own_w, int def, int* h, int* w) {
    if (has_own) {
        *h = own_h, *w = own_w;
        return;
    }
    if (values.size() > 2) l.fail(std::string(what) + ": expected 1 or 2 values");
    *h = values.size() ? (int)values.Get(0) : def;
    *w = values.size() > 1 ? (int)values.Get(1) : *h;
}

struct Window {
    int kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_h, pad_w;
};

Window window_of(CaffeLayer& l, const caffe::ConvolutionParameter& p) {
    Window w;
    pair_of(l, "kernel_size", p.kernel_size(), p.has_kernel_h() || p.has_kernel_w(), p.kernel_h(),
            p.kernel_w(), 0, &w.kernel_h, &w.kernel_w);
    pair_of(l, "stride", p.stride(), p.has_stride_h() || p.has_stride_w(), p.stride_h(),
            p.stride_w(), 1, &w.stride_h, &w.stride_w);
    pair_of(l, "pad", p.pad(), p.has_pad_h() || p.has_pad_w(), p.pad_h(), p.pad_w(), 0, &w.pad_h,
            &w.pad_w);
    pair_of(l, "dilation", p.dilation(), false, 0, 0, 1, &w.dilation_h, &w.dilation_w);
    const auto check = [&](const char* what, int least, int h, int v) {
        if (std::min(h, v) < least || std::max(h, v) > kMostPositions)
            l.fail(std::string(what) + ": expected " + std::to_string(least) + " to " +
                   std::to_string(kMostPositions));
    };
    check("kernel_size", 1, w.kernel_h, w.kernel_w);
    check("stride", 1, w.stride_h, w.stride_w);
    check("dilation", 1, w.dilation_h, w.dilation_w);
    check("pad", 0, w.pad_h, w.pad_w);
    return w;
}

// Deconvolution: Caffe's weights are (input, output / group, kernel), the engine's
// (group, output / group, input / group, kernel).
Mat swap_channels(CaffeLayer& l, const Mat& from, int group, int outputs, int64_t kernel) {
    const int per_group = outputs / group;
    const int inputs = per_group ? (int)(from.w / kernel / per_group) : 0;  // of all groups
    if (per_group * group != outputs || inputs % group || inputs * per_group * kernel != from.w) {
        l.fail("weight 0: " + std::to_string(from.w) + " values do not fit");
        return Mat();
    }
    Mat to(from.w);
    const int in = inputs / group;
    for (int g = 0; g < group; g++)
        for (int i = 0; i < in; i++)
            for (int o = 0; o < per_group; o++)
                std::copy_n((const float*)from + ((size_t)(g * in + i) * per_group + o) * kernel,
                            kernel, (float*)to + ((size_t)(g * per_group + o) * in + i) * kernel);
    return to;
}

void convolve(CaffeLayer& l, bool transposed, bool depthwise) {
    const caffe::ConvolutionParameter& p = l.p.convolution_param();
    const Window w = window_of(l, p);
    if (!l.error.empty()) return;
    const int outputs = (int)p.num_output();
    int group = (int)p.group();
    if (depthwise && group <= 1) group = outputs;
    if (p.axis() != 1) return l.fail("axis: expected 1, got " + std::to_string(p.axis()));
    if (outputs <= 0 || group <= 0) return l.fail("num_output and group: expected 1 or more");
    Mat weight = l.blob(0);
    const Mat bias = p.bias_term() ? l.blob(1, outputs) : Mat();
    if (l.error.empty() && transposed)
        weight = swap_channels(l, weight, group, outputs, (int64_t)w.kernel_h * w.kernel_w);
    if (!l.error.empty()) return;
    ModelLayer& m = l.emit(std::string(transposed ? "Deconvolution" : "Convolution") +
                           (group > 1 ? "DepthWise" : ""));
    m.set("num_output", outputs);
    m.set("kernel_w", w.kernel_w), m.set("kernel_h", w.kernel_h);
    m.set("dilation_w", w.dilation_w), m.set("dilation_h", w.dilation_h);
    m.set("stride_w", w.stride_w), m.set("stride_h", w.stride_h);
    m.set("pad_left", w.pad_w), m.set("pad_right", w.pad_w);
    m.set("pad_top", w.pad_h), m.set("pad_bottom", w.pad_h);
    m.set("bias_term", (int)p.bias_term());
    m.set("weight_data_size", weight.w);
    if (group > 1) m.set("group", group);
    m.set_weight("weight_data", weight);
    if (p.bias_term()) m.set_weight("bias_data", bias);
}

void map_convolution(CaffeLayer& l) { convolve(l, false, false); }
void map_depthwise(CaffeLayer& l) { convolve(l, false, true); }
void map_deconvolution(CaffeLayer& l) { convolve(l, true, false); }

// One axis of a pooling window.
struct PoolAxis {
    int size, kernel, stride, pad;

    bool may_clip() const { return pad > kernel - stride; }
    // Caffe: rounded up, and no window that begins behind the blob and its left border.
    int caffe_outputs() const {
        int n = (size + 2 * pad - kernel + stride - 1) / stride + 1;
        if (pad > 0 && (n - 1) * stride >= size + pad) n--;
        return n;
    }
    // What to add behind, so that rounding down gives Caffe's number of windows.
    int pad_behind(int before) const {
        return std::max(0, (caffe_outputs() - 1) * stride + kernel - (size + before));
    }
};

void set_pool_window(ModelLayer& m, const PoolAxis& h, const PoolAxis& w) {
    m.set("kernel_w", w.kernel), m.set("kernel_h", h.kernel);
    m.set("stride_w", w.stride), m.set("stride_h", h.stride);
}

// With a size that is known and a window that Caffe drops, the borders say how many windows there
// are. `before`: rows or columns of border that are still to be added.
void set_pool_borders(ModelLayer& m, const PoolAxis& h, const PoolAxis& w, bool padded, bool floor,
                      bool clip) {
    const int left = padded ? 0 : w.pad, top = padded ? 0 : h.pad;
    m.set("pad_left", left), m.set("pad_top", top);
    m.set("pad_right", clip ? w.pad_behind(padded ? 2 * w.pad : left) : left);
    m.set("pad_bottom", clip ? h.pad_behind(padded ? 2 * h.pad : top) : top);
    m.set("pad_mode", floor || clip ? 1 : 0);
}

void pool_all(CaffeLayer& l, int type) {
    // The engine gives a vector; Caffe keeps the axes.
    ModelLayer& m = l.emit("Pooling", l.in, {l.between("vector")}, "");
    m.set("pooling_type", type), m.set("global_pooling", 1);
    ModelLayer& r = l.emit("Reshape", {l.between("vector")}, l.out, "_axes");
    r.set("w", 1), r.set("h", 1), r.set("c", -1);
}

void map_pooling(CaffeLayer& l) {
    const caffe::PoolingParameter& p = l.p.pooling_param();
    if (l.out.size() != 1)
        return l.fail("the mask of a maximum (a second output) is not supported");
    if (p.pool() == caffe::PoolingParameter::STOCHASTIC)
        return l.fail("stochastic pooling is not supported");
    const int type = p.pool() == caffe::PoolingParameter::MAX ? 0 : 1;
    if (p.global_pooling()) return pool_all(l, type);
    const Shape s = l.shape(0);
    const bool own_kernel = p.has_kernel_h() || p.has_kernel_w();
    const bool own_stride = p.has_stride_h() || p.has_stride_w();
    const bool own_pad = p.has_pad_h() || p.has_pad_w();
    const PoolAxis h = {s.h, (int)(own_kernel ? p.kernel_h() : p.kernel_size()),
                        (int)(own_stride ? p.stride_h() : p.stride()),
                        (int)(own_pad ? p.pad_h() : p.pad())};
    const PoolAxis w = {s.w, (int)(own_kernel ? p.kernel_w() : p.kernel_size()),
                        (int)(own_stride ? p.stride_w() : p.stride()),
                        (int)(own_pad ? p.pad_w() : p.pad())};
    for (const PoolAxis& a : {h, w})
        if (a.kernel < 1 || a.kernel > kMostPositions || a.stride < 1 ||
            a.stride > kMostPositions || a.pad < 0 || a.pad >= a.kernel)
            return l.fail("expected kernel and stride of 1 to " + std::to_string(kMostPositions) +
                          ", and a pad below the kernel");
    const bool floor = p.round_mode() == caffe::PoolingParameter::FLOOR || !p.ceil_mode();
    const bool clip = !floor && (h.may_clip() || w.may_clip());
    if (clip && s.dims != 3)
        return l.fail("its window needs the size of the input, which the prototxt does not say");
    // Caffe's average counts the border, but not what rounding up adds behind it.
    const bool padded = type == 1 && (h.pad > 0 || w.pad > 0);
    if (padded) {
        ModelLayer& m = l.emit("Padding", l.in, {l.between("padded")}, "_pad");
        m.set("top", h.pad), m.set("bottom", h.pad), m.set("left", w.pad), m.set("right", w.pad);
    }
    const std::vector<std::string> from = {padded ? l.between("padded") : l.in[0]};
    ModelLayer& m = l.emit("Pooling", from, l.out, "");
    m.set("pooling_type", type);
    set_pool_window(m, h, w);
    set_pool_borders(m, h, w, padded, floor, clip);
}

void map_inner_product(CaffeLayer& l) {
    const caffe::InnerProductParameter& p = l.p.inner_product_param();
    const int outputs = (int)p.num_output();
    const Shape s = l.shape(0);
    const bool rows = s.dims == 2 && l.axis(p.axis(), 2) == 1;
    if (outputs <= 0) return l.fail("num_output: expected 1 or more");
    if (p.axis() != 1 && !rows && !(s.dims == 1 && p.axis() == -1))
        return l.fail("axis " + std::to_string(p.axis()) + " is not supported");
    Mat weight = l.blob(0);
    const Mat bias = p.bias_term() ? l.blob(1, outputs) : Mat();
    if (!l.error.empty()) return;
    if (weight.w % outputs)
        return l.fail("weight 0: " + std::to_string(weight.w) + " values do not fit");
    if (s.dims && (size_t)weight.w / outputs != (rows ? (size_t)s.w : s.total()))
        return l.fail("weight 0: expected " + std::to_string((rows ? s.w : s.total()) * outputs) +
                      " values, got " + std::to_string(weight.w));
    if (p.transpose()) {
        const Mat t(weight.w);
        const int inputs = weight.w / outputs;
        for (int o = 0; o < outputs; o++)
            for (int i = 0; i < inputs; i++)
                ((float*)t.data)[(size_t)o * inputs + i] = weight[(size_t)i * outputs + o];
        weight = t;
    }
    ModelLayer& m = l.emit("InnerProduct");
    m.set("num_output", outputs), m.set("bias_term", (int)p.bias_term());
    m.set("weight_data_size", weight.w);
    m.set_weight("weight_data", weight);
    if (p.bias_term()) m.set_weight("bias_data", bias);
}

void map_embed(CaffeLayer& l) {
    const caffe::EmbedParameter& p = l.p.embed_param();
    const Mat weight = l.blob(0, (size_t)p.num_output() * p.input_dim());
    const Mat bias = p.bias_term() ? l.blob(1, p.num_output()) : Mat();
    if (!l.error.empty()) return;
    ModelLayer& m = l.emit("Embed");
    if (!l.error.empty()) return;
    m.set("num_output", (int)p.num_output()), m.set("input_dim", (int)p.input_dim());
    m.set("bias_term", (int)p.bias_term()), m.set("weight_data_size", weight.w);
    m.set_weight("weight_data", weight);
    if (p.bias_term()) m.set_weight("bias_data", bias);
}

void map_spp(CaffeLayer& l) {
    const caffe::SPPParameter& p = l.p.spp_param();
    if (p.pool() == caffe::SPPParameter::STOCHASTIC)
        return l.fail("stochastic pooling is not supported");
    ModelLayer& m = l.emit("SPP");
    if (!l.error.empty()) return;
    m.set("pooling_type", p.pool() == caffe::SPPParameter::MAX ? 0 : 1);
    m.set("pyramid_height", (int)p.pyramid_height());
}

}  // namespace

CaffeMapper find_window_mapper(const std::string& type) {
    static const std::pair<const char*, CaffeMapper> kTable[] = {
        {"Convolution", map_convolution},
        {"ConvolutionDepthwise", map_depthwise},
        {"DepthwiseConvolution", map_depthwise},
        {"Deconvolution", map_deconvolution},
        {"Embed", map_embed},
        {"InnerProduct", map_inner_product},
        {"Pooling", map_pooling},
        {"SPP", map_spp},
    };
    return find_in(kTable, type);
}

}  // namespace quoll
