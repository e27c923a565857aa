// Files that say how single layers and blobs are to be quantised, and that are written back with
// what was chosen: JSON, or YAML where yaml-cpp is there.
//
//   {"version": 1,
//    "quantizer_targets": {
//      "constant_weights": [{"target_name": "conv1", "bitwidth": 8}],
//      "activations": [{"target_name": "data", "bitwidth": 8,
//                       "quantizer": {"type": "ConstantQuantizer",
//                                     "settings": {"min_vals": -1, "max_vals": 1}}}]},
//    "layers": {"fc": "float"},
//    "generator_settings": {"equalized": false}}
//
// constant_weights name layers, activations blobs; bit widths up to 8 are int8, above 8 (to 16) the
// layer stays in float, and those that read the blob become a16w8, with steps of so many bits.
// Types of quantizers: LastValueQuantizer, EMAQuantizer (ema_decay), AllValuesQuantizer,
// ConstantQuantizer, UnionQuantizer (sources), and methods of enginequantize by their names.
// "layers": kinds, which go before bit widths.
#ifndef QUOLL_TOOLS_QUANTIZE_OVERRIDES_H
#define QUOLL_TOOLS_QUANTIZE_OVERRIDES_H

#include <string>
#include <vector>

#include "quantize/quantize.h"

namespace quoll {

// Adds what the file says. equalized: its ranges are those of equalised channels. 0, or a negative
// code after a message with the place in the file.
int read_overrides(const std::string& path, QuantizeOptions* options, bool* equalized);
// What was chosen, as JSON.
std::string overrides_text(const std::vector<LayerChoice>& layers, bool equalized);

}  // namespace quoll

#endif
