// Weights for a model without a .bin: bounded pseudo-random numbers, the same on every machine.
#ifndef QUOLL_BENCHMARK_RANDOM_WEIGHTS_H
#define QUOLL_BENCHMARK_RANDOM_WEIGHTS_H

#include <stdint.h>
#include <stdio.h>

#include <map>

#include "quoll/datareader.h"

namespace quoll {

class Model;

// Yields what layers ask for, without end. Reads of 4 bytes are zero: the tag of fp32 weights. Long
// reads (kernels, matrices) are spread evenly around zero, the more closely the longer they are, so
// that blobs neither grow nor vanish from layer to layer; short ones (slopes, scales, variances)
// are positive.
class RandomWeights : public DataReader {
public:
    // With `copy` everything that is read is written there too: a .bin for the model.
    explicit RandomWeights(FILE* copy = nullptr) : copy_(copy) {}
    // For these layers: scales of int8 weights and blobs are such that the values fill the range of
    // bytes. A weight of one value is as random as others then.
    explicit RandomWeights(const Model& model, FILE* copy = nullptr);
    size_t read(void* buf, size_t size) const override;
    // False when `copy` could not take everything.
    bool copied() const { return copied_; }

private:
    FILE* copy_;
    std::map<uint64_t, float> scales_;  // largest of those that are read at this offset
    mutable uint64_t state_ = 0, offset_ = 0;
    mutable bool copied_ = true;
};

// Fills with numbers from low to high.
void fill_random(float* values, size_t count, float low, float high, uint64_t* state);

}  // namespace quoll

#endif
