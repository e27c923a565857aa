// quoll_quantize: from a float model and data to an int8 one. Programs may bring data of their own
// (SampleSource in samples.h):
//
//   quoll::Calibration seen;
//   if (quoll::calibrate(model, samples, quoll::blobs_to_watch(model), {}, &seen)) return 1;
//   std::vector<quoll::LayerChoice> layers;
//   if (quoll::quantize_model(seen, quoll::QuantizeOptions(), &model, &layers)) return 1;
#ifndef QUOLL_TOOLS_QUANTIZE_QUANTIZE_H
#define QUOLL_TOOLS_QUANTIZE_QUANTIZE_H

#include <map>
#include <set>
#include <string>
#include <vector>

#include "quantize/calibrate.h"
#include "quantize/int8_model.h"
#include "quantize/reconstruct.h"
#include "quantize/threshold.h"

namespace quoll {

// What a file of overrides, or an option, says of a layer or blob.
struct LayerOverride {
    std::string kind;  // as in LayerChoice; "": not said
};
struct BlobOverride {
    ValueRange range;  // if seen()
    int bits = 0;      // of the activations; 0: not said
    bool has_method = false;
    ThresholdOptions method;
    std::vector<std::string> sources;  // whose ranges are joined with its own
};

// Layers with rounded weights and corrected biases, by kind and name, which do not depend on the
// ranges of their inputs: computed once for many trials on one model, calibration and set of
// options.
struct MadeLayer {
    ModelLayer layer;
    std::vector<float> scales;
};
typedef std::map<std::pair<std::string, std::string>, MadeLayer> MadeLayers;

struct QuantizeOptions {
    ThresholdOptions thresholds;
    WeightOptions weights;
    std::string kind = "affine";  // of layers that no override names
    bool bias_correction = true;
    bool hard_ranges = false;   // known ranges go before measured ones; else they only limit these
    bool join_concat = false;   // blobs that are concatenated share their range (method union)
    bool input_factors = true;  // of blocks of weights, where they are rounded by the outputs
    bool trial = false;         // no warnings: the run that counts gives them
    BlobSizes sizes;            // of inputs that the model leaves open
    std::map<std::string, LayerOverride> layers;
    std::map<std::string, BlobOverride> blobs;
    RoundedWeights rounded;                      // of weight_grids, from reconstruct_weights
    MadeLayers* made = nullptr;                  // of trials before, and for those that follow
    std::map<std::string, ValueRange> searched;  // of method eq, by source: see eq_search.h
};

// Inputs of 16 bits and weights of 8.
const char kInt16Kind[] = "a16w8";
// Whether layers of this kind round their input by measured ranges.
inline bool is_static_kind(const std::string& kind) {
    return kind == "int8" || kind == "affine" || kind == kInt16Kind;
}

// The sizes of the blobs for which they follow from those of the inputs.
BlobSizes known_sizes(const Model& model, const BlobSizes& given);

// The kind that a layer is to get: that of its override, else options.kind.
std::string kind_of_layer(const QuantizeOptions& options, const std::string& layer);

// What became of a layer.
struct LayerChoice {
    int layer;  // in the Model
    std::string name, type;
    std::string blob, source;  // what it reads, and whose range that has
    std::string kind;          // "int8", "affine", "a16w8", "float" or one of weight_kinds.h
    ValueRange range;          // of the input, of int8 ones
    // Where the range is from: "override", "model" (quantised there), "known" (from the operator)
    // or "measured".
    std::string origin;
    std::string method;  // of measured ones
    int bits = 8;        // of the input, of static kinds
    std::string why;     // it stays in float, though int8 was asked for
    float input_scale = 0.f;
    std::vector<float> weight_scales;
};

// The blobs whose values quantize_model needs to know.
std::set<std::string> blobs_to_watch(const Model& model);

// Precedence of ranges: overrides, those that the model has itself, known ones (with hard_ranges),
// measured ones. A layer without a range stays in float, with a warning. Returns 0, or a negative
// code after a message.
int quantize_model(const Calibration& calibration, const QuantizeOptions& options, Model* model,
                   std::vector<LayerChoice>* layers);

// The weights that quantize_model would round to integers, by index of the layer.
std::map<int, WeightGrid> weight_grids(const Model& model, const QuantizeOptions& options);

// The scales of all int8 layers as ncnn's table.
ScaleTable table_of(const std::vector<LayerChoice>& layers);

}  // namespace quoll

#endif
