#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(16)}, "0=1 3=3 4=2"),
    LayerCase({Shape(7)}, "0=2 1=2.0 2=3.0"),
    LayerCase({Shape(9, 16)}, "0=1 2=2.0"),
    LayerCase({Shape(9, 16)}, "0=2 3=9 4=14"),
    LayerCase({Shape(9, 8)}, "0=3 2=0.7"),
    LayerCase({Shape(9, 7, 16)}, "0=1 1=2.0 2=2.0"),
    LayerCase({Shape(9, 7, 12)}, "0=1 1=0.8 2=1.3"),
    LayerCase({Shape(9, 7, 5)}, "0=1 3=11 4=4"),
    LayerCase({Shape(9, 7, 16)}, "0=2 1=2.0 2=2.0").terms(4),
    LayerCase({Shape(9, 7, 8)}, "0=2 1=1.7 2=0.6").terms(4),
    LayerCase({Shape(9, 7, 3)}, "0=2 3=12 4=5 6=1").terms(4),
    LayerCase({Shape(9, 7, 16)}, "0=2 3=1 4=1 6=1").terms(4),
    LayerCase({Shape(9, 7, 16)}, "0=3 1=2.0 2=2.0").terms(16).term_magnitude(2),
    LayerCase({Shape(9, 7, 4)}, "0=3 1=0.7 2=1.6").terms(16).term_magnitude(2),
    LayerCase({Shape(9, 7, 16)}, "0=3 3=12 4=20 6=1").terms(16).term_magnitude(2),
    LayerCase({Shape(2, 1, 8)}, "0=3 3=4 4=4").terms(16).term_magnitude(2),
    LayerCase({Shape(1, 1, 8)}, "0=2 3=4 4=4").terms(4),
    LayerCase({Shape(9, 7, 16), Shape(12, 5)}, "0=2 5=1").terms(4),
    LayerCase({Shape(9, 7, 16), Shape(12, 5, 2)}, "0=1 9=\"1w,*(0h,2)\""),
    LayerCase({Shape(9, 7, 16)}, "0=2 9=\"*(0w,2),*(0h,2)\"").terms(4),
    LayerCase({Shape(9, 7, 16)}, "0=2 5=1 9=\"*(0w,2),*(0h,2)\"").terms(4),
    LayerCase({Shape(9, 7, 16), Shape(12, 5)}, "0=1 5=1 9=\"1h,1w\""),
    LayerCase({Shape(5, 4, 3, 16)}, "0=2 1=2.0 2=2.0").terms(4),
    LayerCase({Shape(9, 7, 16)}, "0=2"),
    LayerCase({Shape(9, 7, 16)}, "0=3 1=1.05 2=1.05").terms(16).term_magnitude(2),
    LayerCase({Shape(9, 7, 16, DType::s8)}, "0=1 1=2.0 2=3.0").range(-127, 127),
    LayerCase({Shape(9, 7, 5, DType::s8)}, "0=1 3=4 4=11").range(-127, 127),
    LayerCase({Shape(9, 7, DType::s8)}, "0=1 2=1.5").range(-127, 127),
};
QUOLL_LAYER_CASES(Interp, kCases)

TEST(Interp, by_hand) {
    const Mat x = mat_of(Shape(2, 1, 1), {1, 3});
    expect_values("Interp", "0=1 1=2.0 2=2.0", {}, {x},
                  mat_of(Shape(4, 2, 1), {1, 1, 3, 3, 1, 1, 3, 3}));
    expect_values("Interp", "0=2 2=2.0", {}, {x}, mat_of(Shape(4, 1, 1), {1, 1.5f, 2.5f, 3}));
    expect_values("Interp", "0=2 3=1 4=5 6=1", {}, {x},
                  mat_of(Shape(5, 1, 1), {1, 1.5f, 2, 2.5f, 3}));
    // At distance 1/4 the cubic factors are -27/256, 225/256, 67/256, -9/256 (a = -3/4).
    expect_values("Interp", "0=3 2=2.0", {}, {x},
                  mat_of(Shape(4, 1, 1), {0.7890625f, 1.453125f, 2.546875f, 3.2109375f}));
    // Beyond the scale: each step is 1 / 0.7 wide, not 10 / 7.
    expect_values("Interp", "0=1 2=0.6", {}, {mat_of(Shape(4, 1), {0, 1, 2, 3})},
                  mat_of(Shape(2, 1), {0, 1}));
    // The expression wins over the size of another input, which need not be there.
    expect_values("Interp", "0=1 5=1 9=\"*(0w,2),*(0h,2)\"", {}, {x},
                  mat_of(Shape(4, 2, 1), {1, 1, 3, 3, 1, 1, 3, 3}));
    expect_values("Interp", "0=1 3=2 4=1", {}, {mat_of(Shape(2), {5, 6})},
                  mat_of(Shape(1, 2, 2), {5, 5, 6, 6}));
}

TEST(Interp, refuses_what_does_not_fit) {
    for (const char* params :
         {"0=0 3=4 4=4", "0=4", "0=1 1=0.0 2=1.0", "0=1 1=1e30 2=1e30", "0=1 1=nan 2=1.0",
          "0=1 5=1", "0=1 9=\"1w,2\"", "0=1 9=\"1,2,3\"", "0=1 9=\"-1,2\""}) {
        const LayerPtr layer = make_layer("Interp", params);
        EXPECT_TRUE(!layer || run_layer(*layer, {Mat(2, 2, 2)}).empty()) << params;
    }
}

}  // namespace quoll
