// Which weights belong to which param.
//
// A program that writes both notes in the param how many bytes the weights have, and a hash of
// samples of them: parameter 29 of the first layer, [kind, size, size >> 32, hash, hash >> 32]. No
// layer uses this id, and ncnn skips it. Params without it (ncnn's) take any weights that fit.
#ifndef QUOLL_WEIGHTS_ID_PRIVATE_H
#define QUOLL_WEIGHTS_ID_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

#include "quoll/datareader.h"
#include "quoll/datawriter.h"
#include "quoll/paramdict.h"

namespace quoll {

struct WeightsId {
    uint64_t size = 0;  // in bytes; 0: nothing is known
    uint64_t hash = 0;
};

// The id in a layer's params, from which it is removed.
WeightsId take_weights_id(ParamDict* params);
void put_weights_id(const WeightsId& id, ParamDict* params);

// Hashes weights of a known size, written in pieces of any length. Small weights are hashed as a
// whole; of others, samples at evenly spread places, so that it costs next to nothing however large
// they are. Weights that were trained again, or of another model, differ in all samples.
class WeightsHash : public DataWriter {
public:
    explicit WeightsHash(uint64_t size) : size_(size), hash_(size) {}
    size_t write(const void* data, size_t size) const override;
    uint64_t hash() const { return hash_; }

    // The hash of weights of that many bytes, whose samples follow each other at `samples`.
    static uint64_t of_samples(uint64_t size, const unsigned char* samples, size_t bytes);
    // Sample i of count(): bytes from begin(i) on.
    int count() const;
    uint64_t begin(int i) const;
    size_t length() const;

private:
    const uint64_t size_;
    mutable uint64_t hash_, at_ = 0;
};

// Counts bytes.
class CountBytes : public DataWriter {
public:
    size_t write(const void*, size_t size) const override { return count += size, size; }
    mutable uint64_t count = 0;
};

// An error, with a message, if weights are not those that the param was written with.
int check_weights_id(const WeightsId& param, const WeightsId& weights);
// The id of weights in memory, which has at least the bytes that the id says.
WeightsId weights_id_of(const unsigned char* weights, size_t size);

// To be called when all layers have read their weights: an error, with the counts, if some of the
// `size` bytes that dr had at the beginning are left over.
int check_all_read(const DataReader& dr, size_t size);

}  // namespace quoll

#endif
