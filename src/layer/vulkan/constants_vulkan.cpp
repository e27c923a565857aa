// Layers whose outputs follow from sizes alone: PriorBox. The reference makes them once, when a
// region is compiled.
#include "layer/vision/priorbox.h"
#include "layer/vulkan/vulkan_layer.h"

namespace quoll {

namespace {

class PriorBoxVulkan : public VulkanLayer {
public:
    explicit PriorBoxVulkan(const PriorBox& layer) : layer_(layer) {}

    bool supports(const Shapes&, const Shapes& out) const override {
        return out.size() == 1 && out[0].n == 1;
    }
    // Takes the inputs in any layout, as they are not read.
    void choose_layouts(const Shapes&, const Shapes&, Layouts*, Layouts*) const override {}

    int record(Recorder& r, const Values& in, const Values& out) const override {
        std::vector<Mat> bottoms, tops;
        for (const Value& value : in) {
            bottoms.push_back(Mat(value.shape));
            if (bottoms.back().empty()) return layer_.fail("out of memory"), kOutOfMemory;
        }
        QUOLL_RETURN_IF_ERROR(layer_.forward(bottoms, tops, Option()));
        std::vector<uint32_t> words;
        for (float value : values_of(tops[0])) words.push_back(Word(value).bits);
        Binding values;
        QUOLL_RETURN_IF_ERROR(r.constants(words, &values));
        const Rows rows = rows_of(out[0]);
        r.dispatch_linear(Shader::upload, {0, (int)Layout::kPlanar}, {values, r.write(out[0])},
                          {rows.vectors(), rows.vectors(), rows.length, 1, 0, out[0].first / 4, 0},
                          rows.vectors());
        return kOk;
    }

private:
    const PriorBox& layer_;
};

}  // namespace

int make_constants_vulkan(const Layer& layer, VulkanContext&, VulkanLayerPtr* made) {
    const PriorBox* prior = as<PriorBox>(&layer);
    if (prior) made->reset(new PriorBoxVulkan(*prior));
    return kOk;
}

}  // namespace quoll
