// A back end that passes everything on to a Vulkan device's, so that one can see what a plan asks
// of it.
#ifndef QUOLL_BENCHMARK_FORWARDING_BACKEND_H
#define QUOLL_BENCHMARK_FORWARDING_BACKEND_H

#include <memory>
#include <vector>

#include "layer/vulkan/vulkan_backend.h"
#include "quoll/gpu.h"

namespace quoll {

class ForwardingBackend : public Backend {
public:
    explicit ForwardingBackend(const Option& opt, int device = get_default_gpu_index())
        : to_(VulkanBackend::create(device, opt)) {}
    // Whether the device could be opened; nothing else may be called if not.
    bool is_open() const { return to_ != nullptr; }
    const char* name() const override { return to_->name(); }
    int prepare(const Layer& layer, const Option& opt) override { return to_->prepare(layer, opt); }
    bool holds(const Layer& layer) const override { return to_->holds(layer); }
    void release() override { to_->release(); }
    bool supports(const Layer& layer, const std::vector<Shape>& in,
                  const std::vector<Shape>& out) const override {
        return to_->supports(layer, in, out);
    }
    bool keeps_constants() const override { return to_->keeps_constants(); }
    bool is_profitable(const Region& region) const override { return to_->is_profitable(region); }
    std::shared_ptr<const CompiledRegion> compile(const Region& region,
                                                  const Option& opt) const override {
        return to_->compile(region, opt);
    }
    const VulkanBackend& vulkan() const { return *to_; }

private:
    const std::unique_ptr<VulkanBackend> to_;
};

}  // namespace quoll

#endif
