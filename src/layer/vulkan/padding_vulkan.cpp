#include "layer/tensor/padding.h"

#include "layer/vulkan/axes.h"

namespace quoll {

namespace {

class PaddingVulkan : public VulkanLayer {
public:
    explicit PaddingVulkan(const Padding& layer) : layer_(layer) {}

    int load(VulkanContext& context) {
        std::vector<float> constants(1, layer_.value);
        if (layer_.per_channel_pad_data_size) constants = values_of(layer_.per_channel_pad_data);
        return context.weights.add(constants, Storage::f32, &constants_);
    }
    // Values for channels that the blob does not have are ignored.
    bool supports(const Shapes& in, const Shapes&) const override {
        return in.size() == 1 && (in[0].dims >= 3 || !layer_.per_channel_pad_data_size);
    }
    void choose_layouts(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                        Layouts* out) const override {
        follow_layout(0, in_shapes, out_shapes, in, out);
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        const int dims = in[0].shape.dims;
        uint32_t before[5] = {(uint32_t)layer_.left};
        if (dims >= 2) before[1] = (uint32_t)layer_.top;
        if (dims >= 3) before[dims == 3 ? 3 : 2] = (uint32_t)layer_.front;
        const MemoryAxes from = memory_axes(in[0]), to = memory_axes(out[0]);
        int channel_axis = -1;
        for (int i = 0; i < 5 && layer_.per_channel_pad_data_size; i++)
            if (to.order[i] == 3) channel_axis = i;
        Words push = {to.count(), to.valid, channel_axis, in[0].first, out[0].first};
        for (uint32_t size : to.stored) push.push_back(size);
        push_steps(from.sizes, to, &push);
        push_steps(before, to, &push);
        push_steps(from.steps, to, &push);
        push_steps(to.steps, to, &push);
        r.dispatch_linear(Shader::pad, {layer_.type}, {r.read(in[0]), r.write(out[0]), constants_},
                          push, to.count());
        return kOk;
    }

private:
    const Padding& layer_;
    Binding constants_;
};

}  // namespace

int make_padding_vulkan(const Layer& layer, VulkanContext& context, VulkanLayerPtr* made) {
    const Padding* padding = as<Padding>(&layer);
    if (!padding || padding->top < 0 || padding->left < 0) return kOk;
    std::unique_ptr<PaddingVulkan> form(new PaddingVulkan(*padding));
    QUOLL_RETURN_IF_ERROR(form->load(context));
    *made = std::move(form);
    return kOk;
}

}  // namespace quoll
