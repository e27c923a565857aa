// Turns layers of a model into int8 layers.
#ifndef QUOLL_TOOLS_QUANTIZE_INT8_MODEL_H
#define QUOLL_TOOLS_QUANTIZE_INT8_MODEL_H

#include <map>
#include <string>
#include <vector>

#include "quantize/histogram.h"
#include "quantize/table_file.h"
#include "quantize/targets.h"

namespace quoll {

struct WeightOptions {
    bool mse = false;  // scales of least squared error, instead of those of the largest weights
};

// The scales by which weights are multiplied before they are rounded to -127..127: one per output
// channel of Convolution and InnerProduct, one per group of ConvolutionDepthWise (by_channel: per
// output channel). 1 if all weights are zero; empty if a weight is not finite, or after a message.
std::vector<float> weight_scales(const ModelLayer& layer, const WeightOptions& options,
                                 bool by_channel = false);

// Makes a layer's weights int8 by `scales`: half of an int8 layer; the other half is one of the
// round_input functions. Returns 0, or a negative code after a message: then the layer is as
// before.
int round_weights(const std::vector<float>& scales, bool by_channel, ModelLayer* layer);

// Makes the layer round its input with `scale`.
int round_input(float scale, ModelLayer* layer);

// The same to `bits` bits, 9 to 16, where `most` is the largest value: for Convolution without
// groups and InnerProduct. Steps are those of the bits; the room is that of 16.
int round_input16(float most, int bits, ModelLayer* layer, float* scale);

// The same with a zero point: the layer then reads int8 values, which an AffineQuantize at the end
// of the model makes of its input (one for all layers that read the same blob in the same form).
// range: that of the input, with 0 in it. Weights have scales by channel.
int round_input_affine(int layer, const ValueRange& range, Model* model);

// round_weights and round_input. 0, or a negative code after a message: then the layer is as
// before.
int make_int8(ModelLayer* layer, const std::vector<float>& scales, float input_scale);
// round_weights and round_input_affine.
int make_affine(int layer, const std::vector<float>& scales, const ValueRange& range, Model* model);

// Adds to the bias what rounding the weights takes from the mean output, given the mean of each
// channel of the input (of an InnerProduct: of each value of a row). before: the layer with f32
// weights. Does nothing if the means do not fit.
void correct_bias(const ModelLayer& before, const std::vector<double>& means, ModelLayer* layer);

// The f32 values that the weights of an int8 layer stand for.
Mat dequantized_weight(const ModelLayer& layer);

// Does ncnn2int8's work: quantises the layers for which a table has scales. Tables of other models
// are an error.
int quantize_by_table(const ScaleTable& table, Model* model, std::vector<std::string>* done);

}  // namespace quoll

#endif
