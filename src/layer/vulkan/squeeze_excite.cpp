// Squeeze-and-excitation: finding the steps of a block, and recording its factors.
#include "layer/activation/hardsigmoid.h"
#include "layer/elementwise/binaryop.h"
#include "layer/nn/pooling.h"
#include "layer/vulkan/fusion.h"

namespace quoll {

namespace {

// The limits of excite.comp, which keeps these values in shared memory, of which every device has
// 16 KB.
const uint32_t kMostChannels = 1536, kMostMiddle = 384;
// The most weights of the first layer that every group reads; beyond them a dispatch for that layer
// alone is faster.
const uint32_t kMostShared = 64 << 10;
const uint32_t kGateGroup = 64, kExciteThreads = 512;
// Pixels that a group of pool_global.comp adds up.
const uint32_t kPartPixels = 256;

}  // namespace

bool Fusions::can_excite(const GpuDevice& device) {
    return device.limits().maxComputeWorkGroupInvocations >= kExciteThreads;
}

bool Fusions::find_dense(int step, int items, Dense* dense) const {
    if (step < 0 || !forms_[step]->dense(dense)) return false;
    const Shape& out = region_.values[region_.steps[step].outputs[0]].shape;
    return out.total() == (size_t)dense->outputs * items;  // one pixel, also if there is padding
}

// Goes forwards from the pooling, since each value has only one reader.
bool Fusions::find(int pool, SqueezeExcite* block, std::vector<int>* views) const {
    const Pooling* pooling = as<Pooling>(region_.steps[pool].layer);
    if (!pooling || pooling->is_max() ||
        !pools_all(*pooling, region_.values[region_.steps[pool].inputs[0]].shape))
        return false;
    *block = {pool, -1, -1, -1, -1, -1, -1, source(region_.steps[pool].inputs[0]), -1};
    const Shape& x = region_.values[block->x].shape;
    if (x.dims != 3 || (x.n != 1 && x.c % 4) || is_integer(x.dtype)) return false;
    Dense first, second;
    int value = region_.steps[pool].outputs[0];
    block->first = only_reader(&value, views);
    if (!find_dense(block->first, x.n, &first)) return false;
    value = region_.steps[block->first].outputs[0];
    block->second = only_reader(&value, views);
    if (!find_dense(block->second, x.n, &second)) return false;
    const uint32_t channels = (uint32_t)x.c;
    if (first.inputs != channels || second.outputs != channels || second.inputs != first.outputs)
        return false;
    if (channels > kMostChannels || first.outputs > kMostMiddle) return false;
    value = block->gate = region_.steps[block->second].outputs[0];
    std::vector<int> behind;  // views of the factors, which are made
    int next = only_reader(&value, &behind);
    if (next >= 0 && as<HardSigmoid>(region_.steps[next].layer)) {
        block->hard_sigmoid = next;
        views->insert(views->end(), behind.begin(), behind.end());
        value = block->gate = region_.steps[next].outputs[0];
        next = only_reader(&value, &behind);
    }
    const BinaryOp* product = next < 0 ? nullptr : as<BinaryOp>(region_.steps[next].layer);
    if (!product || product->op_type != BinaryOp::MUL || product->with_scalar) return false;
    const RegionStep& step = region_.steps[next];
    if (step.inputs.size() != 2 || region_.values[step.outputs[0]].shape != x) return false;
    // Otherwise a view of the factors is on another axis.
    if (region_.values[value].shape.size(0) != x.c) return false;
    const int other = step.inputs[step.inputs[0] == value ? 1 : 0];
    block->multiply = next;
    return source(other) == block->x;
}

void Fusions::add(const SqueezeExcite& found, const std::vector<int>& views) {
    SqueezeExcite block = found;
    const int maker = makers_[block.x];
    if (fits(maker, StepFusion::kSums)) block.producer = maker;
    const int made = region_.steps[block.multiply].outputs[0];
    const bool once = readers_[made].size() == 1 && !region_.values[made].is_downloaded;
    const int reader = once ? readers_[made][0] : -1;
    if (fits(reader, StepFusion::kGated) && region_.steps[reader].inputs[0] == made)
        block.reader = reader;
    const int last = block.hard_sigmoid >= 0 ? block.hard_sigmoid : block.second;
    const size_t index = found_.size();
    for (int step : views) set_role(step, StepFusion::kSkipped, index);
    for (int step : {block.pool, block.first, block.second})
        set_role(step, StepFusion::kSkipped, index);
    set_role(last, StepFusion::kGate, index);
    set_role(block.producer, StepFusion::kSums, index);
    set_role(block.reader, StepFusion::kGated, index);
    if (block.reader >= 0) set_role(block.multiply, StepFusion::kMultiply, index);
    found_.push_back(block);
}

ChannelSums record_channel_sums(Recorder& r, const Value& x) {
    const uint32_t channels = (uint32_t)x.shape.c, pixels = plane(x.shape);
    ChannelSums sums;
    sums.parts = (pixels + kPartPixels - 1) / kPartPixels;
    sums.pixels = pixels, sums.items = (uint32_t)x.shape.n;
    sums.block = r.make_block((size_t)sums.items * sums.parts * round4(channels) * sizeof(float));
    r.dispatch(Shader::pool_parts, {false}, {r.read(x), r.write_block(sums.block)},
               {channels, pixels, x.pitch / 4, x.first / 4, 0}, (channels + 7) / 8, sums.parts,
               sums.items);
    return sums;
}

void record_gate(Recorder& r, const ChannelSums& sums, const Dense& first, const Dense& second,
                 const Layer* hard_sigmoid, const Value& gate) {
    const HardSigmoid* hard = hard_sigmoid ? as<HardSigmoid>(hard_sigmoid) : nullptr;
    const uint32_t channels = second.outputs, middle = first.outputs;
    const auto pitch = [](const Dense& d) {
        return d.input_step == 1 ? d.output_step / 4 : d.input_step;
    };
    Words constants = {first.f.type,           second.f.type,
                       hard != nullptr,        first.input_step == 1,
                       second.input_step == 1, first.has_bias,
                       second.has_bias,        round4(channels) / 4,
                       round4(middle) / 4,     0};
    const Words push = {sums.parts,
                        channels,
                        middle,
                        pitch(first),
                        pitch(second),
                        (float)sums.pixels,
                        first.f.a,
                        first.f.b,
                        second.f.a,
                        second.f.b,
                        hard ? hard->alpha : 0.f,
                        hard ? hard->beta : 0.f};
    const int between = r.make_block((size_t)sums.items * round4(middle) * sizeof(float));
    const std::vector<Binding> bindings = {r.read_block(sums.block),
                                           first.weight,
                                           first.has_bias ? first.bias : first.weight,
                                           second.weight,
                                           second.has_bias ? second.bias : second.weight,
                                           r.write(gate),
                                           r.write_block(between)};
    const auto groups = [](uint32_t count) {
        return (round4(count) + kGateGroup - 1) / kGateGroup;
    };
    if (channels * middle > kMostShared) {
        constants.back() = 1;
        r.dispatch(Shader::excite, constants, bindings, push, groups(middle), sums.items);
        constants.back() = 2;
    }
    r.dispatch(Shader::excite, constants, bindings, push, groups(channels), sums.items);
}

}  // namespace quoll
