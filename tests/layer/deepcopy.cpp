#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(5)}, ""),
    LayerCase({Shape(5, 8)}, ""),
    LayerCase({Shape(5, 6, 16)}, ""),
    LayerCase({Shape(5, 6, 7, 24)}, ""),
    LayerCase({Shape(5, 6, 3, DType::s32)}, "").range(-99, 99),
};
QUOLL_LAYER_CASES(DeepCopy, kCases)

TEST(DeepCopy, shares_no_memory) {
    const Mat x = mat_of(Shape(3), {1, 2, 3});
    expect_values("DeepCopy", "", {}, {x}, x);
    const LayerPtr layer = make_layer("DeepCopy", "");
    ASSERT_NE(nullptr, layer);
    const std::vector<Mat> got = run_layer(*layer, {x});
    ASSERT_EQ(1u, got.size());
    EXPECT_NE(x.data, got[0].data);
}

}  // namespace quoll
