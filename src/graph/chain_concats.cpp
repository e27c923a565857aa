#include <algorithm>

#include "graph/passes.h"
#include "layer/tensor/concat.h"

namespace quoll {

namespace {

// If `reader`, a layer before `index`, is a Concat: how many blobs it joins that are the first ones
// of `whole`; 0 if it joins others, too.
size_t joined_before(const LayerGraph& graph, int reader, int index, const Concat& whole) {
    const Concat* part = reader < index ? graph.as<Concat>(reader) : nullptr;
    if (!part || part->axis != whole.axis || part->tops.size() != 1) return 0;
    const size_t count = part->bottoms.size();
    const bool first =
        count > 1 && count < whole.bottoms.size() &&
        std::equal(part->bottoms.begin(), part->bottoms.end(), whole.bottoms.begin());
    return first ? count : 0;
}

}  // namespace

int chain_concats(LayerGraph& graph, int index, const LayerMaker& make) {
    const Concat* whole = graph.as<Concat>(index);
    if (!whole || whole->bottoms.empty()) return 0;
    size_t most = 0;
    int before = -1;
    for (int reader : graph.readers(whole->bottoms[0])) {
        const size_t count = joined_before(graph, reader, index, *whole);
        if (count > most) most = count, before = reader;
    }
    if (before < 0) return 0;
    std::unique_ptr<Layer> with(make("Concat"));
    Concat* concat = as<Concat>(with.get());
    if (!concat) return 0;  // left out of this build
    if (!graph.stop_following(graph.layer(before)->tops[0])) return 0;
    concat->axis = whole->axis;
    std::vector<int> bottoms = {graph.layer(before)->tops[0]};
    bottoms.insert(bottoms.end(), whole->bottoms.begin() + (ptrdiff_t)most, whole->bottoms.end());
    graph.replace(index, std::move(with), bottoms, "Concat of what another one has joined");
    return 1;
}

}  // namespace quoll
