#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(19)}, ""),
    LayerCase({Shape(5, 3, 16), Shape(8)}, "").outputs(2),
    LayerCase({Shape(5, 3, 16), Shape(8), Shape(7, 2, DType::s8)}, "").range(-9, 9),
};
QUOLL_LAYER_CASES(Noop, kCases)

TEST(Noop, shares_memory) {
    const LayerPtr layer = make_layer("Noop", "", {}, 2, 1);
    const Mat a(5, 3, 2), b(4);
    const std::vector<Mat> out = run_layer(*layer, {a, b});
    ASSERT_EQ(1u, out.size());
    EXPECT_EQ(a.data, out[0].data);
    EXPECT_TRUE(run_layer(*make_layer("Noop", "", {}, 1, 2), {a}).empty());
}

}  // namespace quoll
