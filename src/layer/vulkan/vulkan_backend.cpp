#include "layer/vulkan/vulkan_backend.h"

#include <algorithm>

#include "gpu/instance.h"
#include "gpu/tuning.h"
#include "layer/vulkan/compiled_region.h"
#include "layer/vulkan/region_compiler.h"
#include "quoll/log.h"
#include "runtime/log_mute.h"

namespace quoll {

namespace {

typedef int (*MakeForm)(const Layer&, VulkanContext&, VulkanLayerPtr*);
const MakeForm kForms[] = {
#define QUOLL_VULKAN_LAYER(name) make_##name##_vulkan,
#include "layer/vulkan/layers.inc"
#undef QUOLL_VULKAN_LAYER
};

const size_t kFirstWeights = (size_t)1 << 20;

// The shape rules of operators do not know storage types.
Shapes as_f32(Shapes shapes) {
    for (Shape& shape : shapes)
        if (!is_integer(shape.dtype)) shape.dtype = DType::f32;
    return shapes;
}

}  // namespace

std::unique_ptr<VulkanBackend> VulkanBackend::create(int device_index, const Option& opt) {
    std::shared_ptr<GpuDevice> device = open_gpu(device_index);
    if (!device) return nullptr;
    Storage storage = Storage::f32;
    if (opt.use_fp16_storage && device->features().storage16) storage = Storage::f16;
    if (opt.use_fp16_storage && storage == Storage::f32)
        QUOLL_LOGI("Vulkan: %s has no 16-bit storage, blobs are f32", device->info().device_name());
    if (opt.use_bf16_storage && !opt.use_fp16_storage && device->features().matrix.bfloat16)
        storage = Storage::bf16;
    return std::unique_ptr<VulkanBackend>(new VulkanBackend(device, storage));
}

VulkanBackend::VulkanBackend(std::shared_ptr<GpuDevice> device, Storage storage)
    : device_(device), storage_(storage) {
    release();
}

VulkanBackend::~VulkanBackend() {}

int VulkanBackend::prepare(const Layer& layer, const Option& opt) {
    VulkanContext context = {*device_, storage_, *weights_, opt.use_cooperative_matrix};
    VulkanLayerPtr made;
    for (const MakeForm make : kForms) {
        const int status = make(layer, context, &made);
        if (status == kWeightTooLarge) return kOk;  // the CPU runs it
        QUOLL_RETURN_IF_ERROR(status);
        if (made) break;
    }
    if (made) layers_[&layer] = std::move(made);
    return kOk;
}

void VulkanBackend::release() {
    layers_.clear();
    weights_ = std::make_shared<WeightStore>(*device_, kFirstWeights);
}

bool VulkanBackend::fits(const Shape& s, bool integers) const {
    if (s.dims < 1 || s.total() == 0 || (is_integer(s.dtype) && !integers)) return false;
    const size_t last = can_be_channels_last(s) ? stored_scalars(s, Layout::kChannelsLast) : 0;
    const size_t most = std::max(last, stored_scalars(s, Layout::kPlanar));
    // Counted as f32, which the staging buffers may hold.
    return most * 4 <= device_->limits().maxStorageBufferRange;
}

bool VulkanBackend::supports(const Layer& layer, const std::vector<Shape>& inputs,
                             const std::vector<Shape>& outputs) const {
    const auto found = layers_.find(&layer);
    if (found == layers_.end() || inputs.empty() || outputs.empty()) return false;
    const bool integers = found->second->takes_integers();
    for (size_t i = 0; i < inputs.size(); i++) {
        const bool absent = inputs[i].total() == 0 && found->second->takes_empty(i);
        if (!absent && !fits(inputs[i], integers)) return false;
    }
    for (const Shape& shape : outputs)
        if (!fits(shape, integers)) return false;
    return found->second->supports(as_f32(inputs), as_f32(outputs));
}

// Copies cost as much as a pass over the bytes on the host, and a submission costs about 10 us. A
// region therefore gains if it multiplies or touches several times as many values as it copies.
bool VulkanBackend::is_profitable(const Region& region) const {
    double copied = 0, worked = 0;
    for (const RegionValue& value : region.values)
        if (!value.stays && (value.is_uploaded() || value.is_downloaded))
            copied += (double)value.shape.total();
    for (const RegionStep& step : region.steps) {
        const std::vector<Shape> in = region.shapes(step.inputs);
        const std::vector<Shape> out = region.shapes(step.outputs);
        worked += (double)std::max<int64_t>(step.layer->macs(in, out), 0);
        for (const Shape& shape : out)
            if (!has_trait(*step.layer, kSharesMemory)) worked += (double)shape.total();
    }
    return worked > 4 * copied;
}

std::shared_ptr<const CompiledRegion> VulkanBackend::compile(const Region& region,
                                                             const Option& opt) const {
    if (device_->tuning().is_on() && tune(region, opt) != kOk) return nullptr;
    // Slices are chosen by the times of dispatches, which are measured for one size.
    if (region.room > 0 && opt.vulkan_slice_us <= 0)
        if (const std::shared_ptr<VulkanRegion> made = compile_sizes(region, opt)) return made;
    return compile_once(region, opt);
}

std::shared_ptr<VulkanRegion> VulkanBackend::compile_once(const Region& region,
                                                          const Option& opt) const {
    std::vector<Shape> shapes;
    for (const RegionValue& value : region.values) shapes.push_back(value.shape);
    return compile_for(region, {shapes}, opt);
}

std::shared_ptr<VulkanRegion> VulkanBackend::compile_sizes(const Region& region,
                                                           const Option& opt) const {
    std::vector<std::vector<Shape>> sizes(region.room + 1);
    for (int by = 0; by <= region.room; by++)
        if (!longer_shapes(region, by, &sizes[by])) return nullptr;
    return compile_for(region, sizes, opt);
}

// Infers the shapes by the shape rules of the operators; the back end then has to support all of
// them again.
bool VulkanBackend::longer_shapes(const Region& region, int by, std::vector<Shape>* shapes) const {
    const LogMute mute;
    std::vector<char> changed;
    for (const RegionValue& value : region.values) {
        if (value.is_empty()) return false;
        shapes->push_back(value.longer(by));
        changed.push_back(value.grows >= 0);
    }
    for (const RegionStep& step : region.steps) {
        if (std::none_of(step.inputs.begin(), step.inputs.end(),
                         [&](int input) { return changed[input] != 0; }))
            continue;
        Shapes in, out;
        for (int input : step.inputs) in.push_back((*shapes)[input]);
        if (infer_batch_shapes(*step.layer, as_f32(in), false, &out) != kOk ||
            out.size() != step.outputs.size())
            return false;
        for (size_t i = 0; i < out.size(); i++) {
            Shape& shape = (*shapes)[step.outputs[i]];
            out[i].dtype = shape.dtype;
            changed[step.outputs[i]] = out[i] != shape;
            if (by == 0 && out[i] != shape) return false;
            shape = out[i];
        }
        if (!supports(*step.layer, in, out)) return false;
    }
    return true;
}

std::shared_ptr<VulkanRegion> VulkanBackend::compile_for(
    const Region& region, const std::vector<std::vector<Shape>>& sizes, const Option& opt) const {
    std::vector<const VulkanLayer*> forms;
    for (const RegionStep& step : region.steps) {
        const auto found = layers_.find(step.layer);
        if (found == layers_.end()) {
            step.layer->fail("was not prepared for Vulkan");
            return nullptr;
        }
        forms.push_back(found->second.get());
    }
    const auto made = std::make_shared<VulkanRegion>(device_, weights_);
    Recorder recorder(*device_, storage_, opt, &made->program(), &made->constants());
    Region largest = region;
    for (size_t i = 0; i < region.values.size(); i++) largest.values[i].shape = sizes.back()[i];
    RegionCompiler compiler(std::move(largest), forms, recorder);
    if (compiler.compile() != kOk) return nullptr;
    for (size_t i = 0; i + 1 < sizes.size(); i++)
        if (!compiler.add_size(sizes[i], i, sizes.size())) return nullptr;
    const int status = made->finish(region, sizes, compiler, storage_, opt);
    return status == kOk ? made : nullptr;
}

}  // namespace quoll
