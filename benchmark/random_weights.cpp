#include "random_weights.h"

#include <math.h>
#include <string.h>

namespace quoll {

// Weights of fewer values than this are taken for per-channel ones.
static const size_t kFewestKernelValues = 512;

// SplitMix64, Steele et al., "Fast splittable pseudorandom number generators", 2014.
static uint64_t next(uint64_t* state) {
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

void fill_random(float* values, size_t count, float low, float high, uint64_t* state) {
    const float step = (high - low) / 16777215.f;  // 24 bits, what a float holds exactly
    for (size_t i = 0; i < count; i++) values[i] = low + step * (float)(next(state) >> 40);
}

size_t RandomWeights::read(void* buf, size_t size) const {
    const size_t count = size / 4;
    memset(buf, 0, size);
    if (count > 1 && count < kFewestKernelValues)
        fill_random((float*)buf, count, 0.2f, 0.4f, &state_);
    else if (count > 1) {
        const float limit = 1.f / sqrtf(sqrtf((float)count));
        fill_random((float*)buf, count, -limit, limit, &state_);
    }
    if (copy_ && fwrite(buf, 1, size, copy_) != size) copied_ = false;
    return size;
}

}  // namespace quoll
