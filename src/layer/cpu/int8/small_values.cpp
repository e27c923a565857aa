#include "layer/cpu/int8/small_values.h"

#include <algorithm>
#include <atomic>

#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// Values that a thread looks at before it asks whether others have found a negative one.
const size_t kChunk = 4096;

}  // namespace

bool int8_make_small(int8_t* values, size_t count, int threads) {
    const int64_t chunks = (int64_t)((count + kChunk - 1) / kChunk);
    const auto end = [&](int64_t chunk) { return std::min(count, ((size_t)chunk + 1) * kChunk); };
    std::atomic<bool> negative{false};
    parallel_for(chunks, threads, [&](int64_t chunk) {
        if (negative.load(std::memory_order_relaxed)) return;
        int8_t all = 0;
        for (size_t i = chunk * kChunk, last = end(chunk); i < last; i++) all |= values[i];
        if (all < 0) negative.store(true, std::memory_order_relaxed);
    });
    if (negative) return false;
    parallel_for(chunks, threads, [&](int64_t chunk) {
        for (size_t i = chunk * kChunk, last = end(chunk); i < last; i++)
            values[i] = (int8_t)(values[i] - kInt8SmallStep);
    });
    return true;
}

}  // namespace quoll
