#include "layer/vulkan/compiled_region.h"

#include <string.h>

#include <algorithm>

#include "gpu/command_list.h"
#include "gpu/vk_compute.h"
#include "layer/cpu/cast/storage.h"
#include "layer/vulkan/recorder.h"
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
                         const std::vector<size_t>& upload_offsets,
                         const std::vector<size_t>& download_offsets, Storage storage,
                         const Option& opt) {
    storage_ = storage, room_ = (int)sizes.size() - 1;
    for (size_t i = 0; i < region.values.size(); i++) {
        const RegionValue& value = region.values[i];
        std::vector<Shape> shapes;
        for (const std::vector<Shape>& size : sizes) shapes.push_back(size[i]);
        if (value.is_uploaded()) uploads_.push_back({shapes, upload_offsets[uploads_.size()]});
        if (value.is_downloaded)
            downloads_.push_back({shapes, download_offsets[downloads_.size()]});
    }
    for (const RegionStep& step : region.steps) layers_.push_back(step.layer);
    QUOLL_RETURN_IF_ERROR(program_.finish(*device_, opt.num_threads));
    if (opt.vulkan_slice_us > 0) QUOLL_RETURN_IF_ERROR(divide(opt));
    // What grows is mostly recorded by a VkCompute, which has replays of its own.
    if (room_ > 0) return kOk;
    std::unique_ptr<Replay> first = Replay::create(*device_, program_, false);
    if (!first) return kError;
    count_ = 1;
    idle_.push_back(std::move(first));
    return kOk;
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

// The device may have been asleep in the first run.
int VulkanRegion::divide(const Option& opt) {
    std::vector<double> seconds;
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

// Null after a message.
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
        const StorageKernels& f16 = host_kernel_set().cast->f16;
        unsigned char* const begin = to + uploads_[i].offset;
        for_each_piece(m, shape, begin, threads,
                       [&](const unsigned char* blob, unsigned char* copy, size_t bytes) {
                           if (narrowed)
                               f16.narrow((const float*)blob,
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

// Says which index was wrong.
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
    std::unique_ptr<Replay> replay = take(size);
    if (!replay) return kOutOfMemory;
    write_uploads(uploads, replay->upload(), opt.num_threads);
    int status = replay->run(opt.vulkan_max_in_flight);
    if (status == kOk) status = check_faults(*replay);
    if (status == kOk) status = read_downloads(replay->download(), size, downloads, opt);
    give_back(std::move(replay));
    return status;
}

// Between recording and running, a replay whose staging buffers are the device's own. Many may wait
// for one submission, so that there is no bound on how many there are.
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

std::unique_ptr<Replay> VulkanRegion::take_recorded(size_t size) const {
    std::unique_ptr<Replay> replay;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (!recorded_.empty()) {
            replay = std::move(recorded_.back());
            recorded_.pop_back();
        }
    }
    if (!replay) replay = Replay::create(*device_, program_, false, MemoryUse::kDevice);
    if (replay && replay->set_size(program_, size) != kOk) replay.reset();
    return replay;
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
    size_t size;
    QUOLL_RETURN_IF_ERROR(find_size(uploads, &size));
    for (size_t i = 0; i < uploads.size(); i++)
        if (!is_here(uploads[i], i)) return kError;
    const auto recorded = std::make_shared<Recorded>();
    recorded->region = shared_from_this();
    recorded->replay = take_recorded(size);
    if (!recorded->replay) return kOutOfMemory;
    list->keep(recorded);
    std::vector<CommandList::Copy> in, out;
    for (size_t i = 0; i < uploads.size(); i++) {
        size_t to = uploads_[i].offset;
        for (int b = 0; b < uploads[i].n; b++) {
            const VkMat item = uploads[i].batch(b);
            in.push_back({buffer_of(*item.data), item.buffer_offset(),
                          recorded->replay->upload_buffer(), to, item.bytes()});
            to += item.bytes();
        }
        list->keep(std::make_shared<VkMat>(uploads[i]));
    }
    VkAllocator* allocator = opt.blob_vkallocator;
    if (!allocator) allocator = commands.vulkan_device()->acquire_blob_allocator();
    if (!allocator->vkdev || allocator->vkdev->gpu() != device_) {
        QUOLL_LOGE("Vulkan: an allocator of another device than %s, where the net runs",
                   device_->info().device_name());
        return kError;
    }
    downloads->clear();
    for (const Staged& staged : downloads_) {
        const VkMat made(staged.shapes[size], allocator);
        if (made.empty()) return kOutOfMemory;
        out.push_back({recorded->replay->download_buffer(), staged.offset, buffer_of(*made.data),
                       made.buffer_offset(), made.bytes()});
        list->keep(std::make_shared<VkMat>(made));
        downloads->push_back(made);
    }
    QUOLL_RETURN_IF_ERROR(list->copy(in));
    QUOLL_RETURN_IF_ERROR(
        list->run_recorded(recorded->replay->commands(), opt.vulkan_max_in_flight));
    // What comes next is mostly longer by one.
    if (size < (size_t)room_)
        list->meanwhile([recorded, size] {
            return recorded->replay->prepare_size(recorded->region->program_, size + 1);
        });
    if (recorded->replay->faults())
        list->then([recorded] { return recorded->region->check_faults(*recorded->replay); });
    return list->copy(out);
}

int VulkanRegion::profile(const std::vector<Mat>& uploads, std::vector<double>* seconds) const {
    const std::unique_ptr<Replay> replay = Replay::create(*device_, program_, true);
    if (!replay) return kError;
    write_uploads(uploads, replay->upload(), 1);
    QUOLL_RETURN_IF_ERROR(replay->run());
    return replay->times(seconds);
}

}  // namespace quoll
