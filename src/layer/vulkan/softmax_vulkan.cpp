#include "layer/norm/logsoftmax.h"
#include "layer/norm/softmax.h"

#include <algorithm>

#include "layer/vulkan/axes.h"
#include "layer/vulkan/lines.h"

namespace quoll {

namespace {

// Shorter lines, or more of them, are one invocation's each.
const uint32_t kShortLine = 64, kManyLines = 65535;

// Invocations for a line, unless each has its own. Devices run at least 128 in a group.
const int kThreads = 64, kManyThreads = 128, kMostThreads = 512;
const uint32_t kLongLine = 512;

// Of a line: as many as there can be where there are few lines.
int threads_of(const GpuDevice& device, uint32_t length, uint32_t lines) {
    if (length < kLongLine) return kThreads;
    const bool few = lines < std::max(device.features().processors, 16u);
    const bool most = device.limits().maxComputeWorkGroupInvocations >= (uint32_t)kMostThreads;
    return few && most ? kMostThreads : kManyThreads;
}

void record_lines(Recorder& r, const Value& from, const Binding& to, bool floats, bool log,
                  const Words& push, uint32_t length, uint32_t lines) {
    const bool serial = length < kShortLine || lines > kManyLines;
    const std::vector<Binding> bindings = {r.read(from), to};
    if (serial)
        r.dispatch_linear(Shader::softmax, {serial, log, kThreads, floats}, bindings, push, lines);
    else
        r.dispatch(Shader::softmax,
                   {serial, log, threads_of(r.device(), length, lines), floats}, bindings, push,
                   lines);
}

class SoftmaxVulkan : public VulkanLayer {
public:
    SoftmaxVulkan(const int& axis, bool log) : axis_(axis), log_(log) {}

    bool supports(const Shapes&, const Shapes&) const override { return true; }
    void choose_layouts(const Shapes& in_shapes, const Shapes& out_shapes, Layouts* in,
                        Layouts* out) const override {
        // Nothing is stored behind the last channel.
        if (in_shapes[0].dims >= 3 && in_shapes[0].c % 4 == 0)
            follow_layout(0, in_shapes, out_shapes, in, out);
        else
            VulkanLayer::choose_layouts(in_shapes, out_shapes, in, out);
    }
    bool fuses(StepFusion fusion, const Shapes&, const Shapes&) const override {
        return fusion == StepFusion::kHost;
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        return record_fused(r, in, out, Fused());
    }
    int record_fused(Recorder& r, const Values& in, const Values& out,
                     const Fused& fused) const override {
        const int dims = in[0].shape.dims;
        const int axis = axis_index(dims, axis_ < 0 ? axis_ + dims : axis_);
        const MemoryAxes from = memory_axes(in[0]), to = memory_axes(out[0]);
        const uint32_t length = from.sizes[axis];
        Words sizes, steps, made;
        uint32_t lines = 1;
        for (int i : to.order) {
            if (i == axis) continue;
            lines *= from.sizes[i];
            sizes.push_back(from.sizes[i]), steps.push_back(from.steps[i]);
            made.push_back(to.steps[i]);
        }
        Words push = {lines, length, from.steps[axis], to.steps[axis], in[0].first, out[0].first};
        for (const Words* words : {&sizes, &steps, &made})
            push.insert(push.end(), words->begin(), words->end());
        const Binding stored = fused.host ? *fused.host : r.write(out[0]);
        record_lines(r, in[0], stored, fused.host_floats, log_, push, length, lines);
        return kOk;
    }

private:
    const int& axis_;  // of the layer
    const bool log_;
};

}  // namespace

void record_softmax(Recorder& r, const Value& from, const Value& to, uint32_t length,
                    uint32_t lines) {
    Words push = {lines, length, 1, 1, from.first, to.first};
    for (uint32_t words : {lines, length, length}) push.insert(push.end(), {words, 1, 1, 1});
    record_lines(r, from, r.write(to), false, false, push, length, lines);
}

int make_softmax_vulkan(const Layer& layer, VulkanContext&, VulkanLayerPtr* made) {
    const Softmax* softmax = as<Softmax>(&layer);
    if (softmax) made->reset(new SoftmaxVulkan(softmax->axis, false));
    const LogSoftmax* log = as<LogSoftmax>(&layer);
    if (log) made->reset(new SoftmaxVulkan(log->axis, true));
    return kOk;
}

}  // namespace quoll
