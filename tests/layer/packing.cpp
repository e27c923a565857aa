#include "layer_test.h"

#include <string.h>

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(16)}, "0=4"),
    LayerCase({Shape(5, 16)}, "0=8"),
    LayerCase({Shape(5, 3, 32)}, "0=16"),
    LayerCase({Shape(5, 3, 12)}, "0=8"),
    LayerCase({Shape(5, 3, 12)}, "0=8 1=1"),
    LayerCase({Shape(5, 3, 7)}, "0=4 1=1"),
    LayerCase({Shape(5, 3, 2, 16)}, "0=1"),
    LayerCase({Shape(5, 3, 16, DType::s8)}, "0=8").range(-127, 127),
};
QUOLL_LAYER_CASES(Packing, kCases)

TEST(Packing, by_hand) {
    const Mat x = mat_of(Shape(1, 1, 3), {1, 2, 3});
    const std::vector<Mat> out = run_layer(*make_layer("Packing", "0=4 1=1"), {x});
    ASSERT_EQ(1u, out.size());
    EXPECT_EQ(4, out[0].elempack);
    EXPECT_EQ(1, out[0].c);
    const float want[] = {1, 2, 3, 0};
    EXPECT_EQ(0, memcmp(want, out[0].data, sizeof(want)));
    // Without padding what does not divide stays planar.
    EXPECT_EQ(1, run_layer(*make_layer("Packing", "0=4"), {x})[0].elempack);
    const std::vector<Mat> half = run_layer(*make_layer("Packing", "0=1 3=2"), {x});
    ASSERT_EQ(1u, half.size());
    EXPECT_EQ(DType::f16, half[0].dtype);
    EXPECT_EQ(nullptr, make_layer("Packing", "0=0"));
}

}  // namespace quoll
