#include "layer/tensor/concat.h"

#include "layer/vulkan/axes.h"

namespace quoll {

namespace {

class ConcatVulkan : public VulkanLayer {
public:
    explicit ConcatVulkan(const Concat& layer) : layer_(layer) {}

    bool takes_integers() const override { return true; }
    bool supports(const Shapes& in, const Shapes& out) const override {
        if (is_integer(out[0].dtype) && !is_pixels_of_int8(out[0])) return false;
        for (const Shape& shape : in)
            if (shape.dims != out[0].dims || shape.dtype != out[0].dtype) return false;
        return items_fit(in, out[0].n);
    }
    void choose_layouts(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                        Layouts* out) const override {
        if (is_pixels_of_int8(out_shapes[0]))
            all_pixels(in_shapes, out_shapes, in, out);
        else
            follow_layout(0, in_shapes, out_shapes, in, out);
    }
    bool joins_channels() const override { return layer_.axis == 0; }

    int record(Recorder& r, const Values& in, const Values& out) const override {
        const int dims = out[0].shape.dims;
        const int axis = layer_.axis < 0 ? layer_.axis + dims : layer_.axis;
        const MemoryAxes to = memory_axes(out[0]);
        uint32_t begin = 0;
        for (size_t i = 0; i < in.size(); i++) {
            const uint32_t size = (uint32_t)in[i].shape.size(axis);
            const uint32_t first = out[0].first + begin * to.step(dims, axis);
            const bool there = in[i].block == out[0].block && in[i].first == first;
            if (!there) copy_part(r, in[i], out[0], first, axis, i + 1 == in.size());
            begin += size;
        }
        return kOk;
    }

private:
    // The unused channels after the last input's are 0; after those of other inputs come the
    // channels of the next one.
    void copy_part(Recorder& r, const Value& from, const Value& to, uint32_t first, int axis,
                   bool last) const {
        const MemoryAxes a = memory_axes(from), b = memory_axes(to);
        std::vector<CopyAxis> axes;
        for (int k = 0; k < 5; k++) {
            const int index = b.order[k];
            if (index == 4)  // an only item is that of all
                axes.push_back({(uint32_t)to.shape.n, from.item_step(), b.steps[index]});
            else
                axes.push_back({from_size(from.shape, index), a.steps[index], b.steps[index]});
        }
        const uint32_t valid = axes[0].size;
        const bool pads = to.layout == Layout::kChannelsLast;
        if (pads && axis == 0 && last)
            axes[0].size += round4((uint32_t)to.shape.c) - (uint32_t)to.shape.c;
        if (pads && axis != 0) axes[0].size = round4((uint32_t)to.shape.c);
        record_strided_copy(r, from, from.first, to, first, axes, valid);
    }
    static uint32_t from_size(const Shape& s, int index) {
        const int sizes[] = {s.w, s.h, s.d, s.c};
        return (uint32_t)sizes[index];
    }

    const Concat& layer_;
};

}  // namespace

int make_concat_vulkan(const Layer& layer, VulkanContext&, VulkanLayerPtr* made) {
    const Concat* concat = as<Concat>(&layer);
    if (concat) made->reset(new ConcatVulkan(*concat));
    return kOk;
}

}  // namespace quoll
