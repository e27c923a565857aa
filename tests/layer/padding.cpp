#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(19)}, "2=3 3=2 5=0.7"),
    LayerCase({Shape(16)}, "2=8 3=4 4=1"),
    LayerCase({Shape(16)}, "2=8 3=8 4=2"),
    LayerCase({Shape(9, 16)}, "0=8 1=0 2=1 3=2 5=-1"),
    LayerCase({Shape(9, 16)}, "0=1 1=2 2=1 3=2 4=1"),
    LayerCase({Shape(9, 16)}, "2=3 3=2 4=2"),
    LayerCase({Shape(9, 7, 16)}, "0=1 1=2 2=3 3=4 5=0.3"),
    LayerCase({Shape(9, 7, 16)}, "0=1 1=1 2=1 3=1 4=1"),
    LayerCase({Shape(9, 7, 12)}, "0=3 1=2 2=1 3=0 4=2"),
    LayerCase({Shape(9, 7, 16)}, "8=8"),
    LayerCase({Shape(9, 7, 16)}, "7=8 8=8 0=1 1=1 5=1.5"),
    LayerCase({Shape(9, 7, 5)}, "7=1 8=2 4=2"),
    LayerCase({Shape(9, 7, 8)}, "7=3 8=4 4=1"),
    LayerCase({Shape(9, 7, 16)}, "0=1 2=1 6=16"),
    LayerCase({Shape(9, 7, 8)}, "0=1 2=1 7=4 8=4 6=16"),
    LayerCase({Shape(5, 4, 3, 16)}, "0=1 1=2 2=1 3=1 7=1 8=2 5=2"),
    LayerCase({Shape(5, 4, 3, 16)}, "0=1 1=2 2=1 3=1 7=1 8=2 4=1"),
    LayerCase({Shape(5, 4, 3, 16)}, "0=1 1=2 2=1 3=1 7=1 8=2 4=2"),
    LayerCase({Shape(5, 4, 3, 8)}, "0=1 2=1 7=1 6=8"),
    LayerCase({Shape(9, 7, 16, DType::s8)}, "0=1 1=2 2=3 3=4 5=-3").range(-127, 127),
    LayerCase({Shape(9, 7, 8, DType::s8)}, "0=1 1=2 2=3 3=4 4=2").range(-127, 127),
    LayerCase({Shape(9, 7, 8, DType::s32)}, "0=1 1=2 2=3 3=4 5=77").range(-999, 999),
    LayerCase({Shape(9, 7, 8), Shape(6, DType::s32)}, "0=-233 1=-233 2=-233 3=-233 4=1")
        .range(1, 0, 3),
    LayerCase({Shape(9, 7, 8)}, ""),
};
QUOLL_LAYER_CASES(Padding, kCases)

TEST(Padding, by_hand) {
    const Mat x = mat_of(Shape(2, 2), {1, 2, 3, 4});
    expect_values("Padding", "0=1 2=1 5=9", {}, {x},
                  mat_of(Shape(3, 3), {9, 9, 9, 9, 1, 2, 9, 3, 4}));
    expect_values("Padding", "1=1 3=2 4=1", {}, {x},
                  mat_of(Shape(4, 3), {1, 2, 2, 2, 3, 4, 4, 4, 3, 4, 4, 4}));
    expect_values("Padding", "1=1 3=1 4=2", {}, {x},
                  mat_of(Shape(3, 3), {1, 2, 1, 3, 4, 3, 1, 2, 1}));
    const Mat y = mat_of(Shape(1, 1, 2), {1, 2});
    expect_values("Padding", "7=1 8=1 5=9", {}, {y}, mat_of(Shape(1, 1, 4), {9, 1, 2, 9}));
    expect_values("Padding", "3=1 8=1 6=3", {mat_of(Shape(3), {7, 8, 9})}, {y},
                  mat_of(Shape(2, 1, 3), {1, 7, 2, 8, 9, 9}));
    expect_values("Padding", "0=-234 1=-234 2=-234 3=-234 5=9", {},
                  {x, mat_of(Shape(6, DType::s32), {0, 0, 1, 0, 5, 5})},
                  mat_of(Shape(3, 2), {9, 1, 2, 9, 3, 4}));
}

TEST(Padding, refuses_what_does_not_fit) {
    for (const char* params : {"0=-1", "0=-233", "2=2 4=2", "4=3", "8=2147483647 0=1"}) {
        const LayerPtr layer = make_layer("Padding", params);
        EXPECT_TRUE(!layer || run_layer(*layer, {Mat(2, 2, 2)}).empty()) << params;
    }
    const LayerPtr layer = make_layer("Padding", "2=1 6=3", {Mat(3)});
    EXPECT_TRUE(run_layer(*layer, {Mat(2, 2, 2)}).empty());
    const LayerPtr dynamic = make_layer("Padding", "0=-233 1=-233 2=-233 3=-233", {}, 2);
    EXPECT_TRUE(run_layer(*dynamic, {Mat(2, 2, 2), Mat(6)}).empty());
    const Mat hostile = mat_of(Shape(6, DType::s32), {2147483520, 2147483520, -1, 0, 0, 0});
    EXPECT_TRUE(run_layer(*dynamic, {Mat(2, 2, 2), hostile}).empty());
}

}  // namespace quoll
