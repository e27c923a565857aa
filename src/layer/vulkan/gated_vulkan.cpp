// Layers that combine values of one blob with each other or with tables: GLU and RotaryEmbed.
#include "layer/activation/glu.h"
#include "layer/sequence/rotaryembed.h"
#include "layer/vulkan/axes.h"
#include "layer/vulkan/fusion.h"

namespace quoll {

namespace {

const int kGate = 100;  // an operation of common/binary.glsl beyond those of BinaryOp

class GluVulkan : public VulkanLayer {
public:
    explicit GluVulkan(const GLU& layer) : layer_(layer) {}

    bool supports(const Shapes& in, const Shapes&) const override { return in.size() == 1; }
    void choose_layouts(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                        Layouts* out) const override {
        follow_layout(0, in_shapes, out_shapes, in, out);
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        const int dims = in[0].shape.dims,
                  axis = layer_.axis < 0 ? layer_.axis + dims : layer_.axis;
        const int along = dims == 1 ? 0 : axis_index(dims, axis);
        const MemoryAxes from = memory_axes(in[0]), to = memory_axes(out[0]);
        const uint32_t gate = in[0].first + to.sizes[along] * from.steps[along];
        Words push = {to.count(), to.valid, in[0].first, gate, out[0].first};
        for (uint32_t size : to.stored) push.push_back(size);
        push_steps(from.steps, to, &push);
        push_steps(from.steps, to, &push);
        push_steps(to.steps, to, &push);
        r.dispatch_linear(Shader::binary_strided, {kGate},
                          {r.read(in[0]), r.read(in[0]), r.write(out[0])}, push, to.count());
        return kOk;
    }

private:
    const GLU& layer_;
};

class RotaryVulkan : public VulkanLayer {
public:
    explicit RotaryVulkan(const RotaryEmbed& layer) : layer_(layer) {}

    bool supports(const Shapes&, const Shapes& out) const override { return out[0].n == 1; }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        record_rotary(r, layer_, in, out[0], 0);
        return kOk;
    }

private:
    const RotaryEmbed& layer_;
};

}  // namespace

bool is_interleaved(const Layer& rotary) { return as<RotaryEmbed>(&rotary)->interleaved != 0; }

RotaryPairs::RotaryPairs(const Layer& rotary, const Shape& x, const Shape& cosines)
    : pair(1), partner(x.w / 2), second(cosines.w == x.w ? x.w / 2 : 0) {
    if (is_interleaved(rotary)) pair = 2, partner = 1, second = 0;
}

void record_rotary(Recorder& r, const Layer& rotary, const Values& in, const Value& to,
                   uint32_t first) {
    const Shape& s = in[0].shape;
    const uint32_t half = (uint32_t)s.w / 2, angles = (uint32_t)in[1].shape.w;
    const RotaryPairs pairs(rotary, s, in[1].shape);
    const uint32_t count = half * s.h * s.c, times = (uint32_t)(to.shape.c / s.c);
    r.dispatch_linear(
        Shader::rotary, {}, {r.read(in[0]), r.read(in[1]), r.read(in[2]), r.write(to)},
        {count, half, s.h, pairs.pair, pairs.partner, pairs.second, angles, in[0].first,
         in[1].first, in[2].first, to.first + first * s.w, times, to.strides().c},
        count);
}

int make_gated_vulkan(const Layer& layer, VulkanContext&, VulkanLayerPtr* made) {
    const GLU* glu = as<GLU>(&layer);
    if (glu) made->reset(new GluVulkan(*glu));
    const RotaryEmbed* rotary = as<RotaryEmbed>(&layer);
    if (rotary) made->reset(new RotaryVulkan(*rotary));
    return kOk;
}

}  // namespace quoll
