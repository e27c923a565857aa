// One case table an operator, many checks over it. In tests/layer/<op>.cpp:
//
//   const std::vector<LayerCase> kCases = {
//       LayerCase({Shape(9, 7, 16)}, "0=8 1=3 6=1152").terms(144),
//   };
//   QUOLL_LAYER_CASES(Convolution, kCases)
//
// gives the tests Convolution.matches_reference, .storage, .vulkan, .batch, .allocation_failure,
// .round_trip, .in_a_net, .empty_inputs, .saving, .odd_inputs and .odd_params. Beside them a file
// has TESTs with values computed by hand, since these compare our code with itself.
#ifndef QUOLL_TESTS_LAYER_LAYER_TEST_H
#define QUOLL_TESTS_LAYER_LAYER_TEST_H

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "quoll/layer.h"

namespace quoll {

struct ValueRange {
    float low, high;
};

// One operator with parameters on inputs of given shapes (and dtypes); values are random. No member
// is inline: all files of this folder would compile them.
struct LayerCase {
    LayerCase(std::vector<Shape> input_shapes, std::string params_text);
    LayerCase(const LayerCase& other);
    LayerCase(LayerCase&& other) noexcept;
    LayerCase& operator=(const LayerCase& other);
    ~LayerCase();

    // Values of the inputs (default -1 to 1), of all or one; integer inputs get whole numbers.
    LayerCase& range(float low, float high);
    LayerCase& range(size_t input, float low, float high);
    // Values of a weight by its schema name (default -1 to 1; *_int8_scales 100 to 127).
    LayerCase& weights(const char* name, float low, float high);
    // Tagged weights come as int8.
    LayerCase& int8_weights();
    LayerCase& outputs(int count);
    // Values that are added up (or multiplied) for one output: the length of the longest sum.
    LayerCase& terms(double count);
    // How far the algorithm of the fast implementation lets rounding errors grow beyond a plain
    // sum's, such as Winograd's transforms; state where the number comes from.
    LayerCase& error_growth(double factor);
    // The largest term, when it is not max|input| * max|weight|.
    LayerCase& term_magnitude(double magnitude);
    // The batch counts as an axis of the operator: not a result for each item.
    LayerCase& items_not_alone();
    // Called after the inputs got their random values, to set particular ones.
    LayerCase& fill(std::function<void(std::vector<Mat>&)> f);

    std::vector<Shape> inputs;
    std::string params;
    ValueRange input_range = {-1.f, 1.f};
    std::vector<ValueRange> input_ranges;
    std::vector<std::pair<std::string, ValueRange>> weight_ranges;
    bool weights_are_int8 = false;
    int output_count = 1;
    double term_count = 1;
    double growth = 1;
    double largest_term = 0;
    bool items_depend = false;
    std::function<void(std::vector<Mat>&)> filler;
};

// What an error may be. Rounding errors of n additions are independent and each about u times the
// partial sum, which for random signs grows with sqrt(k): together u * n * magnitude / sqrt(2) (the
// probabilistic model of Higham and Mary, SIAM J. Sci. Comput. 41(5), 2019); for terms of one sign
// the partial sums grow with k and the relative error with sqrt(n) * u. u: FLT_EPSILON, twice the
// unit roundoff, which leaves the usual room of two standard deviations and more. exp, pow and the
// like may be wrong by kFunctionUlps on both sides. A storage type rounds the output once, and
// each of the n weights once where a layer keeps those in it. Layers that add up half floats have
// their u in place of FLT_EPSILON.
struct Tolerance {
    static constexpr double kFunctionUlps = 4;
    double terms = 1, magnitude = 1, growth = 1;
    double output_epsilon = 0, weight_epsilon = 0;  // of f16 or bf16 storage, 0 for f32
    double arithmetic_epsilon = 0;                  // of half floats that are added up
    double absolute = 0;                            // in addition to all else
    double most = 1e300;  // what is larger becomes infinite in the storage type
    int ties = 0;         // 1: s8 are rounded from floats, and a tie may fall the other way

    double of(double want) const;
};

// Every value of `got` within the tolerance of `want`, which has the same shape and dtype; NaN only
// where NaN is wanted, infinities the same. s8 may differ by 1 (a tie that falls the other way),
// other integers not at all. Any elempack. more: how much each value may differ beyond that.
testing::AssertionResult nearly_equal(const Mat& got, const Mat& want, const Tolerance& tolerance,
                                      const Mat& more = Mat());

struct DestroyLayer {
    void operator()(Layer* layer) const;
};
using LayerPtr = std::unique_ptr<Layer, DestroyLayer>;

// A layer ready to run, with `inputs` and `outputs` blobs; null when it refuses the params or
// weights. Weights are in file order, as ModelBinFromMatArray takes them.
LayerPtr make_layer(const char* type, const std::string& params,
                    const std::vector<Mat>& weights = {}, int inputs = 1, int outputs = 1,
                    bool reference = true, const Option& opt = Option());
// Runs it on planar inputs, not in place; the outputs are empty when it fails.
std::vector<Mat> run_layer(const Layer& layer, const std::vector<Mat>& inputs,
                           const Option& opt = Option());
// For expected values by hand: a Mat of that shape with these values in order c, d, h, w.
Mat mat_of(const Shape& shape, const std::vector<float>& values);
// make_layer + run_layer of the reference and of the fast implementation; both give `want` within
// 1e-5 of its largest value. For operators with one output.
void expect_values(const char* type, const std::string& params, const std::vector<Mat>& weights,
                   const std::vector<Mat>& inputs, const Mat& want);

// Registers the tests; true.
bool add_layer_tests(const char* type, const std::vector<LayerCase>& cases, const char* file,
                     int line);

}  // namespace quoll

// In namespace quoll or inside it.
#define QUOLL_LAYER_CASES(type, cases)     \
    static const bool type##_cases_added = \
        ::quoll::add_layer_tests(#type, cases, __FILE__, __LINE__);

#endif
