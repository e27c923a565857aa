#include "layer/vulkan/conv_weights.h"

#include "layer/vulkan/recorder.h"

namespace quoll {

namespace {

// Of a group.
int outputs_of(const Convolution& layer) { return layer.num_output / layer.group; }
int inputs_of(const Convolution& layer) {
    return layer.weight_data_size / layer.maxk() / layer.num_output;
}

}  // namespace

std::vector<float> tiled_weights(const Convolution& layer, const std::vector<float>& from) {
    const int inputs = inputs_of(layer), taps = layer.maxk();
    const size_t rows = (size_t)taps * round4(inputs), width = round4(outputs_of(layer));
    std::vector<float> to(rows * width * layer.group, 0.f);
    const float* w = from.data();
    for (int g = 0; g < layer.group; g++)
        for (int o = 0; o < outputs_of(layer); o++)
            for (int c = 0; c < inputs; c++)
                for (int tap = 0; tap < taps; tap++)
                    to[(g * rows + tap * round4(inputs) + c) * width + o] = *w++;
    return to;
}

std::vector<float> matrix_weights(const Convolution& layer, const std::vector<float>& from) {
    const int inputs = inputs_of(layer), taps = layer.maxk();
    const size_t depth = ((size_t)taps * round4(inputs) + 63) / 64 * 64;
    std::vector<float> to(depth * layer.num_output, 0.f);
    const float* w = from.data();
    for (int o = 0; o < layer.num_output; o++)
        for (int c = 0; c < inputs; c++)
            for (int tap = 0; tap < taps; tap++) to[o * depth + tap * round4(inputs) + c] = *w++;
    return to;
}

std::vector<float> planar_weights(const Convolution& layer, const std::vector<float>& from,
                                  bool matrix) {
    const int width = 4 * planar_row_groups(layer), columns = (int)round4(outputs_of(layer));
    const int rows = inputs_of(layer) * layer.kernel_h;
    const size_t depth = matrix ? ((size_t)rows * width + 63) / 64 * 64 : (size_t)rows * width;
    std::vector<float> to(depth * (matrix ? outputs_of(layer) : columns), 0.f);
    const float* w = from.data();
    for (int o = 0; o < outputs_of(layer); o++)
        for (int row = 0; row < rows; row++)
            for (int i = 0; i < layer.kernel_w; i++) {
                const size_t k = (size_t)row * width + i;
                to[matrix ? o * depth + k : k * columns + o] = *w++;
            }
    return to;
}

std::vector<float> depthwise_weights(const Convolution& layer, const std::vector<float>& from) {
    const int taps = layer.maxk(), width = (int)round4(layer.num_output);
    std::vector<float> to((size_t)taps * width, 0.f);
    for (int c = 0; c < layer.num_output; c++)
        for (int tap = 0; tap < taps; tap++) to[tap * width + c] = from[c * taps + tap];
    return to;
}

std::vector<uint32_t> words_of_bytes(const std::vector<float>& values) {
    std::vector<uint32_t> words((values.size() + 3) / 4, 0u);
    for (size_t i = 0; i < values.size(); i++)
        words[i / 4] |= ((uint32_t)(int)values[i] & 255) << i % 4 * 8;
    return words;
}

}  // namespace quoll
