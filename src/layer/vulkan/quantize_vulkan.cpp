// Quantize, Dequantize, Requantize, and casts between floats and integers.
#include <algorithm>

#include "layer/common/activation.h"
#include "layer/elementwise/cast.h"
#include "layer/elementwise/tensorunary.h"
#include "layer/quantize/affine.h"
#include "layer/quantize/dequantize.h"
#include "layer/quantize/quantize.h"
#include "layer/quantize/requantize.h"
#include "layer/vulkan/axes.h"

namespace quoll {

namespace {

bool same_sizes_of_types(const Shapes& in, const Shapes& out, bool from_integers,
                         bool to_integers) {
    return in.size() == 1 && is_integer(in[0].dtype) == from_integers &&
           is_integer(out[0].dtype) == to_integers && in[0].total() == out[0].total();
}

// Scale, bias and scale of the output for each index of the outermost axis, or once.
std::vector<float> factors_of(const Mat& scale, const Mat& bias, const Mat& scale_out) {
    const int count = std::max({scale.w, bias.w, scale_out.w, 1});
    std::vector<float> factors;
    const auto at = [&](const Mat& m, int i, float none) {
        return m.empty() ? none : m[m.w == 1 ? 0 : (size_t)i];
    };
    for (int i = 0; i < count; i++)
        for (float factor : {at(scale, i, 1.f), at(bias, i, 0.f), at(scale_out, i, 1.f)})
            factors.push_back(factor);
    return factors;
}

class QuantizeVulkan : public VulkanLayer {
public:
    // zero: zero point, of values that have one (layer/common/affine8.h).
    QuantizeVulkan(Shader shader, const Activation& f, bool affine = false, int zero = 0)
        : shader_(shader), f_(f), affine_(affine), zero_(zero) {}
    int load(const std::vector<float>& factors, WeightStore* weights) {
        count_ = (uint32_t)factors.size() / 3;
        return weights->add(factors, Storage::f32, &factors_);
    }

