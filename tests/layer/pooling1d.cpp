#include "layer_test.h"

namespace quoll {

static std::vector<LayerCase> cases() {
    std::vector<LayerCase> all;
    for (const char* type : {"0=0 ", "0=1 ", "0=1 6=1 "}) {
        const auto add = [&](Shape in, const std::string& params, double terms) {
            all.push_back(LayerCase({in}, type + params).terms(terms));
        };
        for (const char* mode : {"5=0", "5=1", "5=2", "5=3"}) {
            add(Shape(9, 3), std::string("1=2 2=1 ") + mode, 2);
            add(Shape(29, 16), std::string("1=3 2=2 3=1 ") + mode, 3);
            add(Shape(13, 12), std::string("1=5 2=3 14=2 ") + mode, 5);
        }
        add(Shape(9, 24), "4=1", 9);
        add(Shape(9, 13), "4=1", 9);
        add(Shape(9, 16), "7=1 8=4", 4);
        add(Shape(3, 8), "7=1 8=5", 2);
        add(Shape(9), "1=2 2=2", 2);
    }
    return all;
}
static const std::vector<LayerCase> kCases = cases();
QUOLL_LAYER_CASES(Pooling1D, kCases)

TEST(Pooling1D, by_hand) {
    const Mat x = mat_of(Shape(5, 2), {1, 2, 3, 4, 5, 50, 40, 30, 20, 10});
    // Full pads a tail, valid leaves it out.
    expect_values("Pooling1D", "0=0 1=2 2=2", {}, {x}, mat_of(Shape(3, 2), {2, 4, 5, 50, 30, 10}));
    expect_values("Pooling1D", "0=0 1=2 2=2 5=1", {}, {x}, mat_of(Shape(2, 2), {2, 4, 50, 30}));
    expect_values("Pooling1D", "0=1 1=2 2=2", {}, {x},
                  mat_of(Shape(3, 2), {1.5f, 3.5f, 5, 45, 25, 10}));
    expect_values("Pooling1D", "0=1 1=2 2=2 6=1 5=2", {}, {x},
                  mat_of(Shape(3, 2), {1.5f, 3.5f, 2.5f, 45, 25, 5}));
    expect_values("Pooling1D", "0=1 1=2 2=2 6=1 5=3", {}, {x},
                  mat_of(Shape(3, 2), {0.5f, 2.5f, 4.5f, 25, 35, 15}));
    expect_values("Pooling1D", "0=1 4=1", {}, {x}, mat_of(Shape(2), {3, 30}));
    // Columns 0 to 2 and 2 to 4.
    expect_values("Pooling1D", "0=1 7=1 8=2", {}, {x}, mat_of(Shape(2, 2), {2, 4, 40, 20}));
}

TEST(Pooling1D, refuses_what_does_not_fit) {
    for (const char* params : {"", "0=2 1=2", "1=2 5=4", "1=2 2=0", "7=1", "7=1 8=-1", "1=2 3=-1"})
        EXPECT_EQ(nullptr, make_layer("Pooling1D", params)) << params;
    const LayerPtr layer = make_layer("Pooling1D", "1=5 5=1");
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(4, 6)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(6, 6, 1)}).empty());
}

}  // namespace quoll
