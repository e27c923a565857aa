#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(1, 16)}, "0=1"),
    LayerCase({Shape(16, 1)}, "1=1"),
    LayerCase({Shape(5, 1, 16)}, "0=1 1=1 2=1"),
    LayerCase({Shape(1, 1, 16)}, "0=1 1=1 2=1"),
    LayerCase({Shape(5, 3, 1)}, "-23303=1,0"),
    LayerCase({Shape(1, 3, 16)}, "-23303=1,-1"),
    LayerCase({Shape(5, 1, 1, 16)}, "-23303=2,1,2"),
    LayerCase({Shape(5, 1, 2, 1)}, "0=1 1=1 11=1 2=1"),
    LayerCase({Shape(5, 3, 16)}, "-23303=2,1,3"),
    LayerCase({Shape(1, 3, 16, DType::s8)}, "0=1").range(-127, 127),
};
QUOLL_LAYER_CASES(Squeeze, kCases)

TEST(Squeeze, by_hand) {
    const Mat x = mat_of(Shape(1, 3, 1), {1, 2, 3});
    expect_values("Squeeze", "0=1", {}, {x}, mat_of(Shape(3, 1), {1, 2, 3}));
    expect_values("Squeeze", "-23303=1,0", {}, {x}, mat_of(Shape(1, 3), {1, 2, 3}));
    expect_values("Squeeze", "-23303=2,0,-1", {}, {x}, mat_of(Shape(3), {1, 2, 3}));
    expect_values("Squeeze", "1=1", {}, {x}, x);
    expect_values("Squeeze", "0=1 1=1 2=1", {}, {mat_of(Shape(1, 1, 1), {7})},
                  mat_of(Shape(1), {7}));
    EXPECT_EQ(nullptr, make_layer("Squeeze", "-23303=1,4"));
}

}  // namespace quoll
