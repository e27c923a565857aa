#include "layer/vulkan/compiled_region.h"

#include <string.h>

#include <algorithm>

#include "gpu/command_list.h"
#include "gpu/pool_block.h"
#include "gpu/vk_compute.h"
#include "layer/cpu/cast/storage.h"
#include "layer/vulkan/region_compiler.h"
#include "quoll/command.h"
#include "quoll/gpu.h"
#include "quoll/log.h"
#include "quoll/status.h"
#include "runtime/mat_runs.h"

namespace quoll {

namespace {

const int kMostReplays = 4;
const size_t kFirstConstants = 4096;

}  // namespace

VulkanRegion::VulkanRegion(std::shared_ptr<GpuDevice> device, std::shared_ptr<WeightStore> weights)
    : device_(device), weights_(weights), constants_(new WeightStore(*device, kFirstConstants)) {}

VulkanRegion::~VulkanRegion() {}

int VulkanRegion::finish(const Region& region, const std::vector<std::vector<Shape>>& sizes,
                         const RegionCompiler& compiler, Storage storage, const Option& opt) {
    storage_ = storage, room_ = (int)sizes.size() - 1;
    const std::vector<size_t> upload_offsets = compiler.upload_offsets();
    const std::vector<size_t> download_offsets = compiler.download_offsets();
    std::map<int, int> uploads, downloads;  // indexes, by value
    for (size_t i = 0; i < region.values.size(); i++) {
        const RegionValue& value = region.values[i];
        std::vector<Shape> shapes;
        for (const std::vector<Shape>& size : sizes) shapes.push_back(size[i]);
        if (value.is_uploaded()) {
            uploads[(int)i] = (int)uploads_.size();
            uploads_.push_back({shapes, upload_offsets[uploads_.size()]});
        }
        if (value.is_downloaded) {
            downloads[(int)i] = (int)downloads_.size();
            downloads_.push_back({shapes, download_offsets[downloads_.size()]});
        }
    }
    for (const GivenCache& cache : compiler.caches())
        caches_.push_back(
            {cache.past < 0 ? -1 : uploads[cache.past], downloads[cache.all], cache.channel_step});
    for (const RegionStep& step : region.steps) layers_.push_back(step.layer);
    // The device copies weights while the host makes pipelines.
    QUOLL_RETURN_IF_ERROR(weights_->submit());
    QUOLL_RETURN_IF_ERROR(constants_->submit());
    QUOLL_RETURN_IF_ERROR(program_.finish(*device_, opt.num_threads));
    QUOLL_RETURN_IF_ERROR(weights_->finish());
    QUOLL_RETURN_IF_ERROR(constants_->finish());
    QUOLL_RETURN_IF_ERROR(run_prepared(opt.vulkan_slice_us > 0));
    if (opt.vulkan_slice_us > 0) QUOLL_RETURN_IF_ERROR(divide(opt));
    // Regions that grow, or have caches, are recorded by a VkCompute, which has replays of its own.
    if (room_ > 0 || !caches_.empty()) return kOk;
    std::unique_ptr<Replay> first = Replay::create(*device_, program_, false);
    if (!first) return kError;
    count_ = 1;
    idle_.push_back(std::move(first));
    return kOk;
}

int VulkanRegion::run_prepared(bool each) const {
    if (program_.prepared.empty()) return kOk;
    CommandList list(device_);
    for (const Dispatch& d : program_.prepared) {
        std::vector<VkDescriptorBufferInfo> buffers;
        for (const Binding& b : d.bindings) buffers.push_back({b.buffer, b.offset, b.bytes});
        QUOLL_RETURN_IF_ERROR(list.dispatch(d.key, buffers, d.push, d.groups[0], d.groups[1]));
        if (!each) continue;
        QUOLL_RETURN_IF_ERROR(list.submit());
        QUOLL_RETURN_IF_ERROR(list.wait());
    }
    if (each) return kOk;
    QUOLL_RETURN_IF_ERROR(list.submit());
    return list.wait();
}

int VulkanRegion::time_dispatches(int runs, const Option& opt, std::vector<double>* least) const {
    const std::unique_ptr<Replay> timed = Replay::create(*device_, program_, true);
    if (!timed) return kOutOfMemory;
    memset(timed->upload(), 0, program_.upload_bytes);
    for (int i = 0; i < runs; i++) {
        std::vector<double> seconds;
        QUOLL_RETURN_IF_ERROR(timed->run(opt.vulkan_max_in_flight));
        QUOLL_RETURN_IF_ERROR(timed->times(&seconds));
        if (i == 0) *least = seconds;
        for (size_t k = 0; k < seconds.size(); k++) (*least)[k] = std::min((*least)[k], seconds[k]);
    }
    return kOk;
}

// Each dispatch is timed in a submission of its own, as all together may take longer than one may.
// The device may have been asleep in the first run.
int VulkanRegion::divide(const Option& opt) {
    std::vector<double> seconds;
    for (size_t i = 1; i < program_.dispatches.size(); i++) program_.submissions.push_back(i);
    QUOLL_RETURN_IF_ERROR(time_dispatches(2, opt, &seconds));
    return program_.divide(*device_, seconds, opt.vulkan_slice_us * 1e-6);
}

template <class M>
int VulkanRegion::find_size(const std::vector<M>& uploads, size_t* size) const {
    if (uploads.size() != uploads_.size()) {
        QUOLL_LOGE("Vulkan: expected %zu uploads, got %zu", uploads_.size(), uploads.size());
        return kError;
    }
    size_t most = 0;
    for (*size = 0; *size <= (size_t)room_; (*size)++) {
        const auto fits = [&](size_t i) {
            const M& m = uploads[i];
            return !m.empty() && m.elempack == 1 && m.logical_shape() == uploads_[i].shapes[*size];
        };
        size_t same = 0;
        while (same < uploads.size() && fits(same)) same++;
        if (same == uploads.size()) return kOk;
        most = std::max(most, same);
    }
    QUOLL_LOGE("Vulkan: upload %zu does not have the size and type of the region", most);
    return kError;
}

// Returns null after a message.
std::unique_ptr<Replay> VulkanRegion::take(size_t size) const {
    std::unique_ptr<Replay> replay;
    {
        std::unique_lock<std::mutex> lock(mutex_);
        while (idle_.empty() && count_ >= kMostReplays) returned_.wait(lock);
        if (idle_.empty()) {
            count_++;
        } else {
            replay = std::move(idle_.back());
            idle_.pop_back();
        }
    }
    if (!replay) replay = Replay::create(*device_, program_, false);
    if (replay && replay->set_size(program_, size) != kOk) replay.reset();
    if (!replay) give_back(nullptr);
    return replay;
}

void VulkanRegion::give_back(std::unique_ptr<Replay> replay) const {
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (replay)
            idle_.push_back(std::move(replay));
        else
            count_--;
    }
    returned_.notify_one();
}

