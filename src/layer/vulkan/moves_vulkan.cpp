// Layers that only move values: Crop, StridedSlice, PixelShuffle, Reorg, DepthToSpace, Tile, Flip,
// Unfold.
#include "layer/nn/unfold.h"
#include "layer/tensor/crop.h"
#include "layer/tensor/flip.h"
#include "layer/tensor/stridedslice.h"
#include "layer/tensor/tile.h"
#include "layer/vision/pixelshuffle.h"
#include "layer/vision/reorg.h"
#include "layer/vision/spaceblocks.h"
#include "layer/vulkan/axes.h"
#include "runtime/log_mute.h"

namespace quoll {

namespace {

enum Axis { kW, kH, kD, kC, kN };

// A part of an output's axis: `size` indexes that go through the input in steps of `factor` along
// `axis`.
struct Part {
    int size;
    Axis axis;
    int factor;
};

// Where the values of an output come from: the parts of its axes w, h, d, c, n, the fastest first,
// and the index of the first value on each axis of the input.
struct Source {
    std::vector<Part> parts[5];
    int first[5] = {};

    // Like the input, except for what is set afterwards.
    explicit Source(const Shape& s) {
        const int sizes[] = {s.w, s.h, s.d, s.c, s.n};
        for (int i = 0; i < 5; i++) parts[i] = {{sizes[i], (Axis)i, 1}};
    }
    // The number of axes of a copy, not counting axes of size 1.
    size_t axes() const {
        size_t count = 0;
        for (const std::vector<Part>& list : parts)
            for (const Part& part : list) count += part.size > 1;
        return count;
    }
};

class MoveVulkan : public VulkanLayer {
public:
    // The source for an input of this shape; a negative code if there is none.
    virtual int source(const Shapes& in, const Shape& out, Source* s) const = 0;

