// Activations that are not negative, as behind ReLU, for tiles that are faster with small values
// (Int8Kernels::small_is_faster).
#ifndef QUOLL_LAYER_CPU_INT8_SMALL_VALUES_H
#define QUOLL_LAYER_CPU_INT8_SMALL_VALUES_H

#include <stddef.h>
#include <stdint.h>

namespace quoll {

// 0 to 127 less this are -64 to 63.
const int kInt8SmallStep = 64;
// Makes all values so much lower if none is negative, and returns whether it did.
bool int8_make_small(int8_t* values, size_t count, int threads);

}  // namespace quoll

#endif
