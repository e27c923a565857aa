#include "gpu/weights.h"

#include <string.h>

#include <algorithm>

#include "layer/cpu/cast/storage.h"
#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

static const size_t kLargeBuffer = (size_t)64 << 20;

// Writes bytes [first, first + count) of values that are followed by zeros.
static void write_values(const std::vector<float>& values, Storage storage, unsigned char* to,
                         size_t first, size_t count) {
    const size_t size = storage_size(storage), begin = first / size;
    const size_t own = std::min(values.size() - begin, count / size);
    const StorageKernels* kernels = storage_kernels(host_kernel_set(), dtype_of(storage));
    if (kernels)
        kernels->narrow(values.data() + begin, (uint16_t*)to, own);
    else if (own)
        memcpy(to, values.data() + begin, own * size);
    memset(to + own * size, 0, count - own * size);
}

int WeightStore::add(const std::vector<float>& values, Storage storage, Binding* weight) {
    const size_t padded = (values.size() + 3) / 4 * 4;
    const auto write = [&](unsigned char* to, size_t first, size_t count) {
        write_values(values, storage, to, first, count);
    };
    return add_bytes(padded * storage_size(storage), write, weight);
}

int WeightStore::add_words(const std::vector<uint32_t>& words, Binding* weight) {
    const auto write = [&](unsigned char* to, size_t first, size_t count) {
        if (count) memcpy(to, (const unsigned char*)words.data() + first, count);
    };
    return add_bytes(words.size() * 4, write, weight);
}

int WeightStore::add_bytes(size_t bytes, const StagingRing::Write& write, Binding* weight) {
    QUOLL_RETURN_IF_ERROR(reserve(bytes, weight));
    const GpuBuffer& to = *buffers_.back();
    if (to.mapped()) {
        write(to.mapped() + weight->offset, 0, bytes);
        return kOk;
    }
    if (!ring_) ring_.reset(new StagingRing(device_, first_buffer_));
    return ring_->copy(to.handle(), weight->offset, bytes, write);
}

int WeightStore::reserve(size_t bytes, Binding* weight) {
    if (bytes > device_.limits().maxStorageBufferRange) {
        QUOLL_LOGW("Vulkan: a weight of %zu bytes, %s takes at most %u: the CPU runs its layer",
                   bytes, device_.info().device_name(), device_.limits().maxStorageBufferRange);
        return kWeightTooLarge;
    }
    const size_t alignment = device_.alignment();
    used_ = (used_ + alignment - 1) / alignment * alignment;
    if (buffers_.empty() || used_ + bytes > buffers_.back()->bytes()) {
        const size_t last = buffers_.empty() ? first_buffer_ / 2 : buffers_.back()->bytes();
        const size_t size = std::max(bytes, std::min(last * 2, kLargeBuffer));
        std::unique_ptr<GpuBuffer> buffer = GpuBuffer::create(device_, MemoryUse::kWeights, size);
        if (!buffer) return kOutOfMemory;
        buffers_.push_back(std::move(buffer));
        used_ = 0;
    }
    weight->where = Binding::kFixed, weight->buffer = buffers_.back()->handle();
    weight->offset = used_, weight->bytes = bytes;
    used_ += bytes, bytes_ += bytes;
    return kOk;
}

}  // namespace quoll