    bool supports(const Shapes& in, const Shapes& out) const override {
        const LogMute mute;
        Source s(in[0]);
        return source(in, out[0], &s) == kOk && s.axes() <= 6;
    }
    void choose_layouts(const Shapes&, const Shapes& out_shapes, Layouts* in,
                        Layouts* out) const override {
        // The channels after the last one must be 0, which these copies do not store.
        if ((*in)[0] == Layout::kChannelsLast && can_be_channels_last(out_shapes[0]) &&
            out_shapes[0].c % 4 == 0)
            (*out)[0] = Layout::kChannelsLast;
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        Shapes shapes;
        for (const Value& value : in) shapes.push_back(value.shape);
        Source s(in[0].shape);
        QUOLL_RETURN_IF_ERROR(source(shapes, out[0].shape, &s));
        move(r, s, in[0], out[0]);
        return kOk;
    }

protected:
    static void move(Recorder& r, const Source& s, const Value& in, const Value& out) {
        const Strides t = in.strides();
        const uint32_t steps[] = {t.w, t.h, t.d, t.c, t.n};
        uint32_t first = in.first;
        for (int i = 0; i < 5; i++) first += (uint32_t)s.first[i] * steps[i];
        const MemoryAxes to = memory_axes(out);
        std::vector<CopyAxis> axes;
        for (int axis : to.order) {
            uint32_t made = to.steps[axis];
            for (const Part& part : s.parts[axis]) {
                // Steps backwards are taken modulo 2^32.
                if (part.size > 1)
                    axes.push_back(
                        {(uint32_t)part.size, (uint32_t)part.factor * steps[part.axis], made});
                made *= (uint32_t)part.size;
            }
        }
        if (axes.empty()) axes.push_back({1, 0, 0});
        record_strided_copy(r, in, first, out, out.first, axes, axes[0].size);
    }
};

class CropVulkan : public MoveVulkan {
public:
    explicit CropVulkan(const Crop& layer) : layer_(layer) {}
    int source(const Shapes& in, const Shape& out, Source* s) const override {
        Crop::Part part;
        if (layer_.by_values(in.size())) return kError;
        QUOLL_RETURN_IF_ERROR(layer_.find_part(in, nullptr, &part));
        if (part.size != out) return kError;
        for (int i = 0; i < out.dims; i++) {
            const int axis = axis_index(out.dims, i);
            s->first[axis] = part.start.size(i);
            s->parts[axis][0].size = part.size.size(i);
        }
        return kOk;
    }

private:
    const Crop& layer_;
};

class StridedSliceVulkan : public MoveVulkan {
public:
    explicit StridedSliceVulkan(const StridedSlice& layer) : layer_(layer) {}
    int source(const Shapes& in, const Shape& out, Source* s) const override {
        StridedSlice::Cut cuts[4];
        Shape made;
        if (in.size() != 1) return kError;
        QUOLL_RETURN_IF_ERROR(layer_.plan_of_params(in[0], cuts, &made));
        for (int i = 0; i < out.dims; i++) {
            const int axis = axis_index(out.dims, i);
            s->first[axis] = cuts[i].start;
            // The step of a single index may be any.
            s->parts[axis] = {
                {cuts[i].count, (Axis)axis, cuts[i].count > 1 ? (int)cuts[i].step : 1}};
        }
        return kOk;
    }

private:
    const StridedSlice& layer_;
};

// Channels to blocks of r x r pixels. apart: the channels of a block are not neighbours.
class PixelShuffleVulkan : public MoveVulkan {
public:
    PixelShuffleVulkan(int r, bool apart) : r_(r), apart_(apart) {}
    int source(const Shapes&, const Shape& out, Source* s) const override {
        const int r = r_;
        const bool apart = apart_;
        s->parts[kW].insert(s->parts[kW].begin(), {r, kC, apart ? out.c : 1});
        s->parts[kH].insert(s->parts[kH].begin(), {r, kC, apart ? r * out.c : r});
        s->parts[kC] = {{out.c, kC, apart ? 1 : r * r}};
        return kOk;
    }

private:
    const int r_;
    const bool apart_;
};

// The other way.
class ReorgVulkan : public MoveVulkan {
public:
    ReorgVulkan(int stride, bool apart) : stride_(stride), apart_(apart) {}
    int source(const Shapes& in, const Shape& out, Source* s) const override {
        const int stride = stride_;
        s->parts[kW] = {{out.w, kW, stride}};
        s->parts[kH] = {{out.h, kH, stride}};
        const Part across = {stride, kW, 1}, down = {stride, kH, 1}, channel = {in[0].c, kC, 1};
        if (apart_)
            s->parts[kC] = {channel, across, down};
        else
            s->parts[kC] = {across, down, channel};
        return kOk;
    }

private:
    const int stride_;
    const bool apart_;
};

class TileVulkan : public MoveVulkan {
public:
    int source(const Shapes& in, const Shape& out, Source* s) const override {
        const int from[] = {in[0].w, in[0].h, in[0].d, in[0].c};
        const int to[] = {out.w, out.h, out.d, out.c};
        for (int i = 0; i < 4; i++) s->parts[i].push_back({to[i] / from[i], (Axis)i, 0});
        return kOk;
    }
};

class FlipVulkan : public MoveVulkan {
public:
    explicit FlipVulkan(const Flip& layer) : layer_(layer) {}
    int source(const Shapes& in, const Shape&, Source* s) const override {
        const int dims = in[0].dims;
        for (int i = 0; i < layer_.axes.w; i++) {
            const int axis = ((const int*)layer_.axes.data)[i];
            const int at = axis_index(dims, axis < 0 ? axis + dims : axis);
            s->first[at] = s->parts[at][0].size - 1;
            s->parts[at][0].factor = -1;
        }
        return kOk;
    }

private:
    const Flip& layer_;
};

class UnfoldVulkan : public MoveVulkan {
public:
    explicit UnfoldVulkan(const Unfold& layer) : layer_(layer) {}

