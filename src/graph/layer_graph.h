// The graph that passes work on: operators in their loaded form and the blobs between them. Net
// makes one between reading the weights and building pipelines, Model (graph/optimize.h) one from
// its layers; what the passes did is read back from it.
#ifndef QUOLL_GRAPH_LAYER_GRAPH_H
#define QUOLL_GRAPH_LAYER_GRAPH_H

#include <stddef.h>
#include <stdint.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "layer/common/traits.h"

namespace quoll {

// What the constants that are computed may still take: what a few layers ask for is no limit to
// what is asked of the machine.
struct ConstantBudget {
    // Of those that are kept, beside what layers take over as weights.
    size_t bytes = (size_t)64 << 20;
    // Values, or products of a sum, that are computed in all.
    int64_t work = (int64_t)1 << 28;
};

class LayerGraph {
public:
    // layers: with blob indexes as bottoms and tops; the caller keeps owning them. blob_names: one
    // a blob. kept: 1 for blobs that must stay as they are (blobs that nothing reads always do).
    LayerGraph(const std::vector<Layer*>& layers, const std::vector<std::string>& blob_names,
               const std::vector<char>& kept);

    size_t size() const { return layers_.size(); }
    // Null: removed.
    Layer* layer(int index) const { return layers_[index]; }
    // The layer as built-in operator T; null if it is of another type, custom or removed, or index
    // is -1.
    template <class T>
    T* as(int index) const {
        return index >= 0 ? quoll::as<T>(layers_[index]) : nullptr;
    }
    template <class T>
    bool is(int index) const {
        return as<T>(index) != nullptr;
    }

    int producer(int blob) const { return producer_[blob]; }
    // The layers that read a blob, once for each time.
    const std::vector<int>& readers(int blob) const { return readers_[blob]; }
    bool kept(int blob) const { return kept_[blob] != 0; }
    // The only reader of the only output of a layer; -1 if there are more or none, or if the blob
    // is kept.
    int only_reader(int index) const;

    // Changes; `what` goes into the report. `reader`, which reads nothing else of use, is removed
    // and its only output made by `index` instead. Other inputs of `reader` become inputs of
    // `index` if asked.
    void absorb(int index, int reader, bool take_inputs, const char* what);
    // Removes a layer: readers of the outputs read the input, which equals them, or which they take
    // as it is. False if that cannot be done (a kept blob on either side).
    enum class Output { same_as_input, gone };
    bool bypass(int index, const char* what, Output output = Output::same_as_input);
    // A layer takes the place of `index`, which is removed, with inputs of the caller's choice.
    // The graph owns the new one until take_new_layers().
    void replace(int index, std::unique_ptr<Layer> with, std::vector<int> bottoms,
                 const char* what);
    // Removes a layer that nothing reads any more.
    void remove(int index);
    // The layer no longer reads its input number `input`.
    void drop_input(int index, int input);
    // A blob whose values are no longer those of the model, though there is still one under its
    // name. False if it is kept.
    bool change(int blob);
    // A blob keeps its values, and not all that depended on it does so any more: what the
    // application gives in its place would not count everywhere. False if it is kept.
    bool stop_following(int blob);
    bool follows(int blob) const { return followed_[blob] != 0; }
    void count(const char* what) { report_.push_back(what); }

    ConstantBudget& constants() { return constants_; }

    // Whether back ends may run some of the layers: those that only the CPU knows are not made of
    // others then.
    bool back_ends = false;

    // What absorbed or bypassed blobs became: the blob that now holds the same values, or -1 if
    // there is none, as for changed ones. Itself for blobs that are there.
    int alias(int blob) const;
    bool gone(int blob) const { return gone_[blob] != 0; }
    // One entry for each change.
    const std::vector<std::string>& report() const { return report_; }
    bool replaced(int index) const { return new_[index] != nullptr; }
    std::unique_ptr<Layer> take_new_layer(int index) { return std::move(new_[index]); }

private:
    void unread(int blob, int reader);
    void set_bottoms(int index, const std::vector<int>& bottoms);

    std::vector<Layer*> layers_;
    std::vector<std::unique_ptr<Layer>> new_;
    std::vector<std::string> blob_names_;
    std::vector<char> kept_, gone_, changed_, followed_;
    std::vector<int> producer_, alias_;
    std::vector<std::vector<int>> readers_;
    std::vector<std::string> report_;
    ConstantBudget constants_;
};

// Makes a built-in layer in the form (fast or reference) that the graph is to hold.
typedef std::function<Layer*(const char* type)> LayerMaker;

// All passes, in their order, until nothing changes; for_file: only those whose results ncnn reads
// too. 0, or a negative code after a message (only when memory runs out); weights are then partly
// folded and the graph is of no use.
int run_passes(LayerGraph& graph, bool for_file, const LayerMaker& make);

}  // namespace quoll

#endif
