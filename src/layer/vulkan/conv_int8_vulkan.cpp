// Convolutions of int8 values that convolution_vulkan.cpp does not make.
#include "layer/common/activation.h"
#include "layer/nn/convolution.h"
#include "layer/vulkan/vulkan_layer.h"
#include "runtime/log_mute.h"

namespace quoll {

namespace {

// Sums of more products may not fit in 32 bits.
int most_taps(bool affine) { return (int)(0x7fffffffu / (128 * (affine ? 255 : 128))); }

std::vector<uint32_t> bytes_in_words(const Mat& bytes) {
    std::vector<uint32_t> words((bytes.total() + 3) / 4, 0);
    const unsigned char* from = (const unsigned char*)bytes.data;
    for (size_t i = 0; i < bytes.total(); i++) words[i / 4] |= (uint32_t)from[i] << (8 * (i % 4));
    return words;
}

// Zero points of values that have some.
struct ZeroPoints {
    bool affine;
    int in, out;
};

// What both kinds of layers have.
struct Int8Weights {
    const Mat &weight, &scales, &input_scale, &bias;
    const Mat* output_scale;  // null: outputs are floats
    int outputs;
};

class Int8Product : public VulkanLayer {
public:
    Int8Product(const Activation& f, const ZeroPoints& zero) : f_(f), zero_(zero) {}

    int load(const Int8Weights& w, VulkanContext& context) {
        const Mat bytes =
            w.weight.dtype == DType::s8 ? w.weight : quantize_weight(w.weight, w.scales);
        if (bytes.empty()) return kOutOfMemory;
        std::vector<float> factors;
        for (int p = 0; p < w.outputs; p++) {
            const float scale = w.scales[(size_t)((int64_t)p * w.scales.w / w.outputs)];
            factors.push_back(dequantize_scale(w.input_scale[0], scale));
            factors.push_back(w.bias.empty() ? 0.f : w.bias[(size_t)p]);
            factors.push_back(w.output_scale ? (*w.output_scale)[0] : 1.f);
        }
        const std::vector<float> rounding = {1.f, 0.f, w.input_scale[0]};
        QUOLL_RETURN_IF_ERROR(context.weights.add_words(bytes_in_words(bytes), &weight_));
        QUOLL_RETURN_IF_ERROR(context.weights.add(rounding, Storage::f32, &rounding_));
        return context.weights.add(factors, Storage::f32, &factors_);
    }
    bool takes_integers() const override { return true; }

protected:
    bool fits(int64_t taps) const { return taps <= most_taps(zero_.affine); }
    // added: null for nothing. Items lie one after the other.
    int record_product(Recorder& r, const ConvGeometry& g, int pad, const Value& in,
                       const Value* added, const Value& out) const {
        const Value rounded = is_integer(in.shape.dtype) ? in : rounded_input(r, in);
        const bool to_int8 = is_integer(out.shape.dtype);
        const uint32_t count = (uint32_t)out.shape.total();
        Words push = {
            count,       rounded.first, added ? added->first : 0u, out.first,
            g.num_input, g.num_output,  g.num_input / g.group,     g.num_output / g.group};
        for (const auto field : {&WindowAxis::in, &WindowAxis::out, &WindowAxis::kernel,
                                 &WindowAxis::stride, &WindowAxis::dilation, &WindowAxis::before})
            for (const WindowAxis* axis : {&g.x, &g.y, &g.z}) push.push_back(axis->*field);
        push.insert(push.end(), {pad - zero_.in, f_.a, f_.b, zero_.in, zero_.out});
        r.dispatch_linear(
            to_int8 ? Shader::conv_int8_to_int8 : Shader::conv_int8,
            {f_.type, added != nullptr, zero_.affine, r.storage() == Storage::f16},
            {r.read(rounded), weight_, factors_, r.read(added ? *added : in), r.write(out)}, push,
            count);
        return kOk;
    }

private:
    Value rounded_input(Recorder& r, const Value& in) const {
        Shape shape = in.shape;
        shape.dtype = DType::s8;
        const Value made = r.make(shape, Layout::kPlanar);
        const uint32_t total = (uint32_t)shape.total();
        r.dispatch_linear(Shader::quantize, {(int)kActivationNone},
                          {r.read(in), r.write(made), rounding_},
                          {total, in.first, made.first, total, 1, 1, 0.f, 0.f, 0}, total);
        return made;
    }

    const Activation f_;
    const ZeroPoints zero_;
    Binding weight_, rounding_, factors_;
};

class ConvInt8Vulkan : public Int8Product {
public:
    explicit ConvInt8Vulkan(const Convolution& layer)
        : Int8Product(Activation(layer.activation_type, layer.activation_params),
                      {layer.int8_affine != 0, layer.bottom_zero_point, layer.top_zero_point}),
          layer_(layer) {}

    bool supports(const Shapes& in, const Shapes& out) const override {
        const LogMute mute;
        ConvGeometry g;
        if (convolution_geometry(layer_, layer_, in, &g) != kOk) return false;
        // What is added is of the output's size, and that is what the convolution makes.
        const size_t made = (size_t)g.num_output * g.x.out * g.y.out * g.z.out * in[0].n;
        if (in.size() != (layer_.add_input ? 2u : 1u) || made != out[0].total() ||
            (in.size() == 2 && in[1] != as_floats(out[0])))
            return false;
        return fits((int64_t)g.num_input / g.group * g.maxk());
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        Shapes shapes;
        for (const Value& value : in) shapes.push_back(value.shape);
        ConvGeometry g;
        QUOLL_RETURN_IF_ERROR(convolution_geometry(layer_, layer_, shapes, &g));
        return record_product(r, g, layer_.int8_padding(), in[0],
                              layer_.add_input ? &in[1] : nullptr, out[0]);
    }

private:
    static Shape as_floats(Shape out) {
        out.dtype = DType::f32;
        return out;
    }
    const Convolution& layer_;
};

template <class Form, class Op>
int make_form(const Op& layer, const Mat* output_scale, VulkanContext& context,
              VulkanLayerPtr* made) {
    std::unique_ptr<Form> form(new Form(layer));
    QUOLL_RETURN_IF_ERROR(
        form->load({layer.weight_data, layer.weight_data_int8_scales, layer.bottom_blob_int8_scales,
                    layer.bias_data, output_scale, layer.num_output},
                   context));
    *made = std::move(form);
    return kOk;
}

}  // namespace

int make_conv_int8_vulkan(const Layer& layer, VulkanContext& context, VulkanLayerPtr* made) {
    const Convolution* c = as<Convolution>(&layer);
    if (c && c->int8_scale_term && !c->int16_input() && !c->dynamic_weight)
        return make_form<ConvInt8Vulkan>(*c, c->int8_output() ? &c->top_blob_int8_scales : nullptr,
                                         context, made);
    return kOk;
}

}  // namespace quoll
