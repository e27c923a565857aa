// Layers whose outputs are their inputs' memory under other names or shapes: Split, Noop, Flatten,
// Reshape, BatchAxis, Dropout, copies and similar ones.
#include "layer/control/deepcopy.h"
#include "layer/control/noop.h"
#include "layer/control/split.h"
#include "layer/elementwise/cast.h"
#include "layer/elementwise/dropout.h"
#include "layer/tensor/expanddims.h"
#include "layer/tensor/flatten.h"
#include "layer/tensor/packing.h"
#include "layer/tensor/reshape.h"
#include "layer/tensor/squeeze.h"
#include "layer/tensor/tensorshape.h"
#include "layer/vulkan/vulkan_layer.h"

namespace quoll {

namespace {

// The same values in another shape: planar, unless nothing changes. `batch` only turns items into
// an axis, or the other way round.
class ReshapedVulkan : public VulkanLayer {
public:
    explicit ReshapedVulkan(bool batch) : batch_(batch) {}
    bool takes_integers() const override { return true; }
    bool supports(const Shapes& in, const Shapes& out) const override {
        return in[0].total() == out[0].total() && (batch_ || in[0].n == out[0].n);
    }
    bool gives_views() const override { return true; }
    bool alias(const Values& in, size_t, Value* out) const override {
        const Shape shape = out->shape;
        *out = in[0];
        out->shape = shape;
        return true;
    }
    int record(Recorder&, const Values&, const Values&) const override { return kOk; }

private:
    const bool batch_;
};

// Output i is input i, or the only one, in any layout.
class RenamedVulkan : public VulkanLayer {
public:
    bool takes_integers() const override { return true; }
    bool supports(const Shapes& in, const Shapes& out) const override {
        if (in.size() != 1 && in.size() < out.size()) return false;
        for (size_t i = 0; i < out.size(); i++)
            if (out[i] != in[in.size() == 1 ? 0 : i]) return false;
        return true;
    }
    void choose_layouts(const Shapes&, const Shapes&, Layouts* in, Layouts* out) const override {
        for (size_t i = 0; i < out->size(); i++) (*out)[i] = (*in)[in->size() == 1 ? 0 : i];
    }
    bool gives_views() const override { return true; }
    bool alias(const Values& in, size_t index, Value* out) const override {
        *out = in[in.size() == 1 ? 0 : index];
        return true;
    }
    int record(Recorder&, const Values&, const Values&) const override { return kOk; }
};

bool keeps_order(const Layer& layer) {
    const Reshape* s = as<Reshape>(&layer);
    return s && !s->permute && layer.bottoms.size() == 1 &&
           s->input_batch_axis == Reshape::kNoBatchAxis &&
           s->output_batch_axis == Reshape::kNoBatchAxis;
}

}  // namespace

int make_views_vulkan(const Layer& layer, VulkanContext&, VulkanLayerPtr* made) {
    const Dropout* dropout = as<Dropout>(&layer);
    const Cast* cast = as<Cast>(&layer);
    const bool widens = cast && Cast::dtype_of(cast->type_to) == DType::f32;
    if (as<Split>(&layer) || as<Noop>(&layer) || as<DeepCopy>(&layer) || as<Packing>(&layer) ||
        widens || (dropout && dropout->scale == 1.f))
        made->reset(new RenamedVulkan);
    if (keeps_order(layer) || as<Flatten>(&layer) || as<Squeeze>(&layer) || as<ExpandDims>(&layer))
        made->reset(new ReshapedVulkan(false));
    if (as<BatchAxis>(&layer)) made->reset(new ReshapedVulkan(true));
    return kOk;
}

}  // namespace quoll
