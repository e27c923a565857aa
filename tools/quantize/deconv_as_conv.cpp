#include "quantize/deconv_as_conv.h"

#include <algorithm>
#include <vector>

#include "layer/nn/deconvolution.h"
#include "quantize/targets.h"
#include "quoll/status.h"

namespace quoll {

namespace {

int taps_of_phase(int kernel, int stride) { return (kernel + stride - 1) / stride; }

// What is cut off after the outputs of all phases on an axis; negative: there are too few.
int cut_behind(int kernel, int stride, int added, int pad_behind) {
    return taps_of_phase(kernel, stride) * stride - kernel - added + pad_behind;
}

bool is_convolution(const Deconvolution& s) {
    const int stride = s.stride_w;
    const bool plain = s.axes == 2 && s.group == 1 && !s.dynamic_weight && s.stride_h == stride &&
                       s.dilation_w == 1 && s.dilation_h == 1;
    const bool padded = std::min({s.pad_left, s.pad_right, s.pad_top, s.pad_bottom}) >= 0;
    const bool sized = s.output_w > 0 && s.output_h > 0 &&
                       std::max({s.pad_left, s.pad_right, s.pad_top, s.pad_bottom}) == 0;
    if (!plain || !padded || sized) return false;
    const double taps = (double)taps_of_phase(s.kernel_w, stride) *
                        taps_of_phase(s.kernel_h, stride) * stride * stride;
    return taps <= 2.0 * s.kernel_w * s.kernel_h &&
           cut_behind(s.kernel_w, stride, s.output_pad_right, s.pad_right) >= 0 &&
           cut_behind(s.kernel_h, stride, s.output_pad_bottom, s.pad_bottom) >= 0;
}

// Output m * stride + phase of an axis is the sum of inputs m - t times taps phase + stride * t.
Mat phase_weights(const Deconvolution& s, const Mat& weight) {
    const int stride = s.stride_w, inputs = weight.w / s.num_output / s.maxk();
    const int across = taps_of_phase(s.kernel_w, stride), down = taps_of_phase(s.kernel_h, stride);
    Mat m(s.num_output * stride * stride * inputs * down * across);
    if (m.empty()) return m;
    float* to = m;
    for (int p = 0; p < s.num_output; p++)
        for (int phase = 0; phase < stride * stride; phase++)
            for (int q = 0; q < inputs; q++) {
                const float* from = (const float*)weight + (size_t)(p * inputs + q) * s.maxk();
                for (int i = 0; i < down * across; i++) {
                    const int y = phase / stride + stride * (down - 1 - i / across);
                    const int x = phase % stride + stride * (across - 1 - i % across);
                    *to++ = y < s.kernel_h && x < s.kernel_w ? from[y * s.kernel_w + x] : 0.f;
                }
            }
    return m;
}

ModelLayer as_convolution(const Deconvolution& s, const ModelLayer& layer, const Mat& phases) {
    const int across = taps_of_phase(s.kernel_w, s.stride_w);
    const int down = taps_of_phase(s.kernel_h, s.stride_h), count = s.stride_w * s.stride_h;
    ModelLayer conv = layer;
    conv.type = "Convolution", conv.params = ParamDict(), conv.weights.clear();
    conv.set("num_output", s.num_output * count);
    conv.set("kernel_w", across), conv.set("kernel_h", down);
    conv.set("pad_left", across - 1), conv.set("pad_right", across - 1);
    conv.set("pad_top", down - 1), conv.set("pad_bottom", down - 1);
    conv.set("weight_data_size", phases.w);
    conv.set("activation_type", s.activation_type);
    const float* p = s.activation_params;
    if (p) conv.set("activation_params", std::vector<float>(p, p + s.activation_params.w));
    conv.set_weight("weight_data", phases);
    const Mat bias = float_weight(layer, "bias_data");
    if (bias.empty()) return conv;
    Mat repeated(s.num_output * count);
    for (int i = 0; i < repeated.w; i++) repeated[i] = bias[i / count];
    conv.set("bias_term", 1);
    conv.set_weight("bias_data", repeated);
    return conv;
}

// The layers that stand for the deconvolution, in order.
int make_layers(const Deconvolution& s, const ModelLayer& layer, const Model& model,
                std::vector<ModelLayer>* made) {
    const Mat weight = float_weight(layer, "weight_data");
    const Mat phases = weight.empty() ? Mat() : phase_weights(s, weight);
    if (phases.empty()) return kError;
    ModelLayer conv = as_convolution(s, layer, phases), shuffle, crop;
    // With stride 1, the padding is what is not cut off.
    const int left = s.kernel_w - 1 - s.pad_left, top = s.kernel_h - 1 - s.pad_top;
    const int right = s.kernel_w - 1 - s.pad_right + s.output_pad_right;
    const int bottom = s.kernel_h - 1 - s.pad_bottom + s.output_pad_bottom;
    if (s.stride_w == 1 && std::min({left, right, top, bottom}) >= 0) {
        conv.set("pad_left", left), conv.set("pad_right", right);
        conv.set("pad_top", top), conv.set("pad_bottom", bottom);
        *made = {conv};
        return kOk;
    }
    const auto unused = [&](std::string blob) {
        while (model.producer(blob) >= 0) blob += "_";
        return blob;
    };
    conv.outputs[0] = unused(layer.outputs[0] + "_phases");
    shuffle.type = "PixelShuffle", shuffle.name = layer.name + "_shuffle";
    shuffle.inputs = conv.outputs, shuffle.outputs = {unused(layer.outputs[0] + "_uncut")};
    shuffle.set("upscale_factor", s.stride_w);
    crop.type = "Crop", crop.name = layer.name + "_crop";
    crop.inputs = shuffle.outputs, crop.outputs = layer.outputs;
    crop.set("woffset", s.pad_left), crop.set("hoffset", s.pad_top);
    crop.set("outw", -233), crop.set("outh", -233), crop.set("outc", -233);
    crop.set("woffset2", cut_behind(s.kernel_w, s.stride_w, s.output_pad_right, s.pad_right));
    crop.set("hoffset2", cut_behind(s.kernel_h, s.stride_h, s.output_pad_bottom, s.pad_bottom));
    *made = {conv, shuffle, crop};
    return kOk;
}

}  // namespace

int deconvolutions_to_convolutions(const QuantizeOptions& options, Model* model) {
    for (size_t i = 0; i < model->layers.size(); i++) {
        const ModelLayer& layer = model->layers[i];
        if (!layer.is<Deconvolution>() || layer.inputs.size() != 1 ||
            !is_static_kind(kind_of_layer(options, layer.name)))
            continue;
        const std::unique_ptr<Layer> op = layer.make_operator();
        const Deconvolution* deconv = as<Deconvolution>(op.get());
        if (!deconv || !is_convolution(*deconv)) continue;
        std::vector<ModelLayer> made;
        QUOLL_RETURN_IF_ERROR(make_layers(*deconv, layer, *model, &made));
        // Where the deconvolution was, as ncnn wants makers before readers.
        model->layers[i] = made[0];
        for (size_t k = 1; k < made.size(); k++)
            model->layers.insert(model->layers.begin() + (long)++i, made[k]);
    }
    return kOk;
}

}  // namespace quoll
