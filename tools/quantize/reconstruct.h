// Rounding of weights by what a layer's outputs make of it, not by each weight alone: among
// neighbouring grid values those that keep the outputs on calibration data nearest.
#ifndef QUOLL_TOOLS_QUANTIZE_RECONSTRUCT_H
#define QUOLL_TOOLS_QUANTIZE_RECONSTRUCT_H

#include <map>
#include <string>
#include <vector>

#include "quantize/calibrate.h"

namespace quoll {

// Weights of a layer as rows, one an output, each value rounded to an integer in [-most - 1, most]
// over the scale of its stretch.
struct WeightGrid {
    Mat weight;  // [rows * width] of f32
    int rows = 0, width = 0;
    int groups = 1;             // consecutive rows that read the same inputs
    int stretch = 0;            // values of a row that share a scale
    std::vector<float> scales;  // [rows][stretches of a row]; integers are weights times these
    int least = -127, most = 127;
    float scale_of(int row, int i) const {
        return scales[(size_t)row * ((width + stretch - 1) / stretch) + i / stretch];
    }
};

// Integers by name of the layer, [rows][width].
typedef std::map<std::string, std::vector<signed char>> RoundedWeights;

// For the layers (by index of the model) with their grids: second moments of their inputs on the
// samples, then coordinate descent on the squared error of the outputs from plain rounding on.
// Layers whose rows have more than 4,608 values are left out. 0, or a negative code after a
// message.
int reconstruct_weights(const Model& model, const std::map<int, WeightGrid>& grids,
                        const SampleSource& samples, int threads, const ProgressSink& progress,
                        RoundedWeights* rounded);

}  // namespace quoll

#endif
