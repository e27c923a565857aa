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
    // The blob whose range the layer's input takes: the input itself, or the blob that it comes
    // from through layers that only move values or choose among them.
    std::string source;
    bool already;  // the model has it in int8 (as those of ONNX with QuantizeLinear)
    bool in_ncnn;  // ncnn has an int8 form of it
};
std::vector<Int8Target> int8_targets(const Model& model);

// The blobs that Swish, GELU and x * Sigmoid(x) read: ncnn's convolutions have no such activations.
// Net fuses them into the layers before at load.
std::vector<std::string> blobs_before_swish(const Model& model);

// Follows layers with one input that move or choose values upwards. through_concat: also Concat, of
// which the first input stands for all.
std::string range_source(const Model& model, const std::string& blob);
// Whether all values of `blob` are among those of `other`, by such layers and Splits.
bool takes_values_of(const Model& model, const std::string& blob, const std::string& other);
// The blobs that share a range because Concat joins them: a representative for each source.
std::map<std::string, std::string> joined_sources(const Model& model,
                                                  const std::vector<Int8Target>& targets);

// The range that the values of a blob cannot leave, whatever the data: the extremes of a constant;
// that of ReLU6 (Clip), Sigmoid, TanH, Softmax, HardSigmoid. Not seen() if there is none.
ValueRange hard_range(const Model& model, const std::string& blob);

// The scale by which a quantised layer of the model rounds its input to 8 bits, without a zero
// point; 0: it does not.
float own_input_scale(const ModelLayer& layer);

// Weights as f32, whatever their storage; empty after a message.
Mat float_weight(const ModelLayer& layer, const char* name);

}  // namespace quoll

#endif