    bool takes_integers() const override { return true; }
    bool supports(const Shapes& in, const Shapes& out) const override {
        return same_sizes_of_types(in, out, shader_ != Shader::quantize,
                                   shader_ != Shader::dequantize);
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        const Shape& s = in[0].shape;
        const uint32_t total = (uint32_t)s.total(), outer = (uint32_t)s.size(0);
        // A 1-D blob takes the first ones.
        const uint32_t count = s.dims == 1 ? 1 : count_;
        r.dispatch_linear(shader_, {f_.type, affine_}, {r.read(in[0]), r.write(out[0]), factors_},
                          {total, in[0].first, out[0].first, total / s.n / outer, outer, count,
                           f_.a, f_.b, zero_},
                          total);
        return kOk;
    }

private:
    const Shader shader_;
    const Activation f_;
    const bool affine_;
    const int zero_;
    Binding factors_;
    uint32_t count_ = 1;
};

class AffineBinaryVulkan : public VulkanLayer {
public:
    explicit AffineBinaryVulkan(const AffineBinary& layer) : layer_(layer) {}
    bool takes_integers() const override { return true; }
    bool supports(const Shapes& in, const Shapes& out) const override {
        if (layer_.activation_type > kActivationClip) return false;
        for (const Shape& shape : in) {
            if (shape.dims != out[0].dims) return false;
            for (int axis = 0; axis < shape.dims; axis++)
                if (shape.size(axis) != 1 && shape.size(axis) != out[0].size(axis)) return false;
        }
        return items_fit(in, out[0].n);
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        const Value &a = in[0], &b = in.back();
        const Activation f(layer_.activation_type, layer_.activation_params);
        const uint32_t total = (uint32_t)out[0].shape.total();
        Words push = {total, a.first, b.first, out[0].first};
        for (uint32_t size : memory_axes(out[0]).sizes) push.push_back(size);
        for (const Value* value : {&a, &b}) {
            uint32_t steps[5];
            spread_steps(*value, 0, out[0], steps);
            push.insert(push.end(), steps, steps + 5);
        }
        push.insert(push.end(), {layer_.a_zero_point, layer_.b_zero_point, layer_.top_zero_point,
                                 layer_.a_scale, layer_.b_scale, 1.f / layer_.top_scale, f.a, f.b});
        r.dispatch_linear(Shader::affine_binary, {f.type, in.size() == 1 ? 2 : layer_.op_type},
                          {r.read(a), r.read(b), r.write(out[0])}, push, total);
        return kOk;
    }

private:
    const AffineBinary& layer_;
};

class ConvertVulkan : public VulkanLayer {
public:
    explicit ConvertVulkan(bool to_bool) : to_bool_(to_bool) {}
    bool takes_integers() const override { return true; }
    bool supports(const Shapes& in, const Shapes& out) const override {
        const bool some = is_integer(in[0].dtype) || is_integer(out[0].dtype);
        return some && in.size() == 1 && in[0].total() == out[0].total();
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        const bool from = is_integer(in[0].shape.dtype), to = is_integer(out[0].shape.dtype);
        const Shader shader = from && to ? Shader::convert_int
                              : from     ? Shader::convert_from_int
                                         : Shader::convert_to_int;
        const uint32_t total = (uint32_t)in[0].shape.total();
        r.dispatch_linear(shader, {(int)out[0].shape.dtype, to_bool_},
                          {r.read(in[0]), r.write(out[0])}, {total, in[0].first, out[0].first},
                          total);
        return kOk;
    }

private:
    const bool to_bool_;
};

int make_quantize(Shader shader, const Mat& scale, const Mat& bias, const Mat& scale_out,
                  const Activation& f, VulkanContext& context, VulkanLayerPtr* made) {
    std::unique_ptr<QuantizeVulkan> layer(new QuantizeVulkan(shader, f));
    QUOLL_RETURN_IF_ERROR(layer->load(factors_of(scale, bias, scale_out), &context.weights));
    *made = std::move(layer);
    return kOk;
}

int make_affine(Shader shader, float scale, int zero, VulkanContext& context,
                VulkanLayerPtr* made) {
    const Activation none(kActivationNone, Mat());
    std::unique_ptr<QuantizeVulkan> layer(new QuantizeVulkan(shader, none, true, zero));
    QUOLL_RETURN_IF_ERROR(layer->load({scale, 0.f, 1.f}, &context.weights));
    *made = std::move(layer);
    return kOk;
}

}  // namespace

int make_quantize_vulkan(const Layer& layer, VulkanContext& context, VulkanLayerPtr* made) {
    const Mat none;
    const Activation as_it_is(kActivationNone, none);
    if (const Quantize* q = as<Quantize>(&layer))
        return make_quantize(Shader::quantize, none, none, q->scale_data, as_it_is, context, made);
    if (const Dequantize* q = as<Dequantize>(&layer))
        return make_quantize(Shader::dequantize, q->scale_data, q->bias_data, none, as_it_is,
                             context, made);
    if (const Requantize* q = as<Requantize>(&layer))
        return make_quantize(Shader::requantize, q->scale_in_data, q->bias_data, q->scale_out_data,
                             Activation(q->activation_type, q->activation_params), context, made);
    if (const AffineQuantize* q = as<AffineQuantize>(&layer))
        return make_affine(Shader::quantize, q->scale, q->zero_point, context, made);
    if (const AffineDequantize* q = as<AffineDequantize>(&layer))
        return make_affine(Shader::dequantize, q->scale, q->zero_point, context, made);
    if (const AffineBinary* binary = as<AffineBinary>(&layer))
        made->reset(new AffineBinaryVulkan(*binary));
    const Cast* cast = as<Cast>(&layer);
    if (cast && cast->type_to == Cast::kInt8) {
        Mat one(1);
        if (one.empty()) return kOutOfMemory;
        one[0] = 1.f;
        return make_quantize(Shader::quantize, none, none, one, as_it_is, context, made);
    }
    const CastTo* cast_to = as<CastTo>(&layer);
    if (cast_to) made->reset(new ConvertVulkan(cast_to->to == CastTo::kBool));
    if (cast && cast->type_from == Cast::kInt8) made->reset(new ConvertVulkan(false));
    return kOk;
}

}  // namespace quoll
