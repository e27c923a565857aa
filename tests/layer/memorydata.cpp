#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({}, "0=19"),
    LayerCase({}, "0=5 1=8 21=0"),
    LayerCase({}, "0=5 1=3 2=16"),
    LayerCase({}, "0=5 1=3 11=2 2=16 21=0"),
    LayerCase({}, ""),
};
QUOLL_LAYER_CASES(MemoryData, kCases)

TEST(MemoryData, by_hand) {
    const Mat data = mat_of(Shape(6), {1, 2, 3, 4, 5, 6});
    expect_values("MemoryData", "0=1 1=3 2=2", {data}, {},
                  mat_of(Shape(1, 3, 2), {1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(nullptr, make_layer("MemoryData", "0=65536 1=65536 2=65536", {data}));
    EXPECT_EQ(nullptr, make_layer("MemoryData", "0=-1", {data}));
}

}  // namespace quoll
