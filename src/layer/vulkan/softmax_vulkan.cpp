#include "layer/norm/logsoftmax.h"
#include "layer/norm/softmax.h"

#include <algorithm>

#include "layer/vulkan/axes.h"
#include "layer/vulkan/lines.h"

namespace quoll {

namespace {

// Lines that are shorter, or of which there are more, have one invocation each.
const uint32_t kShortLine = 64, kManyLines = 65535;

// Invocations per line, if a line has several. Devices can run at least 128 in a group.
const int kThreads = 64, kManyThreads = 128, kMostThreads = 512;
const uint32_t kLongLine = 512;
// The longest line that stays in shared memory.
const uint32_t kMostKept = 1024;

// The invocations of a line: as many as possible if there are few lines.
int threads_of(const GpuDevice& device, uint32_t length, uint32_t lines) {
    if (length < kLongLine) return kThreads;
    const bool few = lines < std::max(device.features().processors, 16u);
    const bool most = device.limits().maxComputeWorkGroupInvocations >= (uint32_t)kMostThreads;
    return few && most ? kMostThreads : kManyThreads;
}

// One invocation for each value, up to the size of a group.
int threads_for_each(const GpuDevice& device, uint32_t length) {
    const VkPhysicalDeviceLimits& limits = device.limits();
    const uint32_t most =
        std::min(limits.maxComputeWorkGroupInvocations, limits.maxComputeWorkGroupSize[0]);
    uint32_t threads = kThreads;
    while (threads < length && 2 * threads <= most) threads *= 2;
    return (int)threads;
}

// push: the words before the steps of the lines.
void record_lines(Recorder& r, const Binding& from, const Binding& to, bool floats, bool log,
                  Words push, uint32_t length, uint32_t lines,
                  const ChannelSums* pooled = nullptr) {
    const bool serial = !pooled && (length < kShortLine || lines > kManyLines);
    const bool keeps = !serial && length <= kMostKept;
    const int threads = serial   ? kThreads
                        : pooled ? threads_for_each(r.device(), length)
                                 : threads_of(r.device(), length, lines);
    const Words constants = {serial,           log, threads, floats, keeps ? kMostKept : 0,
                             pooled != nullptr};
    push.push_back(pooled ? pooled->parts : 0);
    push.push_back(1.f / (float)(pooled ? pooled->pixels : 1));
    const std::vector<Binding> bindings = {from, to, pooled ? r.read_block(pooled->block) : from};
    if (serial)
        r.dispatch_linear(Shader::softmax, constants, bindings, push, lines);
    else
        r.dispatch(Shader::softmax, constants, bindings, push, lines);
}

// The words for contiguous values.
Words plain_lines(uint32_t length, uint32_t lines, uint32_t from, uint32_t to) {
    Words push = {lines, length, 1, 1, from, to};
    for (uint32_t words : {lines, length, length}) push.insert(push.end(), {words, 1, 1, 1});
    return push;
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
    bool fuses(StepFusion fusion, const Shapes& in, const Shapes&) const override {
        if (fusion != StepFusion::kPooled) return fusion == StepFusion::kHost;
        const size_t length = (size_t)in[0].size(axis_of(in[0]));
        return in[0].total() == length && length <= kMostKept;
    }
    int record(Recorder& r, const Values& in, const Values& out) const override {
        return record_fused(r, in, out, Fused());
    }
    int record_fused(Recorder& r, const Values& in, const Values& out,
                     const Fused& fused) const override {
        const Binding stored = fused.host ? *fused.host : r.write(out[0]);
        if (fused.pooled) {
            const uint32_t length = (uint32_t)out[0].shape.total();
            record_lines(r, r.read_block(fused.pooled->block), stored, fused.host_floats, log_,
                         plain_lines(length, 1, 0, out[0].first), length, 1, fused.pooled);
            return kOk;
        }
        const int axis = axis_index(in[0].shape.dims, axis_of(in[0].shape));
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
        record_lines(r, r.read(in[0]), stored, fused.host_floats, log_, push, length, lines);
        return kOk;
    }

private:
    int axis_of(const Shape& shape) const { return axis_ < 0 ? axis_ + shape.dims : axis_; }

    const int& axis_;  // of the layer
    const bool log_;
};

}  // namespace

void record_softmax(Recorder& r, const Value& from, const Value& to, uint32_t length,
                    uint32_t lines) {
    record_lines(r, r.read(from), r.write(to), false, false,
                 plain_lines(length, lines, from.first, to.first), length, lines);
}

int make_softmax_vulkan(const Layer& layer, VulkanContext&, VulkanLayerPtr* made) {
    const Softmax* softmax = as<Softmax>(&layer);
    if (softmax) made->reset(new SoftmaxVulkan(softmax->axis, false));
    const LogSoftmax* log = as<LogSoftmax>(&layer);
    if (log) made->reset(new SoftmaxVulkan(log->axis, true));
    return kOk;
}

}  // namespace quoll
