#include "layer/nn/pooling.h"

#include "layer/vulkan/fusion.h"
#include "layer/vulkan/vulkan_layer.h"
#include "runtime/log_mute.h"

namespace quoll {

namespace {

// The largest windows that pool.comp unrolls.
const int kLargestSquare = 3;

class PoolingVulkan : public VulkanLayer {
public:
    explicit PoolingVulkan(const Pooling& layer) : layer_(layer) {}

    bool takes_integers() const override { return true; }
    bool supports(const Shapes& in, const Shapes& out) const override {
        const LogMute mute;
        const bool int8 = layer_.is_max() && !layer_.global_pooling && is_pixels_of_int8(in[0]);
        if ((is_integer(in[0].dtype) && !int8) || in[0].dtype != out[0].dtype) return false;
        Pooling::Axis x, y, z;
        const bool axes = layer_.axes == 1 ? in[0].dims == 2 : in[0].dims >= 3;
        return axes && layer_.geometry(in[0], &x, &y, &z) == kOk;
    }
    void choose_layouts(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                        Layouts* out) const override {
        all_pixels(in_shapes, out_shapes, in, out);
    }
    bool stores_planar() const override { return layer_.axes != 1 && !layer_.global_pooling; }
    // The rows of 1-D operators are channels of pixels.
    int record(Recorder& r, const Values& in, const Values& out) const override {
        if (layer_.axes != 1) return record_pixels(r, in, out);
        const Value from = rows_as_channels(in[0]);
        const Value pixels = r.make(from.shape, Layout::kChannelsLast);
        r.copy(from, pixels);
        if (layer_.global_pooling) return record_global(r, pixels, out[0]);
        const Value to = rows_as_channels(out[0]);
        const Value pooled = r.make(to.shape, Layout::kChannelsLast);
        QUOLL_RETURN_IF_ERROR(record_pixels(r, {pixels}, {pooled}, in[0].shape));
        r.copy(pooled, to);
        return kOk;
    }

private:
    static Value rows_as_channels(const Value& value) {
        Value v = value;
        v.shape = Shape(value.shape.w, 1, value.shape.h);
        v.shape.n = value.shape.n;
        return v;
    }
    int record_pixels(Recorder& r, const Values& in, const Values& out) const {
        return record_pixels(r, in, out, in[0].shape);
    }
    int record_pixels(Recorder& r, const Values& in, const Values& out, const Shape& shape) const {
        // pool_global.comp leaves no gaps.
        const bool dense =
            out[0].layout == Layout::kPlanar || out[0].pitch == (uint32_t)out[0].shape.c;
        const bool all = dense && !is_integer(shape.dtype) && pools_all(layer_, shape);
        if (layer_.global_pooling || all) return record_global(r, in[0], out[0]);
        Pooling::Axis axes[3];
        QUOLL_RETURN_IF_ERROR(layer_.geometry(shape, &axes[0], &axes[1], &axes[2]));
        std::vector<uint32_t> table;
        for (const Pooling::Axis& a : axes)
            for (int word : {a.in, a.out, a.kernel, a.stride, a.before, a.counted_first,
                             a.counted_last, a.first, a.last})
                table.push_back((uint32_t)word);
        Binding sizes;
        QUOLL_RETURN_IF_ERROR(r.constants(table, &sizes));
        const bool planar = out[0].layout == Layout::kPlanar;
        const uint32_t channels = (uint32_t)out[0].shape.c, vectors = round4(channels) / 4;
        const uint32_t pitch = planar ? plane(out[0].shape) : out[0].pitch / 4;
        const uint32_t first = planar ? out[0].first : out[0].first / 4;
        const uint32_t count = plane(out[0].shape) * (uint32_t)out[0].shape.n * vectors;
        const Pooling::Axis &x = axes[0], &y = axes[1], &z = axes[2];
        const uint32_t rows = (uint32_t)(y.out * out[0].shape.n);
        const uint32_t groups = ((uint32_t)x.out * vectors + 63) / 64;
        const bool square = layer_.is_max() && x.kernel == y.kernel && x.kernel <= kLargestSquare &&
                            slides(x) && slides(y) && slides(z) && z.in == 1 && z.out == 1 &&
                            z.kernel == 1 && std::max(rows, groups) <= kMostGroups;
        const Words constants = {layer_.is_max(), square ? x.kernel : 0, planar};
        const std::vector<Binding> bindings = {r.read(in[0]), r.write(out[0]), sizes};
        const Words push = {
            count, vectors, channels, in[0].pitch / 4, in[0].first / 4, pitch,    first,   x.in,
            y.in,  x.out,   y.out,    x.stride,        y.stride,        x.before, y.before};
        if (square)
            r.dispatch(Shader::pool, constants, bindings, push, groups, rows);
        else
            r.dispatch_linear(Shader::pool, constants, bindings, push, count);
        return kOk;
    }

    // Whether the windows slide, and take only values of the blob.
    static bool slides(const Pooling::Axis& a) {
        return a.kernel > 0 && a.first == a.before && a.last == a.before + a.in;
    }

    int record_global(Recorder& r, const Value& in, const Value& out) const {
        const uint32_t channels = (uint32_t)in.shape.c;
        r.dispatch(Shader::pool_global, {layer_.is_max()}, {r.read(in), r.write(out)},
                   {channels, plane(in.shape), in.pitch / 4, in.first / 4, out.first},
                   (channels + 7) / 8, (uint32_t)in.shape.n);
        return kOk;
    }

    const Pooling& layer_;
};

}  // namespace

int make_pooling_vulkan(const Layer& layer, VulkanContext&, VulkanLayerPtr* made) {
    const Pooling* pooling = as<Pooling>(&layer);
    if (pooling) made->reset(new PoolingVulkan(*pooling));
    return kOk;
}

}  // namespace quoll
