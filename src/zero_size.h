// Blobs of which an axis has size 0 (no detections, no tokens), for layers that know nothing of
// them: there is nothing to compute, only sizes to be found.
#ifndef QUOLL_ZERO_SIZE_H
#define QUOLL_ZERO_SIZE_H

#include <vector>

#include "layer.h"

namespace quoll {

// The shapes that a layer's outputs have for inputs of which some have an axis, or a batch count,
// of size 0: what its shape rule says of sizes 2, 3 and 4 in that place, continued to 0. An error,
// with a message, if those do not lie on a line, or if an output would have values.
int shapes_without_values(const Layer& layer, const std::vector<Shape>& in,
                          std::vector<Shape>* out);

}  // namespace quoll

#endif
