// Weights that several layers have in common lie in the weights' file once, where the first of them
// reads them.
//
// Parameter 28 of a layer, [kind, n, n, ...] for the weights that it reads, in their order: 0 is
// the next one of the file, any other number the weight that was read there as number n, from 1 on.
// ncnn cannot read such files; a layer all of whose weights are its own has no such parameter.
#ifndef QUOLL_GRAPH_SHARED_WEIGHTS_H
#define QUOLL_GRAPH_SHARED_WEIGHTS_H

#include <set>
#include <unordered_map>
#include <vector>

#include "quoll/modelbin.h"
#include "quoll/paramdict.h"

namespace quoll {

// The numbers of one layer; empty: all are the next ones of the file.
typedef std::vector<int> WeightNumbers;

// What a layer's params say, which is taken away from them.
WeightNumbers take_weight_numbers(ParamDict* params);
void put_weight_numbers(const WeightNumbers& numbers, ParamDict* params);

// The number of read `i` of a layer.
inline int weight_number(const WeightNumbers& numbers, size_t i) {
    return i < numbers.size() ? numbers[i] : 0;
}

// Hands out weights of another ModelBin, each as often as layers say.
class SharingModelBin : public ModelBin {
public:
    // By layer; both must outlive this.
    SharingModelBin(const ModelBin& from, const std::unordered_map<int, WeightNumbers>& layers);
    using ModelBin::load;
    // What follows is asked for by layer number i.
    void begin_layer(int i);
    Mat load(int w, int type) const override;

private:
    const ModelBin& from_;
    const std::unordered_map<int, WeightNumbers>& layers_;
    std::set<int> wanted_;  // those that are read again
    const WeightNumbers* numbers_ = nullptr;
    mutable size_t read_ = 0;  // of this layer
    mutable int count_ = 0;    // of the file
    mutable std::unordered_map<int, Mat> kept_;
};

}  // namespace quoll

#endif
