// The forward functions of a Layer on a GPU: those that an application's layer leaves out, and
// built-in layers that an application calls by themselves.
#include <algorithm>
#include <map>
#include <mutex>

#include "layer/common/schema.h"
#include "layer/vulkan/vulkan_backend.h"
#include "quoll/command.h"
#include "quoll/gpu.h"

namespace quoll {

namespace {

// Compiled for each size that it has met.
struct SingleLayer {
    std::mutex mutex;
    std::unique_ptr<VulkanBackend> backend;
    std::map<std::vector<int>, std::shared_ptr<const CompiledRegion>> regions;
};

std::mutex& making() {
    static std::mutex mutex;
    return mutex;
}

class CountGoneWeights : public WeightVisitor {
public:
    int gone = 0;
    void operator()(bool present, const char*, Mat& field, WeightSize, WeightKind,
                    const char*) override {
        gone += present && field.empty();
    }
};

std::vector<int> key_of(const std::vector<VkMat>& bottoms) {
    std::vector<int> key;
    for (const VkMat& m : bottoms)
        key.insert(key.end(), {m.dims, m.w, m.h, m.d, m.c, m.n, (int)m.dtype});
    return key;
}

int make_single(const Layer& layer, const Option& opt, std::shared_ptr<void>* form) {
    std::lock_guard<std::mutex> lock(making());
    if (*form) return kOk;
    CountGoneWeights weights;
    const_cast<Layer&>(layer).visit_weights(weights);
    if (weights.gone)
        return layer.fail(
            "its weights are packed for the CPU: forward() on a GPU has to run once "
            "before create_pipeline()");
    const auto made = std::make_shared<SingleLayer>();
    made->backend = VulkanBackend::create(layer.vkdev->device_index(), opt);
    if (!made->backend) return kError;
    QUOLL_RETURN_IF_ERROR(made->backend->prepare(layer, opt));
    *form = made;
    return kOk;
}

// One step, from values that are uploaded to values that are downloaded.
int region_of(const Layer& layer, const std::vector<VkMat>& bottoms, Region* region) {
    std::vector<Shape> in, out;
    RegionStep step;
    step.layer = &layer;
    DType stored = DType::f32;
    for (const VkMat& m : bottoms) {
        if (m.empty() || m.elempack != 1) return layer.fail("expected inputs of elempack 1");
        in.push_back(m.logical_shape());
        if (m.dtype == DType::f16) stored = m.dtype, in.back().dtype = DType::f32;
        RegionValue value;
        value.blob = (int)region->values.size();
        value.shape = m.logical_shape(), value.last_read = 0;
        step.inputs.push_back(value.blob);
        region->values.push_back(value);
    }
    QUOLL_RETURN_IF_ERROR(layer.infer_shapes(in, out));
    for (const Shape& shape : out) {
        RegionValue value;
        value.blob = (int)region->values.size();
        value.shape = shape, value.made = 0, value.last_read = 1, value.is_downloaded = true;
        if (shape.dtype == DType::f32) value.shape.dtype = stored;
        step.outputs.push_back(value.blob);
        region->values.push_back(value);
    }
    region->steps.push_back(step);
    return kOk;
}

std::shared_ptr<const CompiledRegion> compiled(const Layer& layer, SingleLayer& form,
                                               const std::vector<VkMat>& bottoms,
                                               const Option& opt) {
    std::lock_guard<std::mutex> lock(form.mutex);
    std::shared_ptr<const CompiledRegion>& found = form.regions[key_of(bottoms)];
    if (found) return found;
    Region region;
    if (region_of(layer, bottoms, &region) != kOk) return nullptr;
    const RegionStep& step = region.steps[0];
    if (!form.backend->supports(layer, region.shapes(step.inputs), region.shapes(step.outputs))) {
        layer.fail("has no form on a GPU for these sizes and types");
        return nullptr;
    }
    return found = form.backend->compile(region, opt);
}

int clone(const VkMat& from, VkMat* to, VkCompute& cmd, const Option& opt) {
    return cmd.record_clone(from, *to, opt);
}

}  // namespace

int Layer::upload_model(VkTransfer&, const Option&) { return kOk; }

int Layer::forward(const std::vector<VkMat>& bottom_blobs, std::vector<VkMat>& top_blobs,
                   VkCompute& cmd, const Option& opt) const {
    if (typeindex >= 0) {
        if (!vkdev) return fail("vkdev has to be set before");
        QUOLL_RETURN_IF_ERROR(make_single(*this, opt, &vulkan_form_));
        const auto region =
            compiled(*this, *static_cast<SingleLayer*>(vulkan_form_.get()), bottom_blobs, opt);
        return region ? region->record(bottom_blobs, &top_blobs, cmd, opt) : (int)kError;
    }
    if (one_blob_only) {
        if (bottom_blobs.size() != 1) return fail("expected 1 input, got %zu", bottom_blobs.size());
        top_blobs.resize(1);
        return forward(bottom_blobs[0], top_blobs[0], cmd, opt);
    }
    if (!support_inplace) return fail("this layer has no forward function on a GPU");
    top_blobs.resize(bottom_blobs.size());
    for (size_t i = 0; i < bottom_blobs.size(); i++)
        QUOLL_RETURN_IF_ERROR(clone(bottom_blobs[i], &top_blobs[i], cmd, opt));
    return forward_inplace(top_blobs, cmd, opt);
}

int Layer::forward(const VkMat& bottom_blob, VkMat& top_blob, VkCompute& cmd,
                   const Option& opt) const {
    if (typeindex >= 0 || !one_blob_only) {
        std::vector<VkMat> made(1);
        QUOLL_RETURN_IF_ERROR(forward(std::vector<VkMat>(1, bottom_blob), made, cmd, opt));
        top_blob = made.empty() ? VkMat() : made[0];
        return made.empty() ? fail("there is no output") : (int)kOk;
    }
    if (!support_inplace) return fail("this layer has no forward function on a GPU for one blob");
    QUOLL_RETURN_IF_ERROR(clone(bottom_blob, &top_blob, cmd, opt));
    return forward_inplace(top_blob, cmd, opt);
}

int Layer::forward_inplace(std::vector<VkMat>& blobs, VkCompute& cmd, const Option& opt) const {
    if (typeindex >= 0) return forward(std::vector<VkMat>(blobs), blobs, cmd, opt);
    if (one_blob_only && blobs.size() == 1) return forward_inplace(blobs[0], cmd, opt);
    return fail("this layer has no in-place forward function on a GPU");
}

int Layer::forward_inplace(VkMat& blob, VkCompute& cmd, const Option& opt) const {
    if (typeindex >= 0) return forward(VkMat(blob), blob, cmd, opt);
    return fail("this layer has no in-place forward function on a GPU for one blob");
}

}  // namespace quoll
