// Which weights belong to which param: two files that are written together say the same number.
//
// The param has it as parameter 29 of its first layer, [kind, low, high], an id that no layer has
// and that ncnn skips; the weights have it in 16 bytes at their end, which ncnn does not read. It
// is a hash of the weights, so that the same model gives the same files. Files without it (ncnn's)
// are taken as they are.
#ifndef QUOLL_WEIGHTS_END_PRIVATE_H
#define QUOLL_WEIGHTS_END_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

#include "datareader.h"
#include "datawriter.h"
#include "paramdict.h"

namespace quoll {

enum { kWeightsEndSize = 16 };

// The number that a layer's params have, 0 if none, and takes it away.
uint64_t take_weights_id(ParamDict* params);
void put_weights_id(uint64_t id, ParamDict* params);

int write_weights_end(uint64_t id, const DataWriter& dw);
// The number in the last bytes of weights, 0 if they are none such.
uint64_t weights_id_of(const unsigned char end[kWeightsEndSize]);

// Says that these weights (0: that do not say) are not the param's; an error.
int refuse_other_weights(uint64_t id, uint64_t theirs);

// When all layers have read their weights: reads what the weights end with, and fails, with a
// message, if they are not those of the param (id; 0: it does not say). `whole`: nothing may be
// left over; `size`: what dr.remaining() was in the beginning.
int check_weights_end(const DataReader& dr, uint64_t id, bool whole, size_t size);

// Takes weights in for their number, which depends on their bytes only.
class WeightsHash : public DataWriter {
public:
    size_t write(const void* data, size_t size) const override;
    // Not 0; 0 if there were no bytes.
    uint64_t id() const;

private:
    void add_word(uint64_t word) const;

    mutable uint64_t hash_ = 0, word_ = 0, size_ = 0;
};

}  // namespace quoll

#endif
