// Permute and ShuffleChannel.
#include "layer/tensor/permute.h"
#include "layer/vision/shufflechannel.h"
#include "layer/vulkan/axes.h"
#include "runtime/log_mute.h"

namespace quoll {

namespace {

class PermuteVulkan : public VulkanLayer {
public:
    explicit PermuteVulkan(const Permute& layer) : layer_(layer) {}

    bool supports(const Shapes& in, const Shapes&) const override {
        const LogMute mute;
        int source[4];
        return layer_.axis_order(in[0].dims, source) == kOk;
    }
    // Takes the input in any layout: channels-last pixels may already have the wanted order.
    void choose_layouts(const Shapes&, const Shapes&, Layouts*, Layouts*) const override {}
    bool gives_views() const override { return true; }

    bool alias(const Values& in, size_t, Value* out) const override {
        uint32_t steps[5];
        if (source_steps(in[0], *out, steps) != kOk) return false;
        const MemoryAxes wanted = memory_axes(*out);
        for (int i = 0; i < 5; i++)
            if (wanted.sizes[i] > 1 && wanted.steps[i] != steps[i]) return false;
        out->block = in[0].block, out->constant = in[0].constant, out->first = in[0].first;
        return true;
    }

    int record(Recorder& r, const Values& in, const Values& out) const override {
        uint32_t steps[5];
        QUOLL_RETURN_IF_ERROR(source_steps(in[0], out[0], steps));
        const MemoryAxes to = memory_axes(out[0]);
        std::vector<CopyAxis> axes;
        for (int i = 0; i < 5; i++) axes.push_back({to.sizes[i], steps[i], to.steps[i]});
        record_strided_copy(r, in[0], in[0].first, out[0], out[0].first, axes, to.sizes[0]);
        return kOk;
    }

private:
    // The input's steps along the axes w, h, d, c, n of the output.
    int source_steps(const Value& in, const Value& out, uint32_t steps[5]) const {
        const int dims = in.shape.dims;
        int source[4];
        QUOLL_RETURN_IF_ERROR(layer_.axis_order(dims, source));
        const MemoryAxes own = memory_axes(in);
        for (int i = 0; i < 5; i++) steps[i] = 0;
        for (int axis = 0; axis < dims; axis++)
            steps[axis_index(out.shape.dims, axis)] = own.step(dims, source[axis]);
        steps[4] = own.steps[4];
        return kOk;
    }

    const Permute& layer_;
};

class ShuffleVulkan : public VulkanLayer {
public:
    explicit ShuffleVulkan(const ShuffleChannel& layer) : layer_(layer) {}

    bool supports(const Shapes& in, const Shapes&) const override { return in[0].dims >= 3; }
    void choose_layouts(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                        Layouts* out) const override {
        // Unused channels have to be 0, which a copy with two axes of channels does not store.
        if (in_shapes[0].c % 4 == 0)
            follow_layout(0, in_shapes, out_shapes, in, out);
        else
            VulkanLayer::choose_layouts(in_shapes, out_shapes, in, out);
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        const Shape& s = in[0].shape;
        const uint32_t groups = layer_.reverse ? s.c / layer_.group : layer_.group;
        const uint32_t each = s.c / groups;
        const Strides a = in[0].strides(), b = out[0].strides();
        const CopyAxis group = {groups, each * a.c, b.c}, member = {each, a.c, groups * b.c};
        std::vector<CopyAxis> axes = {
            {(uint32_t)s.w, a.w, b.w}, {(uint32_t)s.h, a.h, b.h}, {(uint32_t)s.d, a.d, b.d}};
        const bool last = out[0].layout == Layout::kChannelsLast;
        const CopyAxis channels[] = {group, member};
        axes.insert(last ? axes.begin() : axes.end(), channels, channels + 2);
        axes.push_back({(uint32_t)s.n, a.n, b.n});
        record_strided_copy(r, in[0], in[0].first, out[0], out[0].first, axes, axes[0].size);
        return kOk;
    }

private:
    const ShuffleChannel& layer_;
};

}  // namespace

int make_permute_vulkan(const Layer& layer, VulkanContext&, VulkanLayerPtr* made) {
    const Permute* permute = as<Permute>(&layer);
    if (permute) made->reset(new PermuteVulkan(*permute));
    const ShuffleChannel* shuffle = as<ShuffleChannel>(&layer);
    if (shuffle) made->reset(new ShuffleVulkan(*shuffle));
    return kOk;
}

}  // namespace quoll
