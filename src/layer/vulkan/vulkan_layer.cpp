#include "layer/vulkan/vulkan_layer.h"

namespace quoll {

VulkanLayer::~VulkanLayer() {}

void VulkanLayer::choose_layouts(const Shapes&, const Shapes&, Layouts* in, Layouts* out) const {
    in->assign(in->size(), Layout::kPlanar);
    out->assign(out->size(), Layout::kPlanar);
}

bool VulkanLayer::fuses(StepFusion, const Shapes&, const Shapes&) const { return false; }

int VulkanLayer::record_fused(Recorder& r, const Values& in, const Values& out,
                              const Fused&) const {
    return record(r, in, out);
}

bool VulkanLayer::pairs_with(const VulkanLayer&) const { return false; }
bool VulkanLayer::stores_planar() const { return false; }
bool VulkanLayer::reads_upload(size_t, const Shapes&) const { return false; }

bool VulkanLayer::dense(Dense*) const { return false; }

bool VulkanLayer::row_norm(const Shape&, RowNorm*) const { return false; }

bool VulkanLayer::takes_empty(size_t) const { return false; }

int VulkanLayer::cache_of(size_t) const { return -1; }

bool VulkanLayer::alias(const Values&, size_t, Value*) const { return false; }

bool items_fit(const Shapes& in, int items) {
    for (const Shape& shape : in)
        if (shape.n != 1 && shape.n != items) return false;
    return true;
}

void follow_layout(size_t like, const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                   Layouts* out) {
    if ((*in)[like] == Layout::kChannelsLast) {
        all_channels_last(in_shapes, out_shapes, in, out);
        return;
    }
    in->assign(in->size(), Layout::kPlanar);
    out->assign(out->size(), Layout::kPlanar);
}

static Layout last_if_possible(const Shape& shape) {
    return can_be_channels_last(shape) ? Layout::kChannelsLast : Layout::kPlanar;
}

void all_channels_last(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                       Layouts* out) {
    for (size_t i = 0; i < in->size(); i++) (*in)[i] = last_if_possible(in_shapes[i]);
    for (size_t i = 0; i < out->size(); i++) (*out)[i] = last_if_possible(out_shapes[i]);
}

void all_pixels(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in, Layouts* out) {
    all_channels_last(in_shapes, out_shapes, in, out);
    for (size_t i = 0; i < in->size(); i++)
        if (is_pixels_of_int8(in_shapes[i])) (*in)[i] = Layout::kChannelsLast;
    for (size_t i = 0; i < out->size(); i++)
        if (is_pixels_of_int8(out_shapes[i])) (*out)[i] = Layout::kChannelsLast;
}

std::vector<float> values_of(const Mat& weight) {
    std::vector<float> values;
    for (int q = 0; q < weight.c; q++) {
        const float* p = (const float*)weight.data + q * weight.cstep;
        values.insert(values.end(), p, p + (size_t)weight.w * weight.h * weight.d);
    }
    return values;
}

}  // namespace quoll