void VulkanRegion::write_uploads(const std::vector<Mat>& uploads, unsigned char* to,
                                 int threads) const {
    for (size_t i = 0; i < uploads.size(); i++) {
        const Mat& m = uploads[i];
        const Shape shape = m.logical_shape();
        const bool narrowed = is_narrowed(shape.dtype, storage_);
        const StorageKernels* kernels = storage_kernels(host_kernel_set(), dtype_of(storage_));
        unsigned char* const begin = to + uploads_[i].offset;
        for_each_piece(m, shape, begin, threads,
                       [&](const unsigned char* blob, unsigned char* copy, size_t bytes) {
                           if (narrowed)
                               kernels->narrow((const float*)blob,
                                               (uint16_t*)(begin + (copy - begin) / 2),
                                               bytes / sizeof(float));
                           else
                               memcpy(copy, blob, bytes);
                       });
    }
}

int VulkanRegion::read_downloads(const unsigned char* from, size_t size,
                                 std::vector<Mat>* downloads, const Option& opt) const {
    downloads->clear();
    for (const Staged& staged : downloads_) {
        const Shape& shape = staged.shapes[size];
        Mat m;
        m.create(shape, 1, opt.blob_allocator);
        if (m.empty()) return kOutOfMemory;
        for_each_piece(m, shape, (unsigned char*)from + staged.offset, opt.num_threads,
                       [](unsigned char* blob, const unsigned char* copy, size_t bytes) {
                           memcpy(blob, copy, bytes);
                       });
        downloads->push_back(m);
    }
    return kOk;
}

