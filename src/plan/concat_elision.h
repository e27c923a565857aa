// Where layers make their outputs so that a Concat finds them in its own.
#ifndef QUOLL_PLAN_CONCAT_ELISION_H
#define QUOLL_PLAN_CONCAT_ELISION_H

#include <vector>

#include "quoll/layer.h"

namespace quoll {

// A guess: what comes out in another size, elempack or type than expected is copied.
struct ConcatElision {
    // Channels (indexes of the outermost axis) `first` to `first + count - 1` of a root.
    struct Alias {
        int root = -1;    // in `roots`; -1: none
        int concat = -1;  // the layer whose output it is a part of; the root's own layer: all of it
        int first = 0, count = 0;
        bool has_parts = false;  // the output of a Concat, of which inputs have aliases
        // The blob that has the alias, of which this one is a part; -1: itself.
        int source = -1;
        // Some of its parts are in others' aliases: these can be used once it is read no more.
        bool overlaps = false;
    };
    std::vector<Alias> aliases;  // for each blob
    // The output of a Concat that is not itself made within another's.
    struct Root {
        Shape shape;
        int elempack;
    };
    std::vector<Root> roots;
};

// shapes: of all blobs, dims 0 if unknown; packs: their elempacks. consumers: of each blob,
// ascending. `opt` is what the layers were prepared with. Light mode's most bytes alive at a time
// do not grow.
ConcatElision plan_concat_elision(const std::vector<Layer*>& layers,
                          const std::vector<std::vector<int>>& consumers,
                          const std::vector<Shape>& shapes, const std::vector<int>& packs,
                          const Option& opt);

}  // namespace quoll

#endif
