#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(7)}, "-23300=1,0"),
    LayerCase({Shape(7, 8)}, "-23300=1,0"),
    LayerCase({Shape(7, 8)}, "-23300=1,-1"),
    LayerCase({Shape(7, 8)}, "-23300=2,0,1"),
    LayerCase({Shape(7, 9, 12)}, "-23300=2,0,2"),
    LayerCase({Shape(7, 9, 12)}, "-23300=1,1"),
    LayerCase({Shape(7, 9, 12)}, "-23300=3,0,1,2"),
    LayerCase({Shape(5, 6, 7, 24)}, "-23300=1,1"),
    LayerCase({Shape(5, 6, 3, 8)}, "-23300=3,-4,2,3"),
    LayerCase({Shape(5, 6)}, ""),
    LayerCase({Shape(5, 6, 3, DType::s32)}, "-23300=1,2").range(-99, 99),
};
QUOLL_LAYER_CASES(Flip, kCases)

TEST(Flip, by_hand) {
    const Mat x = mat_of(Shape(2, 1, 2), {1, 2, 3, 4});
    expect_values("Flip", "-23300=1,0", {}, {x}, mat_of(Shape(2, 1, 2), {3, 4, 1, 2}));
    expect_values("Flip", "-23300=1,-1", {}, {x}, mat_of(Shape(2, 1, 2), {2, 1, 4, 3}));
    expect_values("Flip", "-23300=2,0,2", {}, {x}, mat_of(Shape(2, 1, 2), {4, 3, 2, 1}));
}

TEST(Flip, refuses_an_axis_that_is_not_there) {
    EXPECT_EQ(nullptr, make_layer("Flip", "-23300=1,4"));
    const LayerPtr layer = make_layer("Flip", "-23300=1,2");
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(4, 4)}).empty());
}

}  // namespace quoll
