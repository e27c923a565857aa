// Runs regions of plans on a Vulkan device.
#ifndef QUOLL_LAYER_VULKAN_VULKAN_BACKEND_H
#define QUOLL_LAYER_VULKAN_VULKAN_BACKEND_H

#include <map>
#include <memory>

#include "layer/vulkan/vulkan_layer.h"
#include "quoll/backend.h"

namespace quoll {

class VulkanRegion;

class VulkanBackend : public Backend {
public:
    // With opt.use_fp16_storage blobs and weights are kept as f16 if the device can, with
    // use_bf16_storage as bf16 if it multiplies bf16 matrices. Null, after a message, if the device
    // cannot be opened.
    static std::unique_ptr<VulkanBackend> create(int device_index, const Option& opt);
    ~VulkanBackend() override;

    const char* name() const override { return "vulkan"; }
    int prepare(const Layer& layer, const Option& opt) override;
    bool holds(const Layer& layer) const override { return layers_.count(&layer) != 0; }
    void release() override;
    bool supports(const Layer& layer, const std::vector<Shape>& inputs,
                  const std::vector<Shape>& outputs) const override;
    bool keeps_constants() const override { return true; }
    bool is_profitable(const Region& region) const override;
    std::shared_ptr<const CompiledRegion> compile(const Region& region,
                                                  const Option& opt) const override;

    Storage storage() const { return storage_; }

private:
    VulkanBackend(std::shared_ptr<GpuDevice> device, Storage storage);
    bool fits(const Shape& shape, bool integers) const;
    std::shared_ptr<VulkanRegion> compile_once(const Region& region, const Option& opt) const;
    // Compiles the region for all of its sizes; null: each size needs its own compilation.
    std::shared_ptr<VulkanRegion> compile_sizes(const Region& region, const Option& opt) const;
    // Compiles for the sizes from those of the region to the largest, given the shapes of all
    // values in each.
    std::shared_ptr<VulkanRegion> compile_for(const Region& region,
                                              const std::vector<std::vector<Shape>>& sizes,
                                              const Option& opt) const;
    bool longer_shapes(const Region& region, int by, std::vector<Shape>* shapes) const;
    // Times all forms that the region's products may have, and notes the best.
    int tune(const Region& region, Option opt) const;

    const std::shared_ptr<GpuDevice> device_;
    const Storage storage_;
    std::shared_ptr<WeightStore> weights_;
    std::map<const Layer*, VulkanLayerPtr> layers_;
};

}  // namespace quoll

#endif
