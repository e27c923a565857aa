// Layers with a window, and those with a matrix of weights.
#include <algorithm>

#include "caffe/converter.h"
#include "layer/elementwise/binaryop.h"

namespace quoll {

namespace {

// One number per spatial axis, from a repeated field with one value for all or one each, or from
// fields of height and width.
template <class Repeated>
std::vector<int> per_axis(CaffeLayer& l, const char* what, const Repeated& values,
                          const std::vector<int>& own, int def, int least, size_t axes) {
    std::vector<int> numbers(axes, def);
    if (!own.empty() && axes == 2)
        numbers = own;
    else if (values.size() == 1)
        numbers.assign(axes, (int)values.Get(0));
    else if (values.size() == (int)axes)
        numbers.assign(values.begin(), values.end());
    else if (values.size() != 0)
        l.fail(std::string(what) + ": expected 1 or " + std::to_string(axes) + " values");
    for (int n : numbers)
        if (n < least || n > kMostPositions)
            l.fail(std::string(what) + ": expected " + std::to_string(least) + " to " +
                   std::to_string(kMostPositions));
    return numbers;
}

// A window over 1 to 3 axes, from the outermost on.
struct Window {
    std::vector<int> kernel, stride, dilation, pad;
    int64_t size() const {
        int64_t product = 1;
        for (int k : kernel) product = std::min<int64_t>(product * k, (int64_t)1 << 31);
        return product;
    }
};

Window window_of(CaffeLayer& l, const caffe::ConvolutionParameter& p) {
    const int dims = l.shape(0).dims;
    const size_t axes = dims == 2 || dims == 4 ? dims - 1 : 2;
    const auto own = [](bool has, int h, int w) {
        return has ? std::vector<int>{h, w} : std::vector<int>();
    };
    Window w;
    w.kernel =
        per_axis(l, "kernel_size", p.kernel_size(),
                 own(p.has_kernel_h() || p.has_kernel_w(), p.kernel_h(), p.kernel_w()), 0, 1, axes);
    w.stride =
        per_axis(l, "stride", p.stride(),
                 own(p.has_stride_h() || p.has_stride_w(), p.stride_h(), p.stride_w()), 1, 1, axes);
    w.pad = per_axis(l, "pad", p.pad(), own(p.has_pad_h() || p.has_pad_w(), p.pad_h(), p.pad_w()),
                     0, 0, axes);
    w.dilation = per_axis(l, "dilation", p.dilation(), {}, 1, 1, axes);
    return w;
}

void set_window(ModelLayer& m, const Window& w) {
    static const char* const kSide[] = {"w", "h", "d"};
    static const char* const kBefore[] = {"pad_left", "pad_top", "pad_front"};
    static const char* const kBehind[] = {"pad_right", "pad_bottom", "pad_behind"};
    const size_t axes = w.kernel.size();
    for (size_t i = 0; i < axes; i++) {
        const size_t a = axes - 1 - i;
        const auto set = [&](const char* name, int value) {
            m.set((std::string(name) + kSide[i]).c_str(), value);
        };
        set("kernel_", w.kernel[a]), set("stride_", w.stride[a]);
        set("dilation_", w.dilation[a]);
        m.set(kBefore[i], w.pad[a]), m.set(kBehind[i], w.pad[a]);
    }
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
    if (to.empty()) l.fail("out of memory");
    const int in = inputs / group;
    for (int g = 0; g < group && !to.empty(); g++)
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
    if (l.error.empty() && transposed) weight = swap_channels(l, weight, group, outputs, w.size());
    if (!l.error.empty()) return;
    static const char* const kAxes[] = {"", "1D", "", "3D"};
    ModelLayer& m = l.emit(std::string(transposed ? "Deconvolution" : "Convolution") +
                           (group > 1 ? "DepthWise" : "") + kAxes[w.kernel.size()]);
    m.set("num_output", outputs);
    set_window(m, w);
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

    bool known() const { return size > 0; }
    // Caffe: rounded up, and, if there is a border, no window that begins behind the blob.
    int caffe_outputs(bool border) const {
        const int64_t span = (int64_t)size + 2 * pad - kernel;
        int64_t n = (span > 0 ? (span + stride - 1) / stride : -(-span / stride)) + 1;
        if (border && (n - 1) * stride >= (int64_t)size + pad) n--;
        return (int)std::max<int64_t>(0, n);
    }
    // Rounding up may give a window that Caffe drops.
    bool may_clip() const { return pad > kernel - stride; }
    // Positions that the last window reaches beyond the border.
    int64_t tail(bool border) const {
        return (int64_t)(caffe_outputs(border) - 1) * stride + kernel - ((int64_t)size + 2 * pad);
    }
};

// The numbers of a pooling layer. pads: before and behind w, before and behind h.
void set_pool(ModelLayer& m, int type, const PoolAxis& h, const PoolAxis& w, int mode,
              const std::vector<int>& pads) {
    m.set("pooling_type", type), m.set("pad_mode", mode);
    m.set("kernel_w", w.kernel), m.set("kernel_h", h.kernel);
    m.set("stride_w", w.stride), m.set("stride_h", h.stride);
    m.set("pad_left", pads[0]), m.set("pad_right", pads[1]);
    m.set("pad_top", pads[2]), m.set("pad_bottom", pads[3]);
}

void pool_all(CaffeLayer& l, int type, const std::string& suffix) {
    ModelLayer& m = l.emit("Pooling", l.in, l.out, suffix);
    m.set("pooling_type", type), m.set("adaptive_pooling", 1);
    m.set("out_w", 1), m.set("out_h", 1);
}

// The windows of the engine's rounding up are those of Caffe unless Caffe drops some: then the
// borders, which need a known size, say how many there are.
void pool_windows(CaffeLayer& l, int type, bool floor, const PoolAxis& h, const PoolAxis& w,
                  const std::string& suffix) {
    const bool border = h.pad > 0 || w.pad > 0;
    const bool known = h.known() && w.known();
    const bool clip = !floor && border && (h.may_clip() || w.may_clip());
    if (clip && !known)
        return l.fail("its window needs the size of the input, which the prototxt does not say");
    if (known && (h.caffe_outputs(border) < 1 || w.caffe_outputs(border) < 1))
        return l.fail("its window is larger than the input");
    const int tail_h = known && !floor ? (int)h.tail(border) : 0;
    const int tail_w = known && !floor ? (int)w.tail(border) : 0;
    const int mode = floor || clip ? 1 : 0;
    std::vector<int> pads = {w.pad, w.pad, h.pad, h.pad};
    std::vector<std::string> from = l.in;
    // Averages count the border, but not what rounding up adds behind it.
    const bool split = type == 1 && border && !floor && (!known || tail_h > 0 || tail_w > 0);
    if (split) {
        ModelLayer& m = l.emit("Padding", from, {l.between("padded")}, "_pad");
        m.set("left", pads[0]), m.set("right", pads[1]);
        m.set("top", pads[2]), m.set("bottom", pads[3]);
        from = {l.between("padded")};
        pads.assign(4, 0);
    }
    if (clip) pads[1] = std::max(0, pads[1] + tail_w), pads[3] = std::max(0, pads[3] + tail_h);
    ModelLayer& m = l.emit("Pooling", from, l.out, suffix);
    set_pool(m, type, h, w, mode, pads);
    if (type == 1 && border && !split) m.set("avgpool_count_include_pad", 1);
}

// Maxima and their places, for an Upsample layer.
void pool_with_mask(CaffeLayer& l, bool floor, const PoolAxis& h, const PoolAxis& w) {
    // Without a border Caffe has windows that begin behind the blob, which have no place.
    for (const PoolAxis& a : {h, w})
        if (!floor && h.pad == 0 && w.pad == 0 && a.stride > a.kernel &&
            (!a.known() || (int64_t)(a.caffe_outputs(false) - 1) * a.stride >= a.size))
            return l.fail("its last window may begin behind the input");
    ModelLayer& m = l.emit("WindowPool");
    m.set("op_type", 0), m.set("ceil_mode", (int)!floor);
    m.set("kernel", std::vector<int>{h.kernel, w.kernel});
    m.set("strides", std::vector<int>{h.stride, w.stride});
    m.set("pads", std::vector<int>{h.pad, w.pad, h.pad, w.pad});
    l.notes.push_back("'" + l.p.top(1) +
                      "' counts places through all channels, as int32; Upsample reads it so");
}

// Stochastic pooling when testing: the mean of the window's values, each weighted by itself.
// average(suffix) emits the average pooling from l.in to l.out.
template <class Average>
void pool_by_chance(CaffeLayer& l, const Average& average) {
    const std::vector<std::string> in = l.in, out = l.out;
    const std::string squares = l.between("squares"), above = l.between("above");
    const std::string below = l.between("below"), sum = l.between("sum");
    l.emit("Power", in, {squares}, "_squares").set("power", 2.f);
    l.in = {squares}, l.out = {above};
    average("_above");
    l.in = in, l.out = {below};
    average("_below");
    l.in = in, l.out = out;
    ModelLayer& m = l.emit("BinaryOp", {below}, {sum}, "_positive");
    m.set("op_type", BinaryOp::ADD), m.set("with_scalar", 1), m.set("b", 1e-30f);
    l.emit("BinaryOp", {above, sum}, out, "").set("op_type", BinaryOp::DIV);
}

void map_pooling(CaffeLayer& l) {
    const caffe::PoolingParameter& p = l.p.pooling_param();
    const bool stochastic = p.pool() == caffe::PoolingParameter::STOCHASTIC;
    const int type = p.pool() == caffe::PoolingParameter::MAX ? 0 : 1;
    if (l.out.size() > 2 || (l.out.size() == 2 && (type || p.global_pooling())))
        return l.fail("expected 1 output, or 2 for the mask of a maximum");
    if (p.global_pooling() && stochastic)
        return pool_by_chance(l, [&](const char* suffix) { pool_all(l, 1, suffix); });
    if (p.global_pooling()) return pool_all(l, type, "");
    const Shape s = l.shape(0);
    if (s.dims && s.dims != 3) return l.fail("expected an input of 3 axes besides the batch");
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
    if (l.out.size() == 2) return pool_with_mask(l, floor, h, w);
    if (!stochastic) return pool_windows(l, type, floor, h, w, "");
    if (h.pad > 0 || w.pad > 0) return l.fail("pad: expected 0 with stochastic pooling");
    pool_by_chance(l, [&](const char* suffix) { pool_windows(l, 1, floor, h, w, suffix); });
}

// (inputs, outputs) as (outputs, inputs).
Mat transposed(const Mat& weight, int outputs) {
    const Mat t(weight.w);
    const int inputs = weight.w / outputs;
    for (int o = 0; o < outputs && !t.empty(); o++)
        for (int i = 0; i < inputs; i++)
            ((float*)t.data)[(size_t)o * inputs + i] = weight[(size_t)i * outputs + o];
    return t;
}

// The axes from `axis` on are the inputs; each of those before has outputs of its own.
void map_inner_product(CaffeLayer& l) {
    const caffe::InnerProductParameter& p = l.p.inner_product_param();
    const int outputs = (int)p.num_output();
    const Shape s = l.shape(0);
    if (outputs <= 0) return l.fail("num_output: expected 1 or more");
    if (!s.dims && p.axis() != 1) return l.fail("axis: it needs the size of the input");
    const int first = s.dims ? l.axis(p.axis(), s.dims) : 0;
    Mat weight = l.blob(0);
    const Mat bias = p.bias_term() ? l.blob(1, outputs) : Mat();
    if (!l.error.empty()) return;
    std::vector<int64_t> sizes;
    size_t inputs = s.dims ? 1 : weight.w / outputs;
    for (int a = 0; a < s.dims; a++)
        if (a < first)
            sizes.push_back(s.size(a));
        else
            inputs *= s.size(a);
    if (inputs * outputs != (size_t)weight.w)
        return l.fail("weight 0: expected " + std::to_string(inputs * outputs) + " values, got " +
                      std::to_string(weight.w));
    if (p.transpose()) weight = transposed(weight, outputs);
    const bool rows = s.dims == 2 && first == 1, folded = first > 0 && !rows;
    std::vector<std::string> from = l.in, to = l.out;
    if (folded) from = {l.between("rows")}, to = {l.between("columns")};
    if (folded) emit_reshape(l, l.in[0], from[0], "_rows", {-1, (int64_t)inputs});
    // Rows of the right length would be taken each by itself.
    if (first == 0 && s.dims == 2) {
        from = {l.between("flat")};
        l.emit("Flatten", l.in, from, "_flat");
    }
    ModelLayer& m = l.emit("InnerProduct", from, to, "");
    m.set("num_output", outputs), m.set("bias_term", (int)p.bias_term());
    m.set("weight_data_size", weight.w);
    m.set_weight("weight_data", weight);
    if (p.bias_term()) m.set_weight("bias_data", bias);
    sizes.push_back(outputs);
    if (folded) emit_reshape(l, to[0], l.out[0], "_axes", sizes);
}

void map_embed(CaffeLayer& l) {
    const caffe::EmbedParameter& p = l.p.embed_param();
    const Mat weight = l.blob(0, (size_t)p.num_output() * p.input_dim());
    const Mat bias = p.bias_term() ? l.blob(1, p.num_output()) : Mat();
    if (!l.error.empty()) return;
    // Caffe's indexes are floats.
    l.emit("CastTo", l.in, {l.between("indexes")}, "_indexes").set("to", 3);
    ModelLayer& m = l.emit("Embed", {l.between("indexes")}, l.out, "");
    m.set("num_output", (int)p.num_output()), m.set("input_dim", (int)p.input_dim());
    m.set("bias_term", (int)p.bias_term()), m.set("weight_data_size", weight.w);
    m.set_weight("weight_data", weight);
    if (p.bias_term()) m.set_weight("bias_data", bias);
}

// Each level is a pooling of its own: the engine's SPP counts zeros around the blob in maxima.
void map_spp(CaffeLayer& l) {
    const caffe::SPPParameter& p = l.p.spp_param();
    const Shape s = l.shape(0);
    if (p.pool() == caffe::SPPParameter::STOCHASTIC)
        return l.fail("stochastic pooling is not supported");
    if (s.dims != 3 || std::max(s.h, s.w) > kMostPositions)
        return l.fail("expected an input of a known size, with 3 axes");
    if (p.pyramid_height() < 1 || p.pyramid_height() > 12)
        return l.fail("pyramid_height: expected 1 to 12");
    std::vector<std::string> levels;
    for (uint32_t i = 0; i < p.pyramid_height(); i++) {
        const int bins = 1 << i, kernel_h = (s.h + bins - 1) / bins;
        const int kernel_w = (s.w + bins - 1) / bins;
        const int rest_h = kernel_h * bins - s.h, rest_w = kernel_w * bins - s.w;
        const PoolAxis h = {s.h, kernel_h, kernel_h, (rest_h + 1) / 2};
        const PoolAxis w = {s.w, kernel_w, kernel_w, (rest_w + 1) / 2};
        if (h.pad >= h.kernel || w.pad >= w.kernel)
            return l.fail("pyramid_height: the input is too small for " +
                          std::to_string(p.pyramid_height()) + " levels");
        const std::string level = std::to_string(i);
        ModelLayer& m = l.emit("Pooling", l.in, {l.between("pool" + level)}, "_pool" + level);
        set_pool(m, p.pool() == caffe::SPPParameter::MAX ? 0 : 1, h, w, 1,
                 {w.pad, rest_w - w.pad, h.pad, rest_h - h.pad});
        m.set("avgpool_count_include_pad", 1);
        levels.push_back(l.between("level" + level));
        emit_reshape(l, l.between("pool" + level), levels.back(), "_flat" + level, {-1});
    }
    l.emit("Concat", levels, l.out, "").set("axis", 0);
}

void map_im2col(CaffeLayer& l) {
    const Shape s = l.shape(0);
    const Window w = window_of(l, l.p.convolution_param());
    if (s.dims != 3) return l.fail("expected an input of a known size, with 3 axes");
    if (!l.error.empty()) return;
    ModelLayer& m = l.emit("Unfold", l.in, {l.between("columns")}, "");
    set_window(m, w);
    int64_t size[2];
    for (int a = 0; a < 2; a++)
        size[a] = (s.size(a + 1) + 2ll * w.pad[a] - (w.kernel[a] - 1ll) * w.dilation[a] - 1) /
                      w.stride[a] +
                  1;
    emit_reshape(l, l.between("columns"), l.out[0], "_axes", {-1, size[0], size[1]});
}

}  // namespace

CaffeMapper find_window_mapper(const std::string& type) {
    static const std::pair<const char*, CaffeMapper> kTable[] = {
        {"Convolution", map_convolution},
        {"ConvolutionDepthwise", map_depthwise},
        {"DepthwiseConvolution", map_depthwise},
        {"Deconvolution", map_deconvolution},
        {"Embed", map_embed},
        {"Im2col", map_im2col},
        {"InnerProduct", map_inner_product},
        {"Pooling", map_pooling},
        {"SPP", map_spp},
    };
    return find_in(kTable, type);
}

}  // namespace quoll
