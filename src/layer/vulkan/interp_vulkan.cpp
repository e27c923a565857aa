#include "layer/vision/interp.h"

#include <algorithm>

#include "layer/vision/resize.h"
#include "layer/vulkan/axes.h"
#include "runtime/log_mute.h"

namespace quoll {

namespace {

std::vector<Interp::Taps> as_they_are(int size) {
    std::vector<Interp::Taps> list;
    for (int i = 0; i < size; i++) list.push_back({{i, 0, 0, 0}, {1.f, 0.f, 0.f, 0.f}});
    return list;
}

void append(const std::vector<Interp::Taps>& list, std::vector<uint32_t>* table) {
    for (const Interp::Taps& taps : list) {
        for (int at : taps.index) table->push_back((uint32_t)at);
        for (float factor : taps.factor) table->push_back(Word(factor).bits);
    }
}

// As the shader has them.
std::vector<Interp::Taps> taps_of(const Resize::Taps& taps) {
    std::vector<Interp::Taps> list;
    for (size_t i = 0; i < taps.outside.size(); i++) {
        Interp::Taps one = {{0, 0, 0, 0}, {0.f, 0.f, 0.f, 0.f}};
        for (int k = 0; k < taps.count; k++) {
            one.index[k] = taps.at[i * taps.count + k];
            one.factor[k] = taps.weight[i * taps.count + k];
        }
        list.push_back(one);
    }
    return list;
}

// most: taps along each axis. channels: the values of the input, which has one axis, are channels.
int record_resize(Recorder& r, const Value& in, const Value& out,
                  const std::vector<Interp::Taps>& columns, const std::vector<Interp::Taps>& rows,
                  int most, bool channels) {
    std::vector<uint32_t> table;
    append(columns, &table);
    append(rows, &table);
    Binding taps;
    QUOLL_RETURN_IF_ERROR(r.constants(table, &taps));
    const MemoryAxes a = memory_axes(in), b = memory_axes(out);
    // If the size is that of a batch, the only item is resized for each.
    const uint32_t steps[5] = {0, 0, a.steps[2], channels ? a.steps[0] : a.steps[3],
                               in.item_step()};
    int w_axis = 0, h_axis = 0;
    for (int i = 0; i < 5; i++) {
        if (b.order[i] == 0) w_axis = i;
        if (b.order[i] == 1) h_axis = i;
    }
    Words push = {b.count(), b.valid, in.first, out.first};
    for (uint32_t size : b.stored) push.push_back(size);
    push_steps(steps, b, &push);
    push_steps(b.steps, b, &push);
    for (int word : {w_axis, h_axis, out.shape.w, channels ? 0 : (int)a.steps[0],
                     channels ? 0 : (int)a.steps[1]})
        push.push_back(word);
    r.dispatch_linear(Shader::resize, {most}, {r.read(in), r.write(out), taps}, push, b.count());
    return kOk;
}

class InterpVulkan : public VulkanLayer {
public:
    explicit InterpVulkan(const Interp& layer) : layer_(layer) {}

    bool supports(const Shapes& in, const Shapes& out) const override {
        return out.size() == 1 && in[0].dtype != DType::s8;
    }
    void choose_layouts(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                        Layouts* out) const override {
        follow_layout(0, in_shapes, out_shapes, in, out);
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        const Shape &from = in[0].shape, &made = out[0].shape;
        const int most = layer_.resize_type == Interp::kBicubic    ? 4
                         : layer_.resize_type == Interp::kBilinear ? 2
                                                                   : 1;
        return record_resize(r, in[0], out[0], columns(from, made), rows(from, made), most,
                             from.dims == 1);
    }

private:
    std::vector<Interp::Taps> columns(const Shape& in, const Shape& out) const {
        if (in.dims == 1 || layer_.unchanged(in, out)) return as_they_are(out.w);
        return layer_.column_taps(in.w, out.w);
    }
    std::vector<Interp::Taps> rows(const Shape& in, const Shape& out) const {
        if (in.dims <= 2 || layer_.unchanged(in, out)) return as_they_are(out.h);
        return layer_.row_taps(in.h, out.h);
    }

    const Interp& layer_;
};

// Along w and h, with no more taps than the shader has.
class ResizeVulkan : public VulkanLayer {
public:
    explicit ResizeVulkan(const Resize& layer) : layer_(layer) {}

    bool supports(const Shapes& in, const Shapes&) const override {
        const LogMute mute;
        std::vector<Resize::Taps> taps;
        return in.size() == 1 && make_taps(in[0], &taps) == kOk;
    }
    void choose_layouts(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                        Layouts* out) const override {
        follow_layout(0, in_shapes, out_shapes, in, out);
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        std::vector<Resize::Taps> taps;
        QUOLL_RETURN_IF_ERROR(make_taps(in[0].shape, &taps));
        return record_resize(r, in[0], out[0], taps_of(taps[0]), taps_of(taps[1]),
                             std::max(taps[0].count, taps[1].count), false);
    }

private:
    // Of w and h.
    int make_taps(const Shape& in, std::vector<Resize::Taps>* taps) const {
        std::vector<Resize::AxisPlan> plans;
        Shape out;
        QUOLL_RETURN_IF_ERROR(layer_.plan(in, layer_.lists({}), &plans, &out));
        taps->resize(2);
        for (int axis = 0; axis < in.dims; axis++) {
            const int from_last = in.dims - 1 - axis;
            if (from_last > 1 && !plans[axis].identity()) return kError;
            if (from_last > 1) continue;
            Resize::Taps& made = (*taps)[from_last];
            if (plans[axis].identity())
                made = as_it_is(in.size(axis));
            else
                QUOLL_RETURN_IF_ERROR(layer_.make_taps(plans[axis], &made));
            const bool outside =
                std::find(made.outside.begin(), made.outside.end(), 1) != made.outside.end();
            if (made.count > 4 || outside) return kError;
        }
        if (in.dims == 1) (*taps)[1] = as_it_is(1);
        return kOk;
    }
    static Resize::Taps as_it_is(int size) {
        Resize::Taps taps;
        taps.count = 1;
        for (int i = 0; i < size; i++) taps.at.push_back(i);
        taps.weight.assign(size, 1.f);
        taps.outside.assign(size, 0);
        return taps;
    }

    const Resize& layer_;
};

}  // namespace

int make_interp_vulkan(const Layer& layer, VulkanContext&, VulkanLayerPtr* made) {
    const Interp* interp = as<Interp>(&layer);
    if (interp) made->reset(new InterpVulkan(*interp));
    const Resize* resize = as<Resize>(&layer);
    if (resize && resize->inputs == 0) made->reset(new ResizeVulkan(*resize));
    return kOk;
}

}  // namespace quoll
