#include "layer_test.h"

namespace quoll {

LayerCase::LayerCase(std::vector<Shape> input_shapes, std::string params_text)
    : inputs(std::move(input_shapes)), params(std::move(params_text)) {}
LayerCase::LayerCase(const LayerCase& other) = default;
LayerCase::LayerCase(LayerCase&& other) noexcept = default;
LayerCase& LayerCase::operator=(const LayerCase& other) = default;
LayerCase::~LayerCase() = default;

LayerCase& LayerCase::range(float low, float high) {
    input_range = {low, high};
    return *this;
}

LayerCase& LayerCase::range(size_t input, float low, float high) {
    input_ranges.resize(std::max(input_ranges.size(), input + 1), input_range);
    input_ranges[input] = {low, high};
    return *this;
}

LayerCase& LayerCase::weights(const char* name, float low, float high) {
    weight_ranges.push_back({name, {low, high}});
    return *this;
}

LayerCase& LayerCase::int8_weights() {
    weights_are_int8 = true;
    return *this;
}

LayerCase& LayerCase::outputs(int count) {
    output_count = count;
    return *this;
}

LayerCase& LayerCase::terms(double count) {
    term_count = count;
    return *this;
}

LayerCase& LayerCase::error_growth(double factor) {
    growth = factor;
    return *this;
}

LayerCase& LayerCase::term_magnitude(double magnitude) {
    largest_term = magnitude;
    return *this;
}

LayerCase& LayerCase::items_not_alone() {
    items_depend = true;
    return *this;
}

LayerCase& LayerCase::fill(std::function<void(std::vector<Mat>&)> f) {
    filler = std::move(f);
    return *this;
}

}  // namespace quoll
