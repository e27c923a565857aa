// Blobs in the memory of a device, and layers of an application that record themselves there.
#include "layer/common/stored.h"
#include "plan/custom_layer.h"
#include "plan/executor.h"
#include "quoll/command.h"

namespace quoll {

void Executor::set_device_blob(int blob, const VkMat& m) {
    blobs[blob] = m.shape();
    device_blobs[blob] = m;
}

int Executor::fetch(int blob) {
    const auto found = device_blobs.find(blob);
    if (found == device_blobs.end() || !blobs[blob].empty() || blobs[blob].dims == 0) return kOk;
    Mat values;
    QUOLL_RETURN_IF_ERROR(commands->record_clone(found->second, values, opt));
    QUOLL_RETURN_IF_ERROR(commands->submit_and_wait());
    blobs[blob] = values;
    return kOk;
}

int Executor::fetch_inputs(const Layer& layer) {
    for (int id : layer.bottoms)
        if (!device_blobs.empty()) QUOLL_RETURN_IF_ERROR(fetch(id));
    return kOk;
}

// Runs a layer of the application that records itself.
#if QUOLL_VULKAN
int Executor::run_on_device(const Layer& layer) {
    VkCompute own(layer.vkdev);
    VkCompute& on = commands ? *commands : own;
    std::vector<VkMat> bottoms(layer.bottoms.size()), made(layer.tops.size());
    for (size_t i = 0; i < bottoms.size(); i++)
        QUOLL_RETURN_IF_ERROR(bring_to_device(layer.bottoms[i], on, &bottoms[i]));
    QUOLL_RETURN_IF_ERROR(record_custom_layer(layer, bottoms, &made, on, opt));
    if (made.size() != layer.tops.size())
        return layer.fail("expected %zu outputs, got %zu", layer.tops.size(), made.size());
    for (size_t i = 0; i < made.size(); i++)
        if (made[i].empty())
            return layer.fail("output '%s' came out empty",
                              graph_->blobs[layer.tops[i]].name.c_str());
    return take_from_device(layer, &made, on);
}

// Uploads a blob, as f16 or f32, depending on how the net stores floats on its device.
int Executor::bring_to_device(int blob, VkCompute& on, VkMat* m) {
    const DType stored = opt.use_fp16_storage ? DType::f16 : DType::f32;
    const auto there = device_blobs.find(blob);
    const bool is_float = blobs[blob].dtype == DType::f32 || is_storage_type(blobs[blob].dtype);
    if (there != device_blobs.end() && (!is_float || there->second.dtype == stored)) {
        *m = there->second;
        const bool has_gaps = m->cstep != (size_t)m->w * m->h * m->d;
        return has_gaps ? on.record_clone(there->second, *m, opt) : (int)kOk;
    }
    QUOLL_RETURN_IF_ERROR(fetch(blob));
    Mat values = blobs[blob];
    if (is_float && values.dtype != stored) {
        if (is_storage_type(values.dtype)) widen_storage(blobs[blob], &values, opt);
        if (stored == DType::f16) narrow(Mat(values), stored, &values, opt);
    }
    return on.record_upload(values, *m, opt);
}

// Outputs stay on the device if the run goes on recording.
int Executor::take_from_device(const Layer& layer, std::vector<VkMat>* made, VkCompute& on) {
    const bool stays = commands && depth_ == 0;
    std::vector<Mat> values(made->size());
    bool waits = false;
    for (size_t i = 0; i < made->size(); i++) {
        if (stays) {
            VkMat& m = (*made)[i];
            QUOLL_RETURN_IF_ERROR(on.record_convert(VkMat(m), m, 1, m.dtype, opt));
            set_device_blob(layer.tops[i], m);
            if (!observer && !opt.check_finite) continue;
        }
        QUOLL_RETURN_IF_ERROR(on.record_clone((*made)[i], values[i], opt));
        waits = true;
    }
    if (waits) QUOLL_RETURN_IF_ERROR(on.submit_and_wait());
    for (size_t i = 0; i < values.size() && waits; i++) {
        layer_outputs_.push_back(values[i]);
        if (!values[i].empty()) QUOLL_RETURN_IF_ERROR(store_output(layer, i, &layer_outputs_[i]));
    }
    return kOk;
}
#else
int Executor::run_on_device(const Layer&) { return kError; }
#endif

}  // namespace quoll
