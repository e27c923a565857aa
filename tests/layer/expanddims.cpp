#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(16)}, "-23303=1,0"),
    LayerCase({Shape(16)}, "-23303=2,0,-1"),
    LayerCase({Shape(5, 16)}, "-23303=1,1"),
    LayerCase({Shape(5, 16)}, "-23303=2,-1,-2"),
    LayerCase({Shape(5, 3, 16)}, "-23303=1,1"),
    LayerCase({Shape(5, 3, 16)}, "-23303=1,-1"),
    LayerCase({Shape(5, 3, 16)}, "-23303=1,0"),
    LayerCase({Shape(5, 3, 16)}, "-23303=2,0,1"),
    LayerCase({Shape(5, 3, 16, DType::s8)}, "-23303=1,2").range(-127, 127),
};
QUOLL_LAYER_CASES(ExpandDims, kCases)

TEST(ExpandDims, by_hand) {
    const Mat x = mat_of(Shape(2, 1), {1, 2});
    expect_values("ExpandDims", "-23303=1,0", {}, {x}, mat_of(Shape(2, 1, 1), {1, 2}));
    expect_values("ExpandDims", "-23303=1,-1", {}, {x}, mat_of(Shape(1, 2, 1), {1, 2}));
    expect_values("ExpandDims", "-23303=2,1,3", {}, {x}, mat_of(Shape(1, 2, 1, 1), {1, 2}));
    // More than 4 axes, or an axis beyond the output: nothing happens.
    expect_values("ExpandDims", "-23303=3,0,1,2", {}, {x}, x);
    expect_values("ExpandDims", "-23303=1,3", {}, {x}, x);
}

}  // namespace quoll
