#include "layer/cpu/int8/small_values.h"

#include <string.h>

#include <algorithm>
#include <atomic>

#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// Values that a thread looks at before it asks whether others have found a negative one.
const size_t kChunk = 4096;

// Eight bytes at a time, for compilers that make no vectors of bytes here.
typedef uint64_t Word;
const Word kTops = 0x8080808080808080u;

bool any_negative(const int8_t* values, size_t count) {
    Word all = 0;
    for (; count >= sizeof(Word); count -= sizeof(Word), values += sizeof(Word)) {
        Word word;
        memcpy(&word, values, sizeof(word));
        all |= word;
    }
    int8_t rest = 0;
    for (size_t i = 0; i < count; i++) rest |= values[i];
    return (all & kTops) != 0 || rest < 0;
}

// The top bits keep a byte from borrowing of the next.
void lower(int8_t* values, size_t count) {
    const Word step = kTops / 0x80 * (Word)kInt8SmallStep;
    for (; count >= sizeof(Word); count -= sizeof(Word), values += sizeof(Word)) {
        Word word;
        memcpy(&word, values, sizeof(word));
        word = ((word | kTops) - step) ^ kTops;
        memcpy(values, &word, sizeof(word));
    }
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
