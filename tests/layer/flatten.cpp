#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(19)}, ""),
    LayerCase({Shape(9, 16)}, ""),
    LayerCase({Shape(4, 4, 16)}, ""),
    LayerCase({Shape(5, 3, 16)}, ""),
    LayerCase({Shape(1, 1, 24)}, ""),
    LayerCase({Shape(5, 3, 7)}, ""),
    LayerCase({Shape(3, 5, 2, 8)}, ""),
    LayerCase({Shape(5, 3, 8, DType::s8)}, "").range(-127, 127),
    LayerCase({Shape(3, 3, 4, DType::s32)}, "").range(-99, 99),
};
QUOLL_LAYER_CASES(Flatten, kCases)

TEST(Flatten, by_hand) {
    const Mat x = mat_of(Shape(1, 3, 2), {1, 2, 3, 4, 5, 6});
    expect_values("Flatten", "", {}, {x}, mat_of(Shape(6), {1, 2, 3, 4, 5, 6}));
}

TEST(Flatten, shares_memory_without_gaps) {
    const LayerPtr layer = make_layer("Flatten", "");
    const Mat x(4, 3, 2);
    EXPECT_EQ(x.data, run_layer(*layer, {x})[0].data);
}

}  // namespace quoll
