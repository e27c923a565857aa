// Weights of a net in the device's memory.
#ifndef QUOLL_GPU_WEIGHTS_H
#define QUOLL_GPU_WEIGHTS_H

#include <memory>
#include <vector>

#include "gpu/buffer.h"
#include "gpu/program.h"

namespace quoll {

// What WeightStore returns for a weight that no buffer of a shader holds.
const int kWeightTooLarge = -2;

// Filled while a net is loaded, by one thread; read from then on. Programs that were compiled hold
// it by shared_ptr.
class WeightStore {
public:
    // Buffers double from the first size on, so that small nets take little and large ones few.
    WeightStore(const GpuDevice& device, size_t first_buffer)
        : device_(device), first_buffer_(first_buffer) {}

    // Copies values to the device, stored as `storage`, padded with zeros to whole vec4s. 0, or a
    // negative code after a message.
    int add(const std::vector<float>& values, Storage storage, Binding* weight);
    int add_words(const std::vector<uint32_t>& words, Binding* weight);
    // A place for what a shader writes before it is read.
    int reserve(size_t bytes, Binding* weight);
    size_t bytes() const { return bytes_; }

private:
    int add_bytes(const void* data, size_t bytes, Binding* weight);
    int copy(const void* data, size_t bytes, const GpuBuffer& to, size_t offset) const;

    const GpuDevice& device_;
    const size_t first_buffer_;
    std::vector<std::unique_ptr<GpuBuffer>> buffers_;
    size_t used_ = 0;  // of the last buffer
    size_t bytes_ = 0;
};

}  // namespace quoll

#endif