// Reports which index was wrong.
int VulkanRegion::check_faults(const Replay& replay) const {
    int status = kOk;
    for (const Program::Fault& fault : program_.faults) {
        int32_t words[kFaultBytes / 4];
        memcpy(words, replay.faults() + fault.offset, kFaultBytes);
        if (!words[0]) continue;
        memset(replay.faults() + fault.offset, 0, kFaultBytes);
        const int size = words[2];
        status =
            layers_[fault.step]->fail("index %d, expected %d to %d", words[1], -size, size - 1);
    }
    return status;
}

int VulkanRegion::run(const std::vector<Mat>& uploads, std::vector<Mat>* downloads,
                      const Option& opt) const {
    size_t size;
    QUOLL_RETURN_IF_ERROR(find_size(uploads, &size));
    if (!caches_.empty()) {
        QUOLL_LOGE("Vulkan: a region with caches on the device is recorded, not run");
        return kError;
    }
    std::unique_ptr<Replay> replay = take(size);
    if (!replay) return kOutOfMemory;
    write_uploads(uploads, replay->upload(), opt.num_threads);
    int status = replay->run(opt.vulkan_max_in_flight);
    if (status == kOk) status = check_faults(*replay);
    if (status == kOk) status = read_downloads(replay->download(), size, downloads, opt);
    give_back(std::move(replay));
    return status;
}

// A replay between recording and running, whose staging buffers are the device's own. Many may wait
// for one submission, so their number is not limited.
struct VulkanRegion::Recorded {
    std::shared_ptr<const VulkanRegion> region;
    std::unique_ptr<Replay> replay;
    ~Recorded() {
        if (!replay) return;
        std::lock_guard<std::mutex> lock(region->mutex_);
        if (region->recorded_.size() < (size_t)kMostReplays)
            region->recorded_.push_back(std::move(replay));
    }
};

// The replay that last ran with these caches, if there is one: it need not be recorded again for
// them.
std::unique_ptr<Replay> VulkanRegion::take_recorded(size_t size,
                                                    const std::vector<Replay::Given>& given) const {
    std::unique_ptr<Replay> replay;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        auto at = std::find_if(recorded_.begin(), recorded_.end(),
                               [&](const std::unique_ptr<Replay>& r) { return r->has(given); });
        if (at == recorded_.end() && !recorded_.empty()) --at;
        if (at != recorded_.end()) {
            replay = std::move(*at);
            recorded_.erase(at);
        }
    }
    // Faults that have not been reported belong to the previous run.
    if (replay && replay->faults()) memset(replay->faults(), 0, program_.fault_bytes);
    if (!replay) replay = Replay::create(*device_, program_, false, MemoryUse::kDevice);
    if (replay) replay->give(program_, given);
    if (replay && replay->set_size(program_, size) != kOk) replay.reset();
    return replay;
}

// What record() adds before and after the replay.
struct VulkanRegion::Recording {
    size_t size;
    VkAllocator *own, *wanted;  // of the device, and for what is handed out
    bool grows;                 // caches are handed out with room
    CommandList* list;
    std::vector<CommandList::Copy> before, behind;
    std::vector<VkMat> downloads;
    std::vector<Replay::Given> given;
};

// Reserves room for more rows behind those of `past`, in its own block, if there is room and nobody
// has used it.
static bool reserve_rows(const VkMat& past, const VkAllocator* own, int rows,
                         uint32_t channel_step) {
    const bool whole = past.allocator == own && past.refcount && past.offset == 0 && past.n == 1 &&
                       past.cstep == channel_step && (size_t)past.w * rows <= channel_step;
    int before = past.h;
    return whole && static_cast<PoolBlock*>(past.data)->rows.compare_exchange_strong(before, rows);
}

int VulkanRegion::record_caches(const std::vector<VkMat>& uploads, Recording* r) const {
    for (const Cache& cache : caches_) {
        Shape shape = downloads_[cache.all].shapes[r->size];
        const int rows = shape.h;
        VkMat all;
        if (cache.past >= 0 && reserve_rows(uploads[cache.past], r->own, rows, cache.channel_step))
            all = uploads[cache.past];
        if (all.empty()) {
            shape.h = (int)(cache.channel_step / (uint32_t)shape.w);
            all.create(shape, r->own);
            if (all.empty()) return kOutOfMemory;
            static_cast<PoolBlock*>(all.data)->rows = rows;
            VkMat to = all;
            if (cache.past >= 0) {
                to.h = uploads[cache.past].h;
                CommandList::add_copies(uploads[cache.past], to, &r->before);
            }
        }
        all.h = rows;
        r->list->keep(std::make_shared<VkMat>(all));
        r->given.push_back({buffer_of(*all.data), all.buffer_offset(),
                            static_cast<const PoolBlock*>(all.data)->id});
        r->downloads[cache.all] = all;
    }
    return kOk;
}

