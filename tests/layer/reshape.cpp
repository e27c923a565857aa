#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(24)}, "0=6 1=-1"),
    LayerCase({Shape(96)}, "0=2 1=3 2=16"),
    LayerCase({Shape(6, 16)}, "0=-1"),
    LayerCase({Shape(6, 16)}, "0=3 1=2 2=-1"),
    LayerCase({Shape(6, 16)}, "0=0 1=-1 2=8"),
    LayerCase({Shape(6, 4, 16)}, "0=-1 1=8"),
    LayerCase({Shape(6, 4, 16)}, "0=3 1=8 2=0"),
    LayerCase({Shape(5, 3, 16)}, "0=-1 1=16"),
    LayerCase({Shape(5, 3, 16)}, "0=15 1=-1"),
    LayerCase({Shape(5, 3, 16)}, "0=4 1=-1 11=5 2=4"),
    LayerCase({Shape(5, 3, 2, 16)}, "0=0 1=-1 2=16"),
    LayerCase({Shape(5, 3, 2, 16)}, "0=0 1=0 11=0 2=0"),
    LayerCase({Shape(5, 3, 2, 16)}, "0=-1"),
    LayerCase({Shape(6, 4, 16)}, "6=\"*(0w,2),/(0h,2),-1\""),
    LayerCase({Shape(6, 4, 16), Shape(3, 5)}, "6=\"1w,-1,0c\""),
    LayerCase({Shape(6, 4, 16)}, "6=\"0h,0w,2,/(0c,2)\""),
    LayerCase({Shape(6, 4, 16)}, "0=8 1=-1 2=4 3=1"),
    LayerCase({Shape(6, 4, 5)}, "0=-1 3=1"),
    LayerCase({Shape(6, 8)}, "0=4 1=3 2=-1 3=1"),
    LayerCase({Shape(5, 3, 16, DType::s8)}, "0=30 1=-1").range(-127, 127),
    LayerCase({Shape(12, DType::s32)}, "0=3 1=-1").range(-99, 99),
};
QUOLL_LAYER_CASES(Reshape, kCases)

TEST(Reshape, by_hand) {
    const Mat x = mat_of(Shape(3, 1, 2), {1, 2, 3, 4, 5, 6});
    expect_values("Reshape", "0=2 1=-1", {}, {x}, mat_of(Shape(2, 3), {1, 2, 3, 4, 5, 6}));
    // Order h w c of the input: 1 4, 2 5, 3 6; laid out as 2 rows of 3 in the order w h.
    expect_values("Reshape", "0=3 1=2 3=1", {}, {x}, mat_of(Shape(3, 2), {1, 2, 3, 4, 5, 6}));
    expect_values("Reshape", "0=6 3=1", {}, {x}, mat_of(Shape(6), {1, 4, 2, 5, 3, 6}));
}

TEST(Reshape, shares_memory_without_gaps) {
    const LayerPtr layer = make_layer("Reshape", "0=2 1=-1");
    const Mat x(4, 3, 2);
    EXPECT_EQ(x.data, run_layer(*layer, {x})[0].data);
}

TEST(Reshape, refuses_what_does_not_fit) {
    for (const char* params :
         {"0=5 1=-1", "0=-1 1=-1", "0=12", "0=6 1=5", "0=24 1=2", "0=-2 1=1", "1=24", "",
          "6=\"0w,0h,2,2,1\"", "6=\"1w\"", "0=65536 1=65536 2=65536 11=65536",
          "0=2147483647 1=2147483647 2=-1", "6=\"-3,-1\""}) {
        const LayerPtr layer = make_layer("Reshape", params);
        EXPECT_TRUE(!layer || run_layer(*layer, {Mat(6, 4)}).empty()) << params;
    }
}

}  // namespace quoll
