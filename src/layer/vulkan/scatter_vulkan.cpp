// ScatterElements, ScatterND.
#include "layer/tensor/scatter.h"

#include "layer/vulkan/axes.h"

namespace quoll {

namespace {

// The most updates that an invocation goes through one after the other.
const int kMostInARow = 8192;

struct ScatterCall {
    uint32_t lines = 1, length = 1, depth = 1, index_step = 0, update_step = 0;
    uint32_t sizes[4] = {1, 1, 1, 1}, indexes[4] = {}, updates[4] = {}, y[4] = {};
    uint32_t chosen_sizes[4] = {1, 1, 1, 1}, chosen_steps[4] = {};
    int axes = 0;

    void add_axis(uint32_t size, uint32_t index_step, uint32_t update_step, uint32_t y_step) {
        sizes[axes] = size, indexes[axes] = index_step;
        updates[axes] = update_step, y[axes] = y_step;
        axes++;
        lines *= size;
    }
    void choose(int k, const Value& out, int axis) {
        chosen_sizes[k] = (uint32_t)out.shape.size(axis);
        chosen_steps[k] = memory_axes(out).step(out.shape.dims, axis);
    }
};

class ScatterVulkan : public VulkanLayer {
public:
    ScatterVulkan(const int& reduction, Storage storage)
        : reduction_(reduction), rounds_(storage != Storage::f32) {}
    bool takes_integers() const override { return true; }
    bool supports(const Shapes& in, const Shapes& out) const override {
        if (!items_fit(in, out[0].n)) return false;
        const auto how = (ScatterReduction)reduction_;
        const bool computes = how == ScatterReduction::kAdd || how == ScatterReduction::kMultiply;
        if (rounds_ && computes && !is_integer(out[0].dtype)) return false;
        return in[1].dtype == DType::s32 && in[2].dtype == out[0].dtype &&
               updates_in_a_row(in) <= kMostInARow;
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        copy_data(r, in[0], out[0]);
        ScatterCall call = call_of(in[1], in[2], out[0]);
        call.add_axis((uint32_t)out[0].shape.n, in[1].item_step(), in[2].item_step(),
                      out[0].item_step());
        Words push = {call.lines,  call.length,  call.depth,      in[1].first,
                      in[2].first, out[0].first, call.index_step, call.update_step};
        for (const uint32_t* four :
             {call.sizes, call.indexes, call.updates, call.y, call.chosen_sizes, call.chosen_steps})
            push.insert(push.end(), four, four + 4);
        const DType type = out[0].shape.dtype;
        r.dispatch_linear(
            is_integer(type) ? Shader::scatter_int : Shader::scatter, {reduction_, (int)type},
            {r.read(in[1]), r.read(in[2]), r.write(out[0]), r.faults()}, push, call.lines);
        return kOk;
    }

protected:
    virtual int updates_in_a_row(const Shapes& in) const = 0;
    // The call, without the axis of items.
    virtual ScatterCall call_of(const Value& indexes, const Value& updates,
                                const Value& out) const = 0;

private:
    static void copy_data(Recorder& r, const Value& data, const Value& out) {
        const uint32_t each = (uint32_t)out.shape.total() / out.shape.n;
        for (int i = 0; i < out.shape.n; i++) {
            const uint32_t from = data.first + i * data.item_step();
            const uint32_t to = out.first + i * each;
            if (is_integer(out.shape.dtype))
                r.dispatch_linear(Shader::convert_int, {(int)out.shape.dtype, false},
                                  {r.read(data), r.write(out)}, {each, from, to}, each);
            else
                record_strided_copy(r, data, from, out, to, {{each, 1, 1}}, each);
        }
    }

    const int& reduction_;  // of the layer
    const bool rounds_;     // what several updates add up
};

class ScatterElementsVulkan : public ScatterVulkan {
public:
    ScatterElementsVulkan(const ScatterElements& layer, Storage storage)
        : ScatterVulkan(layer.reduction, storage), layer_(layer) {}

protected:
    int axis_of(const Shape& s) const {
        return layer_.axis < 0 ? layer_.axis + s.dims : layer_.axis;
    }
    int updates_in_a_row(const Shapes& in) const override { return in[1].size(axis_of(in[1])); }
    ScatterCall call_of(const Value& indexes, const Value& updates,
                        const Value& out) const override {
        const int dims = out.shape.dims, along = axis_of(out.shape);
        const MemoryAxes i = memory_axes(indexes), u = memory_axes(updates), o = memory_axes(out);
        ScatterCall call;
        call.length = (uint32_t)indexes.shape.size(along);
        call.index_step = i.step(dims, along), call.update_step = u.step(dims, along);
        call.choose(0, out, along);
        for (int axis = 0; axis < dims; axis++)
            if (axis != along)
                call.add_axis((uint32_t)indexes.shape.size(axis), i.step(dims, axis),
                              u.step(dims, axis), o.step(dims, axis));
        return call;
    }

private:
    const ScatterElements& layer_;
};

class ScatterNdVulkan : public ScatterVulkan {
public:
    ScatterNdVulkan(const ScatterND& layer, Storage storage)
        : ScatterVulkan(layer.reduction, storage) {}

protected:
    int updates_in_a_row(const Shapes& in) const override {
        return (int)(in[1].total() / in[1].n / in[1].w);
    }
    ScatterCall call_of(const Value& indexes, const Value& updates,
                        const Value& out) const override {
        const int depth = indexes.shape.w, dims = out.shape.dims;
        ScatterCall call;
        call.depth = call.index_step = (uint32_t)depth;
        call.length = (uint32_t)(indexes.shape.total() / indexes.shape.n) / depth;
        for (int k = 0; k < depth; k++) call.choose(k, out, k);
        // The values of a part are contiguous in both blobs.
        call.update_step = (uint32_t)(updates.shape.total() / updates.shape.n) / call.length;
        if (depth < dims) call.add_axis(call.update_step, 0, 1, 1);
        return call;
    }
};

}  // namespace

int make_scatter_vulkan(const Layer& layer, VulkanContext& context, VulkanLayerPtr* made) {
    if (const ScatterElements* s = as<ScatterElements>(&layer))
        made->reset(new ScatterElementsVulkan(*s, context.storage));
    if (const ScatterND* s = as<ScatterND>(&layer))
        made->reset(new ScatterNdVulkan(*s, context.storage));
    return kOk;
}

}  // namespace quoll
