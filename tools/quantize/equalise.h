// Cross-layer equalisation: gives the channels of one blob similar ranges.
#ifndef QUOLL_TOOLS_QUANTIZE_EQUALISE_H
#define QUOLL_TOOLS_QUANTIZE_EQUALISE_H

#include <set>
#include <string>

#include "graph/model.h"
#include "quantize/calibrate.h"

namespace quoll {

// The blobs that can be equalised: outputs of convolutions whose activation scales with its input
// (none, ReLU, leaky ReLU) and which only convolutions read, maybe behind pooling; of such inner
// products, LayerNorm and RMSNorm which only inner products read (SmoothQuant). It takes their
// channels' extremes (BlobStats::channel_limits).
std::set<std::string> equalisable_blobs(const Model& model);

// Channel c of such a blob is multiplied by a factor where it is made, and divided by it where it
// is read: the answers are the same but for rounding, also in float. Depthwise convolutions have a
// scale for each channel, which makes channels of one range free of cost; behind others the factors
// are those, of a few, for which rounding activations and weights costs least together. free_only:
// only what costs nothing, and rows, not what other convolutions read. left_alone: blobs that stay
// as they are. `done`: how many changed. 0, or a negative code after a message.
int equalise(const Calibration& seen, bool free_only, const std::set<std::string>& left_alone,
             Model* model, int* done);

}  // namespace quoll

#endif
