#include "layer/vision/gridsample.h"

#include "layer/vulkan/axes.h"

namespace quoll {

namespace {

class GridSampleVulkan : public VulkanLayer {
public:
    explicit GridSampleVulkan(const GridSample& layer) : layer_(layer) {}

    bool supports(const Shapes& in, const Shapes&) const override { return in.size() == 2; }
    // The image in any layout.
    void choose_layouts(const Shapes&, const Shapes&, Layouts* in, Layouts*) const override {
        (*in)[1] = Layout::kPlanar;
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        const Value &image = in[0], &grid = in[1];
        const int axes = image.shape.dims - 1;
        const MemoryAxes to = memory_axes(out[0]);
        const Strides from = image.strides(), g = grid.strides();
        const Strides steps = point_steps(g, axes);
        const uint32_t total = (uint32_t)out[0].shape.total();
        Words push = {total, image.first, grid.first, out[0].first,
                      layer_.permute_fusion ? g.c : 1};
        push.insert(push.end(), to.sizes, to.sizes + 5);
        for (uint32_t step : {steps.w, steps.h, steps.d, 0u, grid.shape.n > 1 ? g.n : 0u})
            push.push_back(step);
        push.insert(push.end(), {from.c, image.shape.n > 1 ? from.n : 0u});
        const Shape& s = image.shape;
        push.insert(push.end(), {s.w, s.h, s.d});
        push.insert(push.end(), {from.w, from.h, from.d});
        r.dispatch_linear(
            Shader::gridsample,
            {layer_.sample_type, layer_.padding_mode, layer_.align_corner != 0, layer_.exact, axes},
            {r.read(image), r.read(grid), r.write(out[0])}, push, total);
        return kOk;
    }

private:
    // The steps from point to point along w, h and d of the output. The coordinates of a point are
    // the grid's channels, or its rows.
    Strides point_steps(const Strides& g, int axes) const {
        if (layer_.permute_fusion) return g;
        return {g.h, axes == 2 ? g.c : g.d, g.c, 0, 0};
    }

    const GridSample& layer_;
};

}  // namespace

int make_gridsample_vulkan(const Layer& layer, VulkanContext&, VulkanLayerPtr* made) {
    const GridSample* sample = as<GridSample>(&layer);
    if (sample) made->reset(new GridSampleVulkan(*sample));
    return kOk;
}

}  // namespace quoll
