// Rounding of weights by its effect on a layer's outputs, not of each weight alone: among
// neighbouring grid values, those that keep the outputs on calibration data nearest.
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

// The weights of a layer as rows, one per output, each value rounded to an integer in [least,
// most]: the value times the scale of its stretch, plus the stretch's zero point.
struct WeightGrid {
    Mat weight;  // [rows * width] of f32
    int rows = 0, width = 0;
    int groups = 1;             // consecutive rows that read the same inputs
    int stretch = 0;            // values of a row that share a scale
    std::vector<float> scales;  // [rows][stretches of a row]
    std::vector<float> zeros;   // the same, or empty: all are 0
    int least = -127, most = 127;
    // Finds new scales and zero points for the weights. Empty: inputs cannot have factors.
    std::function<void(WeightGrid*)> fit;

    // The index of a place's scale.
    size_t stretch_of(int row, int i) const {
        return (size_t)row * ((width + stretch - 1) / stretch) + i / stretch;
    }
    float scale_of(int row, int i) const { return scales[stretch_of(row, i)]; }
    float zero_of(int row, int i) const { return zeros.empty() ? 0.f : zeros[stretch_of(row, i)]; }
    // The integer nearest to a value at this place, and the value that an integer stands for.
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
    // [width]: the factors by which inputs are multiplied, and by which weights were divided before
    // they were rounded; empty: 1.
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
