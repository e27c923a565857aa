#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(19)}, ""),
    LayerCase({Shape(5, 3, 16)}, "20=3 21=16,3,5 22=1"),
    LayerCase({Shape(5, 3, 16, DType::s8)}, "20=4 21=-1,16,3,5 22=3 23=1").range(-9, 9),
};
QUOLL_LAYER_CASES(Output, kCases)

TEST(Output, shares_memory) {
    const LayerPtr layer = make_layer("Output", "", {}, 1, 1);
    const Mat a(5, 3, 2);
    const std::vector<Mat> out = run_layer(*layer, {a});
    ASSERT_EQ(1u, out.size());
    EXPECT_EQ(a.data, out[0].data);
}

}  // namespace quoll
