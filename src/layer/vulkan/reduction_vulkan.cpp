// Reduction and LRN.
#include "layer/tensor/reduction.h"

#include "layer/norm/lrn.h"
#include "layer/vulkan/lines.h"
#include "runtime/log_mute.h"

namespace quoll {

namespace {

class ReductionVulkan : public VulkanLayer {
public:
    explicit ReductionVulkan(const Reduction& layer) : layer_(layer) {}

    bool supports(const Shapes& in, const Shapes&) const override {
        const LogMute mute;
        unsigned mask;
        return in.size() == 1 && in[0].dtype != DType::s32 &&
               layer_.reduced_axes(in[0].dims, &mask) == kOk;
    }
    // The input in any layout.
    void choose_layouts(const Shapes&, const Shapes&, Layouts*, Layouts*) const override {}

    int record(Recorder& r, const Values& in, const Values& out) const override {
        const Shape& s = in[0].shape;
        unsigned mask;
        QUOLL_RETURN_IF_ERROR(layer_.reduced_axes(s.dims, &mask));
        bool reduced[5] = {};
        for (int i = 0; i < s.dims; i++) reduced[axis_index(s.dims, i)] = mask >> i & 1;
        const MemoryAxes from = memory_axes(in[0]);
        // Outputs have no gaps, in the order w, h, d, c, n of the axes that are left.
        uint32_t to[5], count = 1;
        for (int i = 0; i < 5; i++) {
            to[i] = count;
            if (!reduced[i]) count *= from.sizes[i];
        }
        Lines lines;
        for (int i : from.order)
            if (from.sizes[i] > 1)
                (reduced[i] ? lines.within : lines.across)
                    .push_back({from.sizes[i], from.steps[i], reduced[i] ? 0 : to[i], 0});
        Binding table;
        QUOLL_RETURN_IF_ERROR(lines.table(r, &table));
        lines.dispatch(r, Shader::reduce, {layer_.operation},
                       {r.read(in[0]), r.write(out[0]), table},
                       {lines.count(), lines.length(), in[0].first, out[0].first, layer_.coeff});
        return kOk;
    }

private:
    const Reduction& layer_;
};

// The largest neighbourhoods, to each side, that lrn.comp unrolls.
const int kMostUnrolled = 4;

class LrnVulkan : public VulkanLayer {
public:
    explicit LrnVulkan(const LRN& layer) : layer_(layer) {}

    bool supports(const Shapes& in, const Shapes&) const override {
        return in[0].dims <= 3 && !layer_.has_negative_powers();
    }
    void choose_layouts(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                        Layouts* out) const override {
        // Nothing is stored behind the last channel.
        if (in_shapes[0].dims == 3 && in_shapes[0].c % 4 == 0)
            follow_layout(0, in_shapes, out_shapes, in, out);
        else
            VulkanLayer::choose_layouts(in_shapes, out_shapes, in, out);
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        const MemoryAxes a = memory_axes(in[0]), b = memory_axes(out[0]);
        const int size = layer_.local_size, half = size / 2;
        const bool channels = layer_.region_type == 0;
        Words push = {(uint32_t)in[0].shape.total(), in[0].first, out[0].first}, words[5];
        for (int i : b.order) {
            if (i == 2) continue;  // d is 1
            const bool reaches = channels ? i == 3 : i < 2;
            words[0].push_back(a.sizes[i]);
            words[1].push_back(a.steps[i]);
            words[2].push_back(b.steps[i]);
            words[3].push_back(reaches ? half : 0);
            words[4].push_back(reaches ? size - 1 - half : 0);
        }
        for (const Words& list : words) push.insert(push.end(), list.begin(), list.end());
        const float terms = channels ? (float)size : (float)size * (float)size;
        push.push_back(layer_.bias), push.push_back(layer_.alpha / terms);
        push.push_back(layer_.beta);
        const bool odd = size % 2 == 1;  // as far up as down
        const bool first = channels && odd && b.order[0] == 3 && half <= kMostUnrolled;
        const bool four = first && in[0].layout == Layout::kChannelsLast;
        if (four) push[0] = push[0].bits / 4;
        r.dispatch_linear(Shader::lrn, {first ? half : 0, four}, {r.read(in[0]), r.write(out[0])},
                          push, push[0].bits);
        return kOk;
    }

private:
    const LRN& layer_;
};

}  // namespace

int make_reduction_vulkan(const Layer& layer, VulkanContext&, VulkanLayerPtr* made) {
    const Reduction* reduction = as<Reduction>(&layer);
    if (reduction) made->reset(new ReductionVulkan(*reduction));
    const LRN* lrn = as<LRN>(&layer);
    if (lrn) made->reset(new LrnVulkan(*lrn));
    return kOk;
}

}  // namespace quoll
