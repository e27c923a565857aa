#include <math.h>

#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(11, 7, 12)}, "").terms(5),
    LayerCase({Shape(11, 7, 12)}, "0=1 1=1 2=0.6 3=0.4 4=2.4"),
    LayerCase({Shape(10, 8, 16)}, "1=3 2=0.1 3=0.75").terms(3),
    LayerCase({Shape(10, 8, 16)}, "0=1 1=3 2=0.5").terms(9),
    LayerCase({Shape(6, 7, 5)}, "0=1 1=4").terms(16),
    LayerCase({Shape(6, 7, 13)}, "0=0 1=4").terms(4),
    LayerCase({Shape(6, 7, 16)}, "0=0 1=2").terms(2),
    LayerCase({Shape(6, 7, 4)}, "0=0 1=12").terms(4),
    LayerCase({Shape(6, 7)}, "0=1").terms(25),
    LayerCase({Shape(17)}, "").terms(1),
    LayerCase({Shape(10, 8, 16)}, "1=3 2=-30 3=1").terms(3),
    LayerCase({Shape(10, 8, 16)}, "0=1 1=3 2=-0.5 3=2 4=20").terms(9),
};
QUOLL_LAYER_CASES(LRN, kCases)

TEST(LRN, by_hand) {
    const Mat x = mat_of(Shape(1, 1, 3), {1, 2, 3});
    // Across, size 3: sums of squares 5, 14, 13; beta 1: x / (1 + 3 / 3 * sum).
    expect_values("LRN", "0=0 1=3 2=3 3=1 4=1", {}, {x},
                  mat_of(Shape(1, 1, 3), {1 / 6.f, 2 / 15.f, 3 / 14.f}));
    // Size 2: one below, none above.
    expect_values("LRN", "0=0 1=2 2=2 3=1 4=0", {}, {x},
                  mat_of(Shape(1, 1, 3), {1, 2 / 5.f, 3 / 13.f}));
    // Within, size 3: 9 pixels; a 2 x 1 image has 1 + 4; x / (1 + 9 / 9 * 5).
    expect_values("LRN", "0=1 1=3 2=9 3=1 4=1", {}, {mat_of(Shape(2, 1, 1), {1, 2})},
                  mat_of(Shape(2, 1, 1), {1 / 6.f, 2 / 6.f}));
    // A factor below zero: 1 - 5, 1 - 14, 1 - 13; of a power that is not whole there is none.
    for (const char* region : {"0=0 1=3 2=-3", "0=1 1=1 2=-1"}) {
        const bool across = region[2] == '0';
        expect_values("LRN", std::string(region) + " 3=1", {}, {x},
                      across ? mat_of(Shape(1, 1, 3), {1 / -4.f, 2 / -13.f, 3 / -12.f})
                             : mat_of(Shape(1, 1, 3), {INFINITY, 2 / -3.f, 3 / -8.f}));
        expect_values("LRN", std::string(region) + " 3=0.75", {}, {x},
                      mat_of(Shape(1, 1, 3), {across ? NAN : INFINITY, NAN, NAN}));
    }
    // A bias below zero: -2 + 5, 14, 13.
    expect_values("LRN", "0=0 1=3 2=3 3=1 4=-2", {}, {x},
                  mat_of(Shape(1, 1, 3), {1 / 3.f, 2 / 12.f, 3 / 11.f}));
    // The power 0 of anything is 1.
    expect_values("LRN", "0=0 1=3 3=0", {}, {mat_of(Shape(1, 1, 3), {1, INFINITY, 3})},
                  mat_of(Shape(1, 1, 3), {1, INFINITY, 3}));
    // Within, size 2: one to the left, none to the right.
    expect_values("LRN", "0=1 1=2 2=4 3=0.5 4=0", {}, {mat_of(Shape(2, 1, 1), {3, 4})},
                  mat_of(Shape(2, 1, 1), {1, 0.8f}));
}

}  // namespace quoll
