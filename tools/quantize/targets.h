// The layers of a model that can be quantised, and which blobs' ranges they need.
#ifndef QUOLL_TOOLS_QUANTIZE_TARGETS_H
#define QUOLL_TOOLS_QUANTIZE_TARGETS_H

#include <map>
#include <string>
#include <vector>

#include "graph/analysis.h"
#include "quantize/histogram.h"

namespace quoll {

// A layer whose input and weights the engine can round to int8: convolutions with constant
// weights, of one and two axes depthwise ones too, InnerProduct.
struct Int8Target {
    int layer;         // in the Model
    std::string name;  // of the layer
    std::string blob;  // what it reads
    // The blob whose range that one takes: itself, or, through layers that only move values or
    // choose among them, the one that they come from.
    std::string source;
    bool already;  // the model has it in int8 (as those of ONNX with QuantizeLinear)
    bool in_ncnn;  // ncnn has an int8 form of it
};
std::vector<Int8Target> int8_targets(const Model& model);

// What Swish and GELU read, and x * Sigmoid(x): ncnn's layers have no such activations. Net takes
// them into the layers before when it loads.
std::vector<std::string> blobs_before_swish(const Model& model);

// Follows layers with one input that move or choose values upwards. through_concat: also Concat, of
// which the first input stands for all.
std::string range_source(const Model& model, const std::string& blob);
// Blobs that share a range when Concat joins them: representative by blob, of sources.
std::map<std::string, std::string> joined_sources(const Model& model,
                                                  const std::vector<Int8Target>& targets);

// The range that the values of a blob cannot leave, whatever the data: of a constant its extremes,
// behind ReLU6 (Clip), Sigmoid, TanH, Softmax, HardSigmoid. Not seen() if there is none.
ValueRange hard_range(const Model& model, const std::string& blob);

// What a quantised layer of the model rounds its input to 8 bits with, without a zero point; 0: it
// does not.
float own_input_scale(const ModelLayer& layer);

// Weights as f32, whatever their storage; empty after a message.
Mat float_weight(const ModelLayer& layer, const char* name);

}  // namespace quoll

#endif
