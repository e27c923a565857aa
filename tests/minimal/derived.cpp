// derived: classes of the public headers derived from and copied, with type information, as
// applications do: what the headers define inline is not in a small shared library. Returns 0 where
// each object is what it was made as.
#include "quoll/allocator.h"
#include "quoll/datareader.h"
#include "quoll/gpu.h"
#include "quoll/layer.h"
#include "quoll/modelbin.h"
#include "quoll/net.h"

namespace {

struct OwnLayer : quoll::Layer {};
struct OwnAllocator : quoll::PoolAllocator {};
struct OwnReader : quoll::EmptyDataReader {};
struct OwnWeights : quoll::ModelBinFromMatArray {
    explicit OwnWeights(const quoll::Mat* weights) : quoll::ModelBinFromMatArray(weights) {}
};
struct OwnObserver : quoll::LayerObserver {
    void before(const quoll::Layer&) override {}
    void after(const quoll::Layer&, const std::vector<quoll::Mat>&) override {}
};
struct OwnNet : quoll::Net {};

template <class Derived, class Base>
bool is(Base& object) {
    return dynamic_cast<Derived*>(&object) != nullptr;
}

}  // namespace

int main() {
    const quoll::Mat weights[1];
    OwnLayer layer;
    OwnAllocator allocator;
    OwnReader reader;
    OwnWeights bin(weights);
    OwnObserver observer;
    OwnNet net;
    const quoll::StoredWeight weight(weights[0]);
    const quoll::StoredWeight copy(weight);
    const bool all = is<OwnLayer>(static_cast<quoll::Layer&>(layer)) &&
                     is<OwnAllocator>(static_cast<quoll::Allocator&>(allocator)) &&
                     is<OwnReader>(static_cast<quoll::DataReader&>(reader)) &&
                     is<OwnWeights>(static_cast<quoll::ModelBin&>(bin)) &&
                     is<OwnObserver>(static_cast<quoll::LayerObserver&>(observer)) &&
                     is<OwnNet>(static_cast<quoll::Net&>(net));
    return all && quoll::get_gpu_count() == 0 ? 0 : 1;
}
