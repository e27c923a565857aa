// Which weights belong to which param.
//
// A program that writes both says in the param how many bytes the weights have, and a hash of
// samples of them: parameter 29 of the first layer, [kind, size, size >> 32, hash, hash >> 32], an
// id that no layer has and that ncnn skips. Params without it (ncnn's) take any weights that fit.
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

// What a layer's params say, which is taken away from them.
WeightsId take_weights_id(ParamDict* params);
void put_weights_id(const WeightsId& id, ParamDict* params);

// Takes in weights of a known size, in pieces of any length. Samples: small ones as a whole, others
// at places that are evenly spread, so that it costs next to nothing however large they are; what
// was trained anew, or is another model's, differs in all of them.
class WeightsHash : public DataWriter {
public:
    explicit WeightsHash(uint64_t size) : size_(size), hash_(size) {}
    size_t write(const void* data, size_t size) const override;
    uint64_t hash() const { return hash_; }

    // Of the samples of so many bytes, one behind the other.
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
// Of memory that has at least the bytes that the id says.
WeightsId weights_id_of(const unsigned char* weights, size_t size);

// When all layers have read their weights: an error, with the counts, if something is left over of
// the `size` bytes that dr had in the beginning.
int check_all_read(const DataReader& dr, size_t size);

}  // namespace quoll

#endif