int VulkanRegion::record_downloads(const Replay& replay, Recording* r) const {
    for (size_t i = 0; i < downloads_.size(); i++) {
        VkMat& m = r->downloads[i];
        const bool is_cache = !m.empty();
        if (is_cache && r->grows) continue;
        const VkMat made(downloads_[i].shapes[r->size], r->wanted);
        if (made.empty()) return kOutOfMemory;
        if (is_cache)
            CommandList::add_copies(m, made, &r->behind);
        else
            r->behind.push_back({replay.download_buffer(), downloads_[i].offset,
                                 buffer_of(*made.data), made.buffer_offset(), made.bytes()});
        r->list->keep(std::make_shared<VkMat>(made));
        m = made;
    }
    return kOk;
}

bool VulkanRegion::is_here(const VkMat& m, size_t index) const {
    const bool here = m.allocator->vkdev && m.allocator->vkdev->gpu() == device_;
    if (!here)
        QUOLL_LOGE("Vulkan: upload %zu is not in the memory of %s, where the net runs", index,
                   device_->info().device_name());
    return here;
}

int VulkanRegion::record(const std::vector<VkMat>& uploads, std::vector<VkMat>* downloads,
                         VkCompute& commands, const Option& opt) const {
    CommandList* list = commands.list();
    if (!list || &list->device() != device_.get()) {
        QUOLL_LOGE("Vulkan: the VkCompute is not of %s, where the net runs",
                   device_->info().device_name());
        return kError;
    }
    if (list->is_submitted())
        return recording_error("extract", "what was submitted has not been waited for");
    Recording r;
    QUOLL_RETURN_IF_ERROR(find_size(uploads, &r.size));
    for (size_t i = 0; i < uploads.size(); i++)
        if (!is_here(uploads[i], i)) return kError;
    r.list = list;
    r.own = commands.vulkan_device()->acquire_blob_allocator();
    r.wanted = opt.blob_vkallocator ? opt.blob_vkallocator : r.own;
    r.grows = opt.use_growing_cache && !opt.blob_vkallocator;
    if (!r.wanted->vkdev || r.wanted->vkdev->gpu() != device_) {
        QUOLL_LOGE("Vulkan: an allocator of another device than %s, where the net runs",
                   device_->info().device_name());
        return kError;
    }
    r.downloads.resize(downloads_.size());
    QUOLL_RETURN_IF_ERROR(record_caches(uploads, &r));
    const auto recorded = std::make_shared<Recorded>();
    recorded->region = shared_from_this();
    recorded->replay = take_recorded(r.size, r.given);
    if (!recorded->replay) return kOutOfMemory;
    list->keep(recorded);
    for (size_t i = 0; i < uploads.size(); i++) {
        list->keep(std::make_shared<VkMat>(uploads[i]));
        if (uploads_[i].offset != kNoOffset)
            CommandList::add_copies(uploads[i], recorded->replay->upload_buffer(),
                                    uploads_[i].offset, &r.before);
    }
    QUOLL_RETURN_IF_ERROR(record_downloads(*recorded->replay, &r));
    *downloads = r.downloads;
    QUOLL_RETURN_IF_ERROR(list->copy(r.before));
    QUOLL_RETURN_IF_ERROR(
        list->run_recorded(recorded->replay->commands(), opt.vulkan_max_in_flight));
    // The next run is usually longer by one.
    if (r.size < (size_t)room_)
        list->meanwhile([recorded, size = r.size] {
            return recorded->replay->prepare_size(recorded->region->program_, size + 1);
        });
    if (recorded->replay->faults())
        list->then([recorded] { return recorded->region->check_faults(*recorded->replay); });
    return list->copy(r.behind);
}

int VulkanRegion::profile(const std::vector<Mat>& uploads, std::vector<double>* seconds) const {
    const std::unique_ptr<Replay> replay = Replay::create(*device_, program_, true);
    if (!replay) return kError;
    write_uploads(uploads, replay->upload(), 1);
    QUOLL_RETURN_IF_ERROR(replay->run());
    return replay->times(seconds);
}

}  // namespace quoll
