// Deconvolutions of 1 to 3 axes with any groups.
#include "layer/nn/deconvolution.h"

#include "layer/vulkan/axes.h"
#include "runtime/log_mute.h"

namespace quoll {

namespace {

class DeconvolutionVulkan : public VulkanLayer {
public:
    explicit DeconvolutionVulkan(const Deconvolution& layer)
        : layer_(layer), f_(layer.activation_type, layer.activation_params) {}

    int load(VulkanContext& context) {
        const std::vector<float> from = values_of(layer_.weight_data);
        const size_t taps = layer_.maxk(), outputs = layer_.num_output;
        const size_t inputs = from.size() / taps / outputs;  // of a group
        std::vector<float> weights(from.size());
        for (size_t o = 0; o < outputs; o++)
            for (size_t c = 0; c < inputs; c++)
                for (size_t tap = 0; tap < taps; tap++)
                    weights[(tap * inputs + c) * outputs + o] = from[(o * inputs + c) * taps + tap];
        QUOLL_RETURN_IF_ERROR(context.weights.add(weights, context.storage, &weight_));
        if (!layer_.bias_term) return kOk;
        return context.weights.add(values_of(layer_.bias_data), Storage::f32, &bias_);
    }
    bool supports(const Shapes& in, const Shapes&) const override {
        const LogMute mute;
        ConvGeometry g;
        return in.size() == 1 && in[0].dims == layer_.axes + 1 &&
               deconvolution_geometry(layer_, layer_, in, &g) == kOk;
    }
    void choose_layouts(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                        Layouts* out) const override {
        all_channels_last(in_shapes, out_shapes, in, out);
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        ConvGeometry g;
        QUOLL_RETURN_IF_ERROR(deconvolution_geometry(layer_, layer_, {in[0].shape}, &g));
        const MemoryAxes from = channel_axes(in[0]), to = channel_axes(out[0]);
        std::vector<uint32_t> table;
        int i = 0;
        for (const WindowAxis* a : {&g.x, &g.y, &g.z}) {
            for (int word : {a->in, a->kernel, a->stride, a->dilation, a->before})
                table.push_back((uint32_t)word);
            table.push_back(from.steps[i++]);
        }
        uint32_t sizes[5];
        for (int k = 0; k < 5; k++) sizes[to.order[k]] = to.stored[k];
        table.insert(table.end(), sizes, sizes + 5);
        table.insert(table.end(), to.steps, to.steps + 5);
        for (int axis : to.order) table.push_back((uint32_t)axis);
        Binding sizes_binding;
        QUOLL_RETURN_IF_ERROR(r.constants(table, &sizes_binding));
        r.dispatch_linear(Shader::deconv, {f_.type, layer_.bias_term},
                          {r.read(in[0]), weight_, layer_.bias_term ? bias_ : weight_,
                           r.write(out[0]), sizes_binding},
                          {to.count(), in[0].first, from.steps[3], from.steps[4], out[0].first,
                           g.num_output, g.num_input / g.group, g.num_output / g.group, f_.a, f_.b},
                          to.count());
        return kOk;
    }

private:
    // The axes with the channels in c: those of 1-D operators are rows.
    MemoryAxes channel_axes(const Value& value) const {
        MemoryAxes a = memory_axes(value);
        if (layer_.axes != 1) return a;
        std::swap(a.sizes[1], a.sizes[3]);
        std::swap(a.steps[1], a.steps[3]);
        for (int i = 0; i < 5; i++) a.stored[i] = a.sizes[a.order[i]];
        return a;
    }

    const Deconvolution& layer_;
    const Activation f_;
    Binding weight_, bias_;
};

}  // namespace

int make_deconvolution_vulkan(const Layer& layer, VulkanContext& context, VulkanLayerPtr* made) {
    const Deconvolution* deconvolution = as<Deconvolution>(&layer);
    if (!deconvolution || deconvolution->dynamic_weight ||
        deconvolution->weight_data.dtype != DType::f32)
        return kOk;
    std::unique_ptr<DeconvolutionVulkan> form(new DeconvolutionVulkan(*deconvolution));
    QUOLL_RETURN_IF_ERROR(form->load(context));
    *made = std::move(form);
    return kOk;
}

}  // namespace quoll
