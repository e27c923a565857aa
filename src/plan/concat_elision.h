// Concat elision: layers make their outputs directly in the output of the Concat that joins them.
#ifndef QUOLL_PLAN_CONCAT_ELISION_H
#define QUOLL_PLAN_CONCAT_ELISION_H

#include <vector>

#include "quoll/layer.h"

namespace quoll {

// A prediction: an output that has another size, elempack or type than expected is copied.
struct ConcatElision {
    // Channels (indexes of the outermost axis) `first` to `first + count - 1` of a root.
    struct Alias {
        int root = -1;    // in `roots`; -1: none
        int concat = -1;  // the layer whose output it is a part of; the root's own layer: all of it
        int first = 0, count = 0;
        bool has_parts = false;  // the output of a Concat, of which inputs have aliases
        // The blob that has the alias, if this one is a part of it; -1: this one itself.
        int source = -1;
        // Some of its parts are also in others' aliases, which can be used only once this one has
        // been read for the last time.
        bool overlaps = false;
    };
    std::vector<Alias> aliases;  // for each blob
    // The output of a Concat that is not itself part of another Concat's output.
    struct Root {
        Shape shape;
        int elempack;
    };
    std::vector<Root> roots;
};

// shapes: of all blobs, dims 0 if unknown; packs: their elempacks. consumers: of each blob,
// ascending. opt: that with which the layers were prepared. The plan never increases the peak of
// live bytes in light mode.
ConcatElision plan_concat_elision(const std::vector<Layer*>& layers,
                                  const std::vector<std::vector<int>>& consumers,
                                  const std::vector<Shape>& shapes, const std::vector<int>& packs,
                                  const Option& opt);

}  // namespace quoll

#endif
