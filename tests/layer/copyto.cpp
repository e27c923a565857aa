#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(12), Shape(5)}, "0=3"),
    LayerCase({Shape(12), Shape(12)}, "0=3"),
    LayerCase({Shape(12), Shape(5)}, "-23309=1,-6"),
    LayerCase({Shape(8, 9), Shape(5, 3)}, "0=3 1=6"),
    LayerCase({Shape(8, 9), Shape(4)}, "0=1 1=2"),
    LayerCase({Shape(8, 9), Shape(4)}, "-23309=2,2,1 -23311=2,0,1"),
    LayerCase({Shape(8, 9, 6), Shape(3, 4, 5)}, "0=5 1=2 2=1"),
    LayerCase({Shape(8, 9, 6), Shape(3, 4)}, "-23309=2,-2,-233 -23311=2,-3,2"),
    LayerCase({Shape(8, 9, 6, 7), Shape(3, 4, 2, 5)}, "0=5 1=2 13=3 2=1"),
    LayerCase({Shape(8, 9, 6, 7), Shape(3, 4, 5)}, "0=5 1=2 13=3 2=1"),
    LayerCase({Shape(8, 9, DType::s8), Shape(3, 4, DType::s8)}, "0=5 1=2").range(-9, 9),
};
QUOLL_LAYER_CASES(CopyTo, kCases)

TEST(CopyTo, by_hand) {
    const Mat x = mat_of(Shape(3, 2), {1, 2, 3, 4, 5, 6}), y = mat_of(Shape(2), {7, 8});
    expect_values("CopyTo", "0=1 1=1", {}, {x, y}, mat_of(Shape(3, 2), {1, 2, 3, 4, 7, 8}));
    expect_values("CopyTo", "-23309=1,-2 -23311=1,1", {}, {x, y},
                  mat_of(Shape(3, 2), {1, 7, 8, 4, 5, 6}));
    // The three axes of the source are c, h and w of four.
    expect_values("CopyTo", "13=1", {},
                  {mat_of(Shape(1, 1, 2, 2), {1, 2, 3, 4}), mat_of(Shape(1, 1, 2), {8, 9})},
                  mat_of(Shape(1, 1, 2, 2), {1, 8, 3, 9}));
}

TEST(CopyTo, refuses_what_does_not_fit) {
    for (const char* params : {"0=2", "-23309=1,-5 -23311=1,1", "-23309=1,0 -23311=1,2"}) {
        SCOPED_TRACE(params);
        const LayerPtr layer = make_layer("CopyTo", params, {}, 2);
        ASSERT_NE(nullptr, layer);
        EXPECT_TRUE(run_layer(*layer, {Mat(3, 2), Mat(2)}).empty());
    }
    EXPECT_EQ(nullptr, make_layer("CopyTo", "-23309=1,0 -23311=2,0,1", {}, 2));
    EXPECT_EQ(nullptr, make_layer("CopyTo", "0=-1", {}, 2));
}

}  // namespace quoll
