// Rounding of weights by what a layer's outputs make of it, not by each weight alone: among
// neighbouring grid values those that keep the outputs on calibration data nearest.
#ifndef QUOLL_TOOLS_QUANTIZE_RECONSTRUCT_H
#define QUOLL_TOOLS_QUANTIZE_RECONSTRUCT_H

#include <math.h>

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "quantize/calibrate.h"

namespace quoll {

// Weights of a layer as rows, one an output, each value rounded to an integer in [least, most]: the
// value times the scale of its stretch, plus the zero point of that.
struct WeightGrid {
    Mat weight;  // [rows * width] of f32
    int rows = 0, width = 0;
    int groups = 1;             // consecutive rows that read the same inputs
    int stretch = 0;            // values of a row that share a scale
    std::vector<float> scales;  // [rows][stretches of a row]
    std::vector<float> zeros;   // the same, or empty: all are 0
    int least = -127, most = 127;
    // Finds scales and zero points for the weights anew. Empty: inputs cannot have factors.
    std::function<void(WeightGrid*)> fit;

    // Where a place's scale is.
    size_t stretch_of(int row, int i) const {
        return (size_t)row * ((width + stretch - 1) / stretch) + i / stretch;
    }
    float scale_of(int row, int i) const { return scales[stretch_of(row, i)]; }
    float zero_of(int row, int i) const { return zeros.empty() ? 0.f : zeros[stretch_of(row, i)]; }
    // The integer next to a value, and what an integer stands for, at this place.
    float nearest(int row, int i, float value) const {
        return clamp(roundf(value * scale_of(row, i)) + zero_of(row, i));
    }
    float value(int row, int i, float integer) const {
        return (integer - zero_of(row, i)) / scale_of(row, i);
    }
    float clamp(float integer) const {
        return std::max((float)least, std::min((float)most, integer));
    }
};

// What reconstruction found for a layer.
struct RoundedLayer {
    std::vector<signed char> values;  // [rows][width]
    // [width] that inputs are multiplied by, and weights were divided by before they were rounded;
    // empty: 1.
    std::vector<float> inputs;
};
// By name of the layer.
typedef std::map<std::string, RoundedLayer> RoundedWeights;

// For the layers (by index of the model) with their grids: second moments of their inputs on the
// samples, then coordinate descent on the squared error of the outputs from plain rounding on.
// Where inputs can have factors, weights that meet large ones are first made larger and so rounded
// finer, by that power of the inputs' size for which rounding costs least. Layers whose rows have
// more than 4,608 values are left out. 0, or a negative code after a message.
int reconstruct_weights(const Model& model, const std::map<int, WeightGrid>& grids,
                        const SampleSource& samples, int threads, const ProgressSink& progress,
                        RoundedWeights* rounded);

}  // namespace quoll

#endif
