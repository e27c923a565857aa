// Weights of a net in the device's memory.
#ifndef QUOLL_GPU_WEIGHTS_H
#define QUOLL_GPU_WEIGHTS_H

#include <memory>
#include <vector>

#include "gpu/buffer.h"
#include "gpu/program.h"
#include "gpu/staging_ring.h"

namespace quoll {

// What WeightStore returns for a weight that no buffer of a shader holds.
const int kWeightTooLarge = -2;

// Filled while a net is loaded, by one thread; read from then on. Programs that were compiled hold
// it by shared_ptr. Memory that the host sees is written in place; other weights are on their way
// to the device until finish().
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
    // Sends what is left to the device, and does not wait: the host can go on meanwhile.
    int submit() { return ring_ ? ring_->submit() : 0; }
    // Waits until the device has all weights, which has to be before a shader reads them. For any
    // number of threads. 0, or a negative code after a message, also if a weight was lost before.
    int finish() { return ring_ ? ring_->finish() : 0; }
    size_t bytes() const { return bytes_; }

private:
    int add_bytes(size_t bytes, const StagingRing::Write& write, Binding* weight);

    const GpuDevice& device_;
    const size_t first_buffer_;
    std::vector<std::unique_ptr<GpuBuffer>> buffers_;
    std::unique_ptr<StagingRing> ring_;  // ends its copies before the buffers go
    size_t used_ = 0;                    // of the last buffer
    size_t bytes_ = 0;
};

}  // namespace quoll

#endif
