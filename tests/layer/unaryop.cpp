#include "layer_test.h"

namespace quoll {

// The operators in order, each on values where it is defined.
static std::vector<LayerCase> cases() {
    struct Range {
        float low, high;
    };
    const Range all = {-3, 3}, positive = {0.05f, 3}, unit = {-0.95f, 0.95f};
    const Range ranges[28] = {
        all, all,           all,  all,  all, positive,   positive, {-5, 5},   positive, all,
        all, {-1.3f, 1.3f}, unit, unit, all, positive,   all,      positive,  all,      all,
        all, all,           all,  all,  all, {1.01f, 4}, unit,     {-0.9f, 3}};
    const Shape shapes[] = {Shape(19), Shape(5, 8), Shape(3, 5, 16), Shape(3, 2, 4, 12)};
    std::vector<LayerCase> list;
    for (int op = 0; op < 28; op++)
        list.push_back(LayerCase({shapes[op % 4]}, "0=" + std::to_string(op))
                           .range(ranges[op].low, ranges[op].high));
    return list;
}
static const std::vector<LayerCase> kCases = cases();
QUOLL_LAYER_CASES(UnaryOp, kCases)

static void expect_unary(int op, float x, float y) {
    SCOPED_TRACE(op);
    expect_values("UnaryOp", "0=" + std::to_string(op), {}, {mat_of(Shape(1), {x})},
                  mat_of(Shape(1), {y}));
}

TEST(UnaryOp, by_hand) {
    const struct {
        float x, y;
    } values[28] = {{-1.5f, 1.5f},
                    {-1.5f, 1.5f},
                    {-1.5f, -2},
                    {-1.5f, -1},
                    {-3, 9},
                    {9, 3},
                    {4, 0.5f},
                    {1, 2.718281828f},
                    {10, 2.302585093f},
                    {1, 0.841470985f},
                    {1, 0.540302306f},
                    {1, 1.557407725f},
                    {0.5f, 0.523598776f},
                    {0.5f, 1.047197551f},
                    {1, 0.785398163f},
                    {4, 0.25f},
                    {1, 0.761594156f},
                    {1000, 3},
                    {2.5f, 2},
                    {-2.7f, -2},
                    {-2, -1},
                    {1, 1.718281828f},
                    {1, 1.175201194f},
                    {1, 0.881373587f},
                    {1, 1.543080635f},
                    {2, 1.316957897f},
                    {0.5f, 0.549306144f},
                    {1, 0.693147181f}};
    for (int op = 0; op < 28; op++) expect_unary(op, values[op].x, values[op].y);
    expect_unary(18, 3.5f, 4);
    expect_unary(18, -0.5f, 0);
    expect_unary(20, 0, 0);
    EXPECT_EQ(nullptr, make_layer("UnaryOp", "0=28"));
}

TEST(UnaryOp, takes_f32_only) {
    const LayerPtr layer = make_layer("UnaryOp", "0=1");
    EXPECT_TRUE(run_layer(*layer, {Mat(Shape(5, DType::s8))}).empty());
}

}  // namespace quoll
