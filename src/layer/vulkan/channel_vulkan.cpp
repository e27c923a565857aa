// Layers with a factor or a term for each channel: BatchNorm, Scale, Bias, PReLU.
#include "layer/activation/prelu.h"
#include "layer/elementwise/bias.h"
#include "layer/elementwise/binaryop.h"
#include "layer/elementwise/scale.h"
#include "layer/norm/batchnorm.h"
#include "layer/vulkan/axes.h"

namespace quoll {

namespace {

// Without values: none.
struct ChannelFactors {
    Mat factors, terms;
    bool slope = false;   // the factors are those of negative values
    bool axis_c = false;  // channels are the axis c, not the outermost one
};

class ChannelVulkan : public VulkanLayer {
public:
    explicit ChannelVulkan(const ChannelFactors& f)
        : slope_(f.slope),
          axis_c_(f.axis_c),
          has_factors_(!f.factors.empty()),
          has_terms_(!f.terms.empty()),
          count_(has_factors_ ? f.factors.w : f.terms.w) {}

    int load(const ChannelFactors& f, VulkanContext& context) {
        QUOLL_RETURN_IF_ERROR(context.weights.add(values_of(has_factors_ ? f.factors : f.terms),
                                                  Storage::f32, &factors_));
        if (!has_terms_) return kOk;
        return context.weights.add(values_of(f.terms), Storage::f32, &terms_);
    }
    bool supports(const Shapes& in, const Shapes& out) const override {
        return in.size() == 1 && out.size() == 1;
    }
    void choose_layouts(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                        Layouts* out) const override {
        follow_layout(0, in_shapes, out_shapes, in, out);
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        const Shape& s = in[0].shape;
        const Rows from = rows_of(in[0]), to = rows_of(out[0]);
        const uint32_t count = to.count * to.vectors();
        const bool last = out[0].layout == Layout::kChannelsLast;
        const uint32_t each = s.dims >= 3 || axis_c_ ? plane(s) : s.dims == 2 ? s.w : 1;
        // A blob of one channel takes the first of the values.
        const uint32_t channels = axis_c_ && s.dims < 3 ? 1 : count_;
        r.dispatch_linear(
            Shader::channel, {slope_, has_factors_, has_terms_},
            {r.read(in[0]), r.write(out[0]), factors_, has_terms_ ? terms_ : factors_},
            {count, to.vectors(), to.length, in[0].first / 4, from.pitch / 4, out[0].first / 4,
             to.pitch / 4, channels, last ? 1 : each},
            count);
        return kOk;
    }

private:
    const bool slope_, axis_c_, has_factors_, has_terms_;
    const uint32_t count_;
    Binding factors_, terms_;
};

// Scale whose factors are the second input.
class ScaledVulkan : public VulkanLayer {
public:
    bool supports(const Shapes& in, const Shapes& out) const override {
        return in.size() == 2 && out.size() == 1 && in[0].n == 1 && in[1].n == 1;
    }
    void choose_layouts(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                        Layouts* out) const override {
        follow_layout(0, in_shapes, out_shapes, in, out);
        (*in)[1] = Layout::kPlanar;
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        const MemoryAxes from = memory_axes(in[0]), to = memory_axes(out[0]);
        uint32_t factors[5] = {};
        factors[axis_index(in[0].shape.dims, 0)] = 1;
        Words push = {to.count(), to.valid, in[0].first, in[1].first, out[0].first};
        for (uint32_t size : to.stored) push.push_back(size);
        push_steps(from.steps, to, &push);
        push_steps(factors, to, &push);
        push_steps(to.steps, to, &push);
        r.dispatch_linear(Shader::binary_strided, {(int)BinaryOp::MUL},
                          {r.read(in[0]), r.read(in[1]), r.write(out[0])}, push, to.count());
        return kOk;
    }
};

bool factors_of(const Layer& layer, ChannelFactors* f) {
    if (const BatchNorm* s = as<BatchNorm>(&layer)) {
        f->factors = s->b_data, f->terms = s->a_data;
    } else if (const Scale* s = as<Scale>(&layer)) {
        if (s->scale_is_input()) return false;
        f->factors = s->scale_data;
        if (s->bias_term) f->terms = s->bias_data;
    } else if (const Bias* s = as<Bias>(&layer)) {
        f->terms = s->bias_data, f->axis_c = true;
    } else if (const PReLU* s = as<PReLU>(&layer)) {
        f->factors = s->slope_data, f->slope = true;
    }
    return !f->factors.empty() || !f->terms.empty();
}

}  // namespace

int make_channel_vulkan(const Layer& layer, VulkanContext& context, VulkanLayerPtr* made) {
    const Scale* scale = as<Scale>(&layer);
    if (scale && scale->scale_is_input()) made->reset(new ScaledVulkan);
    ChannelFactors f;
    if (!factors_of(layer, &f)) return kOk;
    std::unique_ptr<ChannelVulkan> form(new ChannelVulkan(f));
    QUOLL_RETURN_IF_ERROR(form->load(f, context));
    *made = std::move(form);
    return kOk;
}

}  // namespace quoll
