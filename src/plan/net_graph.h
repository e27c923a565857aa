// A loaded net as plans and executors see it.
#ifndef QUOLL_PLAN_NET_GRAPH_H
#define QUOLL_PLAN_NET_GRAPH_H

#include <memory>
#include <vector>

#include "quoll/blob.h"
#include "quoll/layer.h"
#include "runtime/parts.h"

namespace quoll {

class Backend;

struct NetGraph {
    std::vector<Blob> blobs;
    std::vector<Layer*> layers;
    // For each blob, the layers that read it, ascending.
    std::vector<std::vector<int>> consumers;
    // They are asked in this order which steps they run; the host runs the rest.
    std::vector<std::shared_ptr<Backend>> backends;
    // For each layer (empty: for none) whether only a back end has its weights, so that the host
    // cannot run it.
    std::vector<char> off_host;
    // For each blob (empty: for none) whether it stays f32 where others are half floats
    // (plan/precise_blobs.h).
    std::vector<char> precise;
    Option loaded_opt;         // the options that create_pipeline saw
    bool has_concats = false;  // in their fast form

    bool has_backends() const { return kHasBackends && !backends.empty(); }
    // Whether a blob that a layer made as f32 is kept in the storage type. One that no layer reads
    // is not: the application would have it widened again (the caches of a language model, in each
    // step). Back ends other than the host store what they make themselves.
    bool is_narrowed(int blob) const {
        if (has_backends()) return true;
        return !consumers[blob].empty() && (precise.empty() || !precise[blob]);
    }
    bool is_off_host(int layer) const {
        return kHasBackends && !off_host.empty() && off_host[layer];
    }
};

// Not an error code: the host has to run a layer whose weights it has given up
// (NetGraph::off_host).
const int kNeedsHostWeights = 1;

}  // namespace quoll

#endif
