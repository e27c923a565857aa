// Method eq: ranges of activations by the answers of the layers that read them.
#ifndef QUOLL_TOOLS_QUANTIZE_EQ_SEARCH_H
#define QUOLL_TOOLS_QUANTIZE_EQ_SEARCH_H

#include "quantize/quantize.h"

namespace quoll {

// For each blob that layers of a static kind read: searches the range with which these layers'
// outputs, each computed alone from exact inputs, have the least squared error. Tried are ranges
// from the whole down to three tenths of it, and those of mse and percentile. samples: a few, whose
// blobs are all kept. Fills options->searched. Returns 0, or a negative code after a message.
int search_ranges(const Model& model, const Calibration& calibration, const SampleSource& samples,
                  int threads, const ProgressSink& progress, QuantizeOptions* options);

}  // namespace quoll

#endif
