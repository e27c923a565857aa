#include "layer/cpu/int8/small_values.h"

#include <algorithm>
#include <atomic>

#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// Values that a thread looks at before it asks whether others have found a negative one.
const size_t kChunk = 4096;

// Functions of their own, so that compilers make vectors of them: bytes may be part of what a
// closure refers to.
bool any_negative(const int8_t* values, size_t count) {
    int8_t all = 0;
    for (size_t i = 0; i < count; i++) all |= values[i];
    return all < 0;
}

void lower(int8_t* values, size_t count) {
    for (size_t i = 0; i < count; i++) values[i] = (int8_t)(values[i] - kInt8SmallStep);
}

}  // namespace

bool int8_make_small(int8_t* values, size_t count, int threads) {
    const int64_t chunks = (int64_t)((count + kChunk - 1) / kChunk);
    const auto size = [=](int64_t i) { return std::min(kChunk, count - (size_t)i * kChunk); };
    std::atomic<bool> negative{false};
    parallel_for(chunks, threads, [&](int64_t i) {
        if (!negative.load(std::memory_order_relaxed) && any_negative(values + i * kChunk, size(i)))
            negative.store(true, std::memory_order_relaxed);
    });
    if (negative) return false;
    parallel_for(chunks, threads, [&](int64_t i) { lower(values + i * kChunk, size(i)); });
    return true;
}

}  // namespace quoll
