// LSTM, GRU and RNN with int8 weights on the int8 kernels, against the reference.
#include <random>

#include "layer_test.h"

namespace quoll {

namespace {

struct Recurrence {
    const char* type;
    int gates, bias_rows;
    bool has_cell;
};

Mat random_floats(int count, float low, float high, std::mt19937* random) {
    Mat m(count);
    for (int i = 0; i < count; i++) m[i] = low + (high - low) * (float)((*random)() % 10000) / 1e4f;
    return m;
}

Mat random_codes(int count, std::mt19937* random) {
    Mat m(Shape(count, DType::s8), 1);
    for (int i = 0; i < count; i++)
        ((signed char*)m.data)[i] = (signed char)((*random)() % 255 - 127);
    return m;
}

// Rounding a state to int8 may fall to the other side where the activations' last bits differ: one
// value by a step then, and few of them.
void expect_near(const Mat& got, const Mat& expected) {
    ASSERT_EQ(expected.w, got.w);
    ASSERT_EQ(expected.h, got.h);
    double sum = 0, magnitude = 0;
    for (int y = 0; y < got.h; y++) {
        for (int x = 0; x < got.w; x++) {
            const double error = fabs(got.row(y)[x] - expected.row(y)[x]);
            EXPECT_LT(error, 0.01) << "row " << y << ", value " << x;
            sum += error, magnitude += fabs(expected.row(y)[x]);
        }
    }
    EXPECT_LT(sum, 1e-4 * magnitude);
}

void check(const Recurrence& r, int steps, int size, int hidden, int outputs, int direction) {
    std::mt19937 random(steps + size);
    const int directions = direction == 2 ? 2 : 1, rows = directions * r.gates * hidden;
    std::vector<Mat> weights = {random_codes(rows * size, &random),
                                random_floats(directions * r.bias_rows * hidden, -1, 1, &random),
                                random_codes(rows * outputs, &random)};
    if (outputs != hidden)
        weights.push_back(random_floats(directions * outputs * hidden, -0.3f, 0.3f, &random));
    weights.push_back(random_floats(rows, 300, 900, &random));
    weights.push_back(random_floats(rows, 300, 900, &random));
    std::string params = "0=" + std::to_string(outputs) + " 1=" + std::to_string(rows * size) +
                         " 2=" + std::to_string(direction) + " 8=1";
    if (outputs != hidden) params += " 3=" + std::to_string(hidden);
    std::vector<Mat> inputs = {
        random_floats(steps * size, -2, 3, &random).reshape(size, steps),
        random_floats(directions * outputs, -1, 1, &random).reshape(outputs, directions)};
    if (r.has_cell)
        inputs.push_back(
            random_floats(directions * hidden, -1, 1, &random).reshape(hidden, directions));
    memset((void*)inputs[0].row(steps / 2), 0,
           size * sizeof(float));  // a row without a largest value
    const int blobs = (int)inputs.size();
    std::vector<Mat> results[2];
    for (bool reference : {true, false}) {
        const LayerPtr layer = make_layer(r.type, params, weights, blobs, blobs, reference);
        ASSERT_NE(nullptr, layer);
        results[reference] = run_layer(*layer, inputs);
        ASSERT_EQ((size_t)blobs, results[reference].size());
    }
    for (int i = 0; i < blobs; i++) expect_near(results[0][i], results[1][i]);
}

const Recurrence kOperators[] = {{"LSTM", 4, 4, true}, {"GRU", 3, 4, false}, {"RNN", 1, 1, false}};

}  // namespace

TEST(RecurrentInt8, fast_as_the_reference) {
    for (const Recurrence& r : kOperators) {
        SCOPED_TRACE(r.type);
        check(r, 8, 16, 7, 7, 0);
        check(r, 5, 3, 33, 33, 2);
        check(r, 1, 40, 16, 16, 1);
        check(r, 9, 64, 32, 32, 0);
    }
}

TEST(RecurrentInt8, projections_stay_in_float) { check(kOperators[0], 6, 12, 20, 9, 2); }

}  // namespace quoll
