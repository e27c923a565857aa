// The forward functions of a Layer on a GPU: defaults for applications' layers, and built-in layers
// that an application calls by themselves.
#include <string.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "layer/common/schema.h"
#include "layer/elementwise/cast.h"
#include "layer/tensor/packing.h"
#include "layer/vulkan/vulkan_backend.h"
#include "quoll/command.h"
#include "quoll/gpu.h"

namespace quoll {

namespace {

// A status used only in this file: the host runs the layer.
const int kNotOnDevice = 1;

// Compiled for each size that it has seen.
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

std::vector<int> key_of(const std::vector<VkMat>& bottoms, size_t outputs) {
    std::vector<int> key(1, (int)outputs);
    for (const VkMat& m : bottoms)
        key.insert(key.end(), {m.dims, m.w, m.h, m.d, m.c, m.n, (int)m.dtype});
    return key;
}

int make_single(const Layer& layer, const Option& opt, std::shared_ptr<void>* form) {
    std::lock_guard<std::mutex> lock(making());
    if (*form) return kOk;
    CountGoneWeights weights;
    const_cast<Layer&>(layer).visit_weights(weights);
    if (weights.gone) return kNotOnDevice;  // packed for the CPU
    const auto made = std::make_shared<SingleLayer>();
    made->backend = VulkanBackend::create(layer.vkdev->device_index(), opt);
    if (!made->backend) return kError;
    QUOLL_RETURN_IF_ERROR(made->backend->prepare(layer, opt));
    *form = made;
    return kOk;
}

// One step, from values that are uploaded to values that are downloaded.
int region_of(const Layer& layer, const std::vector<VkMat>& bottoms, size_t outputs,
              Region* region) {
    std::vector<Shape> in, out(outputs);
    RegionStep step;
    step.layer = &layer;
    DType stored = DType::f32;
    for (const VkMat& m : bottoms) {
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

int compiled(const Layer& layer, SingleLayer& form, const std::vector<VkMat>& bottoms,
             size_t outputs, const Option& opt, std::shared_ptr<const CompiledRegion>* made) {
    std::lock_guard<std::mutex> lock(form.mutex);
    std::shared_ptr<const CompiledRegion>& found = form.regions[key_of(bottoms, outputs)];
    if (!found) {
        Region region;
        QUOLL_RETURN_IF_ERROR(region_of(layer, bottoms, outputs, &region));
        const RegionStep& step = region.steps[0];
        if (!form.backend->supports(layer, region.shapes(step.inputs), region.shapes(step.outputs)))
            return kNotOnDevice;
        found = form.backend->compile(region, opt);
    }
    *made = found;
    return found ? kOk : kError;
}

int run_on_device(const Layer& layer, const std::vector<VkMat>& bottoms, std::vector<VkMat>* tops,
                  VkCompute& cmd, const Option& opt, std::shared_ptr<void>* form) {
    std::shared_ptr<const CompiledRegion> region;
    QUOLL_RETURN_IF_ERROR(make_single(layer, opt, form));
    QUOLL_RETURN_IF_ERROR(compiled(layer, *static_cast<SingleLayer*>(form->get()), bottoms,
                                   tops->size(), opt, &region));
    return region->record(bottoms, tops, cmd, opt);
}

int forward_item(const Layer& layer, const std::vector<Mat>& in, std::vector<Mat>* out,
                 const Option& opt) {
    if (layer.one_blob_only && in.size() == 1) return layer.forward(in[0], (*out)[0], opt);
    return layer.forward(in, *out, opt);
}

// The output of one item into that of all.
int keep_item(const Layer& layer, const Mat& made, int b, int count, Mat* all) {
    if (made.empty()) return kOk;
    Mat item = made;
    if (made.elempack != 1) convert_packing(made, item, 1);
    Shape shape = item.logical_shape();
    shape.n = count;
    if (b == 0) all->create(shape, 1, nullptr);
    if (item.empty() || all->empty()) return kOutOfMemory;
    if (all->logical_shape() != shape)
        return layer.fail("expected outputs of one size from all items");
    Mat to = all->batch(b);
    for (int q = 0; q < item.c; q++)
        memcpy((unsigned char*)to.data + q * to.cstep * to.elemsize,
               (const unsigned char*)item.data + q * item.cstep * item.elemsize,
               (size_t)item.w * item.h * item.d * item.elemsize);
    return kOk;
}

// Most layers take one item at a time.
int forward_items(const Layer& layer, const std::vector<Mat>& in, std::vector<Mat>* out,
                  const Option& opt) {
    int count = 1;
    for (const Mat& m : in) count = std::max(count, m.n);
    if (count == 1 || layer.support_batch) return forward_item(layer, in, out, opt);
    for (const Mat& m : in)
        if (m.n != 1 && m.n != count)
            return layer.fail("inputs with batch counts %d and %d", m.n, count);
    std::vector<Mat> all;
    for (int b = 0; b < count; b++) {
        std::vector<Mat> items, made(out->size());
        for (const Mat& m : in) items.push_back(m.n == 1 ? m : m.batch(b));
        QUOLL_RETURN_IF_ERROR(forward_item(layer, items, &made, opt));
        all.resize(made.size());
        for (size_t i = 0; i < made.size(); i++)
            QUOLL_RETURN_IF_ERROR(keep_item(layer, made[i], b, count, &all[i]));
    }
    *out = all;
    return kOk;
}

// What was recorded so far runs first.
int run_on_host(const Layer& layer, const std::vector<VkMat>& bottoms, std::vector<VkMat>* tops,
                VkCompute& cmd, const Option& opt) {
    Option host = opt;
    host.use_packing_layout = false;
    std::vector<Mat> in(bottoms.size()), out(std::max<size_t>(tops->size(), 1));
    for (size_t i = 0; i < in.size(); i++)
        QUOLL_RETURN_IF_ERROR(cmd.record_download(bottoms[i], in[i], host));
    QUOLL_RETURN_IF_ERROR(cmd.submit_and_wait());
    QUOLL_RETURN_IF_ERROR(forward_items(layer, in, &out, host));
    tops->resize(out.size());
    for (size_t i = 0; i < out.size(); i++)
        if (!out[i].empty()) QUOLL_RETURN_IF_ERROR(cmd.record_upload(out[i], (*tops)[i], opt));
    return kOk;
}

// Packing and Cast of files for ncnn: between layouts that regions do not have.
bool converts(const Layer& layer, const VkMat& bottom, int* elempack, DType* dtype) {
    const DType packed[] = {bottom.dtype, DType::f32, DType::f16,
                            DType::s32,   DType::s8,  DType::bf16};
    *elempack = bottom.elempack, *dtype = bottom.dtype;
    if (const Cast* cast = as<Cast>(&layer)) *dtype = Cast::dtype_of(cast->type_to);
    if (const Packing* packing = as<Packing>(&layer)) {
        *elempack = packing->out_elempack;
        const int to = packing->cast_type_to;
        *dtype = packed[to > 0 && to < 6 ? to : 0];
    }
    return as<Cast>(&layer) || as<Packing>(&layer);
}

// Regions take f32, f16 and integers of elempack 1.
int as_regions_take(const Layer& layer, std::vector<VkMat>* blobs, VkCompute& cmd,
                    const Option& opt) {
    for (VkMat& m : *blobs) {
        if (m.empty()) return layer.fail("an input is empty");
        const DType dtype = m.dtype == DType::bf16 ? DType::f32 : m.dtype;
        QUOLL_RETURN_IF_ERROR(cmd.record_convert(VkMat(m), m, 1, dtype, opt));
    }
    return kOk;
}

int forward_built_in(const Layer& layer, std::vector<VkMat> bottoms, std::vector<VkMat>* tops,
                     VkCompute& cmd, const Option& opt, std::shared_ptr<void>* form) {
    int elempack;
    DType dtype;
    if (bottoms.size() == 1 && converts(layer, bottoms[0], &elempack, &dtype)) {
        tops->resize(1);
        return cmd.record_convert(bottoms[0], (*tops)[0], elempack, dtype, opt);
    }
    if (!layer.vkdev) return layer.fail("vkdev has to be set before");
    QUOLL_RETURN_IF_ERROR(as_regions_take(layer, &bottoms, cmd, opt));
    const int status = run_on_device(layer, bottoms, tops, cmd, opt, form);
    return status == kNotOnDevice ? run_on_host(layer, bottoms, tops, cmd, opt) : status;
}

int clone(const VkMat& from, VkMat* to, VkCompute& cmd, const Option& opt) {
    return cmd.record_clone(from, *to, opt);
}

}  // namespace

int Layer::upload_model(VkTransfer&, const Option&) { return kOk; }

int Layer::forward(const std::vector<VkMat>& bottom_blobs, std::vector<VkMat>& top_blobs,
                   VkCompute& cmd, const Option& opt) const {
    if (typeindex >= 0)
        return forward_built_in(*this, bottom_blobs, &top_blobs, cmd, opt, &vulkan_form_);
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
    if (typeindex >= 0) {
        std::vector<VkMat> made(blobs.size());
        QUOLL_RETURN_IF_ERROR(forward(blobs, made, cmd, opt));
        // Values that are no outputs stay as they were.
        for (size_t i = 0; i < std::min(made.size(), blobs.size()); i++)
            if (!made[i].empty()) blobs[i] = made[i];
        return kOk;
    }
    if (one_blob_only && blobs.size() == 1) return forward_inplace(blobs[0], cmd, opt);
    return fail("this layer has no in-place forward function on a GPU");
}

int Layer::forward_inplace(VkMat& blob, VkCompute& cmd, const Option& opt) const {
    if (typeindex >= 0) return forward(VkMat(blob), blob, cmd, opt);
    return fail("this layer has no in-place forward function on a GPU for one blob");
}

}  // namespace quoll
