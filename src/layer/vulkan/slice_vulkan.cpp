#include "layer/tensor/slice.h"

#include "layer/vulkan/axes.h"

namespace quoll {

namespace {

class SliceVulkan : public VulkanLayer {
public:
    explicit SliceVulkan(const Slice& layer) : layer_(layer) {}

    bool supports(const Shapes&, const Shapes&) const override { return true; }
    void choose_layouts(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                        Layouts* out) const override {
        follow_layout(0, in_shapes, out_shapes, in, out);
    }
    bool gives_views() const override { return true; }

    bool alias(const Values& in, size_t index, Value* out) const override {
        const int dims = in[0].shape.dims, axis = axis_of(dims);
        Shapes pieces;
        if (axis != 0 || layer_.infer_shapes({in[0].shape}, pieces) != kOk) return false;
        const uint32_t first = begin_of(pieces, index, axis) * memory_axes(in[0]).step(dims, axis);
        const bool last = index + 1 == pieces.size();
        const bool pixels = in[0].layout == Layout::kChannelsLast;
        // The channels of the next piece would follow those of this one.
        if (first % 4 != 0 || (pixels && !last && pieces[index].c % 4 != 0)) return false;
        if (!pixels && in[0].shape.n != 1) return false;
        const Shape shape = out->shape;
        *out = in[0];
        out->shape = shape;
        out->first += first;
        return true;
    }

    int record(Recorder& r, const Values& in, const Values& out) const override {
        const int dims = in[0].shape.dims, axis = axis_of(dims);
        uint32_t begin = 0;
        for (const Value& piece : out) {
            if (piece.block != in[0].block) copy_piece(r, in[0], begin, axis, piece);
            begin += (uint32_t)piece.shape.size(axis);
        }
        return kOk;
    }

private:
    int axis_of(int dims) const { return layer_.axis < 0 ? layer_.axis + dims : layer_.axis; }
    static uint32_t begin_of(const Shapes& pieces, size_t index, int axis) {
        uint32_t begin = 0;
        for (size_t i = 0; i < index; i++) begin += (uint32_t)pieces[i].size(axis);
        return begin;
    }
    static void copy_piece(Recorder& r, const Value& from, uint32_t begin, int axis,
                           const Value& to) {
        const MemoryAxes a = memory_axes(from), b = memory_axes(to);
        std::vector<CopyAxis> axes;
        for (int k = 0; k < 5; k++)
            axes.push_back({b.stored[k], a.steps[b.order[k]], b.steps[b.order[k]]});
        record_strided_copy(r, from, from.first + begin * a.step(from.shape.dims, axis), to,
                            to.first, axes, b.valid);
    }

    const Slice& layer_;
};

}  // namespace

int make_slice_vulkan(const Layer& layer, VulkanContext&, VulkanLayerPtr* made) {
    const Slice* slice = as<Slice>(&layer);
    if (slice) made->reset(new SliceVulkan(*slice));
    return kOk;
}

}  // namespace quoll
