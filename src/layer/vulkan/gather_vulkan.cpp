// Gather, GatherElements, GatherND: values by indexes that are computed, whose range is checked
// where they are read.
#include "layer/tensor/gather.h"

#include <algorithm>

#include "layer/vulkan/axes.h"

namespace quoll {

namespace {

// For the output's axes w, h, d, c, n: the steps of the input and of the indexes; then the axes of
// the input that indexes choose.
struct Route {
    uint32_t x[5] = {}, indexes[5] = {};
    uint32_t depth = 1, sizes[4] = {1, 1, 1, 1}, steps[4] = {};

    void choose(const Value& data, int axis) {
        const MemoryAxes own = memory_axes(data);
        sizes[depth - 1] = (uint32_t)data.shape.size(axis);
        steps[depth - 1] = own.step(data.shape.dims, axis);
    }
};

// The step along an axis of `from` for one of the output, which is at least as long.
void follow(const Value& from, int axis, const Value& out, int out_axis, uint32_t steps[5]) {
    steps[axis_index(out.shape.dims, out_axis)] = memory_axes(from).step(from.shape.dims, axis);
}

class GatherVulkan : public VulkanLayer {
public:
    bool takes_integers() const override { return true; }
    bool supports(const Shapes& in, const Shapes& out) const override {
        if (in.size() != 2 || in[1].dtype != DType::s32) return false;
        return out[0].n == std::max(in[0].n, in[1].n) && in[0].dtype == out[0].dtype;
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        Route route = route_of(in[0], in[1], out[0]);
        if (in[0].shape.n > 1) route.x[4] = in[0].strides().n;
        if (in[1].shape.n > 1) route.indexes[4] = in[1].strides().n;
        const uint32_t total = (uint32_t)out[0].shape.total();
        const MemoryAxes to = memory_axes(out[0]);
        Words push = {total, in[0].first, in[1].first, out[0].first, route.depth};
        for (const uint32_t* five :
             {to.sizes, (const uint32_t*)route.x, (const uint32_t*)route.indexes})
            push.insert(push.end(), five, five + 5);
        for (const uint32_t* four : {route.sizes, route.steps})
            push.insert(push.end(), four, four + 4);
        const bool integers = is_integer(out[0].shape.dtype);
        r.dispatch_linear(integers ? Shader::take_int : Shader::take, {},
                          {r.read(in[0]), r.read(in[1]), r.write(out[0]), r.faults()}, push, total);
        return kOk;
    }

protected:
    virtual Route route_of(const Value& data, const Value& indexes, const Value& out) const = 0;
};

int from_outermost(int axis, int dims) { return axis < 0 ? axis + dims : axis; }

class GatherPartsVulkan : public GatherVulkan {
public:
    explicit GatherPartsVulkan(const Gather& layer) : layer_(layer) {}

protected:
    Route route_of(const Value& data, const Value& indexes, const Value& out) const override {
        const int dims = data.shape.dims, axis = from_outermost(layer_.axis, dims);
        const int replacing = layer_.scalar ? 0 : indexes.shape.dims;
        Route route;
        route.choose(data, axis);
        for (int i = 0; i < dims; i++)
            if (i != axis) follow(data, i, out, i < axis ? i : i + replacing - 1, route.x);
        for (int i = 0; i < replacing; i++) follow(indexes, i, out, axis + i, route.indexes);
        return route;
    }

private:
    const Gather& layer_;
};

class GatherElementsVulkan : public GatherVulkan {
public:
    explicit GatherElementsVulkan(const GatherElements& layer) : layer_(layer) {}

protected:
    Route route_of(const Value& data, const Value& indexes, const Value& out) const override {
        const int dims = data.shape.dims, axis = from_outermost(layer_.axis, dims);
        Route route;
        route.choose(data, axis);
        for (int i = 0; i < dims; i++) {
            if (i != axis) follow(data, i, out, i, route.x);
            follow(indexes, i, out, i, route.indexes);
        }
        return route;
    }

private:
    const GatherElements& layer_;
};

class GatherNdVulkan : public GatherVulkan {
public:
    explicit GatherNdVulkan(const GatherND& layer) : layer_(layer) {}

protected:
    Route route_of(const Value& data, const Value& indexes, const Value& out) const override {
        const int tuples = indexes.shape.dims - 1, batch = layer_.batch_dims;
        const int depth = indexes.shape.w;
        Route route;
        for (int i = 0; i < depth; i++) {
            route.depth = (uint32_t)i + 1;
            route.choose(data, batch + i);
        }
        for (int i = 0; i < batch; i++) follow(data, i, out, i, route.x);
        for (int i = 0; i < tuples; i++) follow(indexes, i, out, i, route.indexes);
        for (int i = batch + depth; i < data.shape.dims; i++)
            follow(data, i, out, i - batch - depth + tuples, route.x);
        return route;
    }

private:
    const GatherND& layer_;
};

}  // namespace

int make_gather_vulkan(const Layer& layer, VulkanContext&, VulkanLayerPtr* made) {
    if (const Gather* s = as<Gather>(&layer)) made->reset(new GatherPartsVulkan(*s));
    if (const GatherElements* s = as<GatherElements>(&layer))
        made->reset(new GatherElementsVulkan(*s));
    if (const GatherND* s = as<GatherND>(&layer)) made->reset(new GatherNdVulkan(*s));
    return kOk;
}

}  // namespace quoll