    int source(const Shapes& in, const Shape&, Source* s) const override {
        WindowAxis x, y;
        QUOLL_RETURN_IF_ERROR(window(in[0], &x, &y));
        s->parts[kW] = {{x.out, kW, x.stride}, {y.out, kH, y.stride}};
        s->parts[kH] = {{x.kernel, kW, x.dilation}, {y.kernel, kH, y.dilation}, {in[0].c, kC, 1}};
        s->parts[kC] = {{1, kC, 1}};
        return kOk;
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        WindowAxis x, y;
        QUOLL_RETURN_IF_ERROR(window(in[0].shape, &x, &y));
        Source s(in[0].shape);
        QUOLL_RETURN_IF_ERROR(source({in[0].shape}, out[0].shape, &s));
        Value from = in[0];
        if (x.before || x.after || y.before || y.after)
            QUOLL_RETURN_IF_ERROR(pad(r, x, y, in[0], &from));
        move(r, s, from, out[0]);
        return kOk;
    }

private:
    int window(const Shape& in, WindowAxis* x, WindowAxis* y) const {
        *x = layer_.across(in.w), *y = layer_.down(in.h);
        QUOLL_RETURN_IF_ERROR(convolve_axis(layer_, "w", layer_.pad_left, layer_.pad_right, x));
        return convolve_axis(layer_, "h", layer_.pad_top, layer_.pad_bottom, y);
    }
    int pad(Recorder& r, const WindowAxis& x, const WindowAxis& y, const Value& in,
            Value* padded) const {
        Shape shape(x.before + x.in + x.after, y.before + y.in + y.after, in.shape.c);
        shape.n = in.shape.n;
        *padded = r.make(shape, Layout::kPlanar);
        Binding constant;
        QUOLL_RETURN_IF_ERROR(r.constants({Word(layer_.pad_value).bits}, &constant));
        const uint32_t before[5] = {(uint32_t)x.before, (uint32_t)y.before};
        const MemoryAxes from = memory_axes(in), to = memory_axes(*padded);
        Words push = {to.count(), to.valid, -1, in.first, padded->first};
        for (uint32_t size : to.stored) push.push_back(size);
        push_steps(from.sizes, to, &push);
        push_steps(before, to, &push);
        push_steps(from.steps, to, &push);
        push_steps(to.steps, to, &push);
        r.dispatch_linear(Shader::pad, {0}, {r.read(in), r.write(*padded), constant}, push,
                          to.count());
        return kOk;
    }

    const Unfold& layer_;
};

}  // namespace

int make_moves_vulkan(const Layer& layer, VulkanContext&, VulkanLayerPtr* made) {
    if (const Crop* s = as<Crop>(&layer)) made->reset(new CropVulkan(*s));
    if (const StridedSlice* s = as<StridedSlice>(&layer)) made->reset(new StridedSliceVulkan(*s));
    if (const PixelShuffle* s = as<PixelShuffle>(&layer))
        made->reset(new PixelShuffleVulkan(s->upscale_factor, s->mode != 0));
    if (const Reorg* s = as<Reorg>(&layer)) made->reset(new ReorgVulkan(s->stride, s->mode != 0));
    const DepthToSpace* blocks = as<DepthToSpace>(&layer);
    if (blocks && blocks->inverse)
        made->reset(new ReorgVulkan(blocks->blocksize, blocks->mode == 0));
    else if (blocks)
        made->reset(new PixelShuffleVulkan(blocks->blocksize, blocks->mode == 0));
    if (as<Tile>(&layer)) made->reset(new TileVulkan);
    if (const Flip* s = as<Flip>(&layer)) made->reset(new FlipVulkan(*s));
    if (const Unfold* s = as<Unfold>(&layer)) made->reset(new UnfoldVulkan(*s));
    return kOk;
}

}  // namespace quoll
