#include "layer/vision/interp.h"

#include "layer/vulkan/axes.h"

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

class InterpVulkan : public VulkanLayer {
public:
    explicit InterpVulkan(const Interp& layer) : layer_(layer) {}

    bool supports(const Shapes&, const Shapes& out) const override { return out.size() == 1; }
    void choose_layouts(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                        Layouts* out) const override {
        follow_layout(0, in_shapes, out_shapes, in, out);
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        const Shape &from = in[0].shape, &made = out[0].shape;
        std::vector<uint32_t> table;
        append(columns(from, made), &table);
        append(rows(from, made), &table);
        Binding taps;
        QUOLL_RETURN_IF_ERROR(r.constants(table, &taps));
        const MemoryAxes a = memory_axes(in[0]), b = memory_axes(out[0]);
        // The values of a 1-D blob are channels.
        const bool channels = from.dims == 1;
        const uint32_t steps[5] = {0, 0, a.steps[2], channels ? a.steps[0] : a.steps[3],
                                   a.steps[4]};
        int w_axis = 0, h_axis = 0;
        for (int i = 0; i < 5; i++) {
            if (b.order[i] == 0) w_axis = i;
            if (b.order[i] == 1) h_axis = i;
        }
        Words push = {b.count(), b.valid, in[0].first, out[0].first};
        for (uint32_t size : b.stored) push.push_back(size);
        push_steps(steps, b, &push);
        push_steps(b.steps, b, &push);
        for (int word : {w_axis, h_axis, made.w, channels ? 0 : (int)a.steps[0],
                         channels ? 0 : (int)a.steps[1]})
            push.push_back(word);
        const int most = layer_.resize_type == Interp::kBicubic    ? 4
                         : layer_.resize_type == Interp::kBilinear ? 2
                                                                   : 1;
        r.dispatch_linear(Shader::resize, {most}, {r.read(in[0]), r.write(out[0]), taps}, push,
                          b.count());
        return kOk;
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

}  // namespace

int make_interp_vulkan(const Layer& layer, VulkanContext&, VulkanLayerPtr* made) {
    const Interp* interp = as<Interp>(&layer);
    if (interp) made->reset(new InterpVulkan(*interp));
    return kOk;
}

}  // namespace quoll
