// Regions: steps that a back end runs as one.
#include "plan/executor.h"
#include "plan/growth.h"
#include "quoll/command.h"
#include "quoll/log.h"

namespace quoll {

// Runs the whole region when its first step is due. on_host: whether the host runs the steps
// instead.
int Executor::run_in_region(const Step& step, const PlanSegment& segment, char* on_host) {
    const PlannedRegion& region = segment.regions[segment.region_of(step.at)];
    const Layer& layer = *graph_->layers[step.layer];
    if (step.at == region.steps[0]) QUOLL_RETURN_IF_ERROR(run_region(layer, region, on_host));
    if (*on_host) return run_step(step);
    has_run[step.layer] = 1;
    if (segment.is_inner[step.at - segment.first]) return kOk;
    for (size_t i = 0; i < layer.bottoms.size(); i++)
        if (opt.lightmode && is_read_no_more(step, i)) blobs[layer.bottoms[i]].release();
    return kOk;
}

int Executor::run_region(const Layer& first, const PlannedRegion& region, char* on_host) {
    if (!region.compiled) {
        *on_host = falls_back(first, region, kOutOfMemory);
        return *on_host ? (int)kOk
                        : first.fail("the back end '%s' could not be made ready for it",
                                     region.backend->name());
    }
    *on_host = !are_as_planned(region);
    if (*on_host) return kOk;
    if (observer) observer->runs_on(first, region.backend->name());
    if (observer) observer->before(first);
    // Within a loop, the next iteration may need on the host what this one makes.
    const bool records = commands && depth_ == 0 && region.compiled->records();
    int status = records ? record_region(region) : run_compiled(region);
    if (falls_back(first, region, status)) {
        *on_host = true;
        layer_outputs_.clear();
        return kOk;
    }
    if (status == kOk && observer) observer->after(first, layer_outputs_);
    if (status == kOk) status = check_finite_after(first);
    layer_outputs_.clear();
    return status;
}

bool Executor::falls_back(const Layer& first, const PlannedRegion& region, int status) const {
    if (status != kOutOfMemory || !opt.vulkan_fallback) return false;
    QUOLL_LOGW("[%s %s] vulkan_fallback: the CPU runs it and the %zu layers behind it",
               first.type.c_str(), first.name.c_str(), region.region.steps.size() - 1);
    return true;
}

// A blob may differ from what the plan was made for: another size than a shape rule said, or f32
// because f16 cannot hold its values.
bool Executor::are_as_planned(const PlannedRegion& region) const {
    int longer = -1;  // what grows, by how much
    for (const RegionValue& v : region.region.values) {
        const bool empty = blobs[v.blob].empty() && !device_blobs.count(v.blob);
        if (v.is_empty() && !empty) return false;
        if (!v.is_uploaded()) continue;
        const Shape shape = empty ? Shape() : blobs[v.blob].logical_shape();
        if (kFollowsGrowth && v.grows >= 0 && longer < 0 && shape.dims == v.shape.dims)
            longer = shape.size(v.grows) - v.shape.size(v.grows);
        if (shape != (longer > 0 ? v.longer(longer) : v.shape)) return false;
    }
    return !kFollowsGrowth || longer <= region.compiled->room();
}

int Executor::run_compiled(const PlannedRegion& region) {
    std::vector<Mat> uploads;
    for (const RegionValue& v : region.region.values) {
        if (!v.is_uploaded()) continue;
        QUOLL_RETURN_IF_ERROR(fetch(v.blob));
        QUOLL_RETURN_IF_ERROR(take_upload(blobs[v.blob], &uploads));
    }
    QUOLL_RETURN_IF_ERROR(region.compiled->run(uploads, &layer_outputs_, opt));
    size_t next = 0;
    for (const RegionValue& v : region.region.values)
        if (v.is_downloaded) blobs[v.blob] = layer_outputs_[next++];
    return kOk;
}

int Executor::record_region(const PlannedRegion& region) {
    std::vector<VkMat> uploads, downloads;
    for (const RegionValue& v : region.region.values) {
        if (!v.is_uploaded()) continue;
        const auto found = device_blobs.find(v.blob);
        if (found != device_blobs.end()) {
            VkMat& m = found->second;  // as regions take it, for all readers
            QUOLL_RETURN_IF_ERROR(commands->record_convert(VkMat(m), m, 1, m.dtype, opt));
            uploads.push_back(m);
            continue;
        }
        std::vector<Mat> values;
        QUOLL_RETURN_IF_ERROR(take_upload(blobs[v.blob], &values));
        uploads.emplace_back();
        QUOLL_RETURN_IF_ERROR(commands->record_clone(values[0], uploads.back(), opt));
        device_blobs[v.blob] = uploads.back();
    }
    QUOLL_RETURN_IF_ERROR(region.compiled->record(uploads, &downloads, *commands, opt));
    size_t next = 0;
    for (const RegionValue& v : region.region.values)
        if (v.is_downloaded) set_device_blob(v.blob, downloads[next++]);
    if (!observer && !opt.check_finite) return kOk;
    for (const RegionValue& v : region.region.values) {
        if (!v.is_downloaded) continue;
        QUOLL_RETURN_IF_ERROR(fetch(v.blob));
        layer_outputs_.push_back(blobs[v.blob]);
    }
    return kOk;
}

int Executor::take_upload(const Mat& blob, std::vector<Mat>* uploads) const {
    uploads->push_back(blob);
    if (blob.elempack != 1) convert_packing(blob, uploads->back(), 1, opt);
    return uploads->back().empty() ? (int)kOutOfMemory : (int)kOk;
}

}  // namespace quoll
