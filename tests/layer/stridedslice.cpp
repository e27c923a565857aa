#include "layer_test.h"

namespace quoll {

static const DType s32 = DType::s32;

static LayerCase with_lists(Shape data, std::vector<std::vector<int>> lists) {
    std::vector<Shape> shapes(1, data);
    for (const auto& list : lists) shapes.push_back(Shape((int)list.size(), s32));
    return LayerCase(shapes, "").fill([lists](std::vector<Mat>& in) {
        for (size_t i = 0; i < lists.size(); i++)
            std::copy(lists[i].begin(), lists[i].end(), (int*)in[i + 1].data);
    });
}

static const std::vector<LayerCase> kStridedSlice = {
    LayerCase({Shape(19)}, "-23300=1,2 -23301=1,-1 -23303=1,3"),
    LayerCase({Shape(5, 8)}, "-23300=2,7,0 -23301=2,-9,4 -23303=2,-2,1"),
    LayerCase({Shape(5, 3, 4)}, "-23300=1,-1 -23301=1,-2147483647 -23302=1,-1 -23303=1,-1"),
    LayerCase({Shape(5, 3, 2, 4, DType::s8)}, "-23300=2,1,0 -23301=2,9,2 -23302=2,0,2"),
    // Lanes of blocks: between elements, within them, with steps; the axes within; both.
    LayerCase({Shape(4, 3, 48)}, "-23300=1,16 -23301=1,48"),
    LayerCase({Shape(5, 3, 48)}, "-23300=1,3 -23301=1,27"),
    LayerCase({Shape(5, 3, 48)}, "-23300=1,47 -23301=1,-99 -23303=1,-3"),
    LayerCase({Shape(9, 7, 16)}, "-23300=2,1,0 -23301=2,7,9 -23302=2,1,2 -23303=2,2,2"),
    LayerCase({Shape(9, 7, 16)}, "-23300=1,8 -23301=1,1 -23302=1,-1 -23303=1,-3"),
    LayerCase({Shape(9, 5, 3, 32)}, "-23300=2,8,1 -23301=2,24,3 -23302=2,0,1"),
    LayerCase({Shape(9, 32)}, "-23300=2,3,2 -23301=2,19,8"),
    LayerCase({Shape(9, 5, 16, DType::s8)}, "-23300=2,4,1 -23301=2,12,4"),
    with_lists(Shape(5, 3, 32), {{8, 0}, {24, 2}}),
    with_lists(Shape(5, 3, 4), {{1, 0}, {3, 4}}),
    with_lists(Shape(5, 3, 4), {{4}, {0}, {-1}, {-3}}),
};
QUOLL_LAYER_CASES(StridedSlice, kStridedSlice)

static const std::vector<LayerCase> kStack = {
    LayerCase({Shape(5), Shape(5)}, ""),
    LayerCase({Shape(5, 3), Shape(5, 3), Shape(5, 3)}, "0=-1"),
    LayerCase({Shape(5, 3, 4, s32), Shape(5, 3, 4, s32)}, "0=1"),
};
QUOLL_LAYER_CASES(Stack, kStack)

static const std::vector<LayerCase> kUnstack = {
    LayerCase({Shape(3)}, "").outputs(3),
    LayerCase({Shape(5, 3, 2)}, "0=0").outputs(2),
    LayerCase({Shape(5, 3, 2, 4, DType::s8)}, "0=-2").outputs(3),
};
QUOLL_LAYER_CASES(Unstack, kUnstack)

static const std::vector<LayerCase> kReverseSequence = {
    LayerCase({Shape(4, 5), Shape(4, s32)}, "").range(1, 0, 5),
    LayerCase({Shape(3, 4, 5, s32), Shape(5, s32)}, "0=0 1=1").range(0, -9, 9).range(1, 0, 4),
    LayerCase({Shape(3, 4, 2, 5), Shape(2, s32)}, "0=1 1=-1").range(1, 0, 3),
};
QUOLL_LAYER_CASES(ReverseSequence, kReverseSequence)

TEST(StridedSlice, by_hand) {
    const Mat x = mat_of(Shape(5), {0, 1, 2, 3, 4});
    expect_values("StridedSlice", "-23300=1,-1 -23301=1,-100 -23303=1,-2", {}, {x},
                  mat_of(Shape(3), {4, 2, 0}));
    expect_values("StridedSlice", "-23300=1,-100 -23301=1,-1 -23303=1,3", {}, {x},
                  mat_of(Shape(2), {0, 3}));
    // ONNX takes a start before the first index as the first one, which NumPy does not.
    expect_values("StridedSlice", "-23300=1,-100 -23301=1,-100 -23303=1,-1", {}, {x},
                  mat_of(Shape(1), {0}));
}

// Rows of 20 bytes cannot be shared from the second on, of 16 bytes they can.
TEST(StridedSlice, outputs_are_not_in_the_workspace) {
    const LayerPtr layer =
        make_layer("StridedSlice", "-23300=2,1,0 -23301=2,5,4 -23302=2,0,1", {}, 1, 1, false);
    ASSERT_NE(nullptr, layer);
    PoolAllocator workspace;
    Option opt;
    opt.workspace_allocator = &workspace;
    Mat x(5, 6);
    x.fill(1.f);
    const std::vector<Mat> got = run_layer(*layer, {x}, opt);
    ASSERT_EQ(1u, got.size());
    EXPECT_NE(&workspace, got[0].allocator);
}

TEST(Stack, by_hand) {
    const Mat a = mat_of(Shape(2), {1, 2}), b = mat_of(Shape(2), {3, 4});
    expect_values("Stack", "", {}, {a, b}, mat_of(Shape(2, 2), {1, 2, 3, 4}));
    expect_values("Stack", "0=1", {}, {a, b}, mat_of(Shape(2, 2), {1, 3, 2, 4}));
}

TEST(Unstack, by_hand) {
    const LayerPtr layer = make_layer("Unstack", "0=1", {}, 1, 2);
    const std::vector<Mat> got = run_layer(*layer, {mat_of(Shape(2, 2), {1, 2, 3, 4})});
    ASSERT_EQ(2u, got.size());
    EXPECT_TRUE(nearly_equal(got[1], mat_of(Shape(2), {2, 4}), Tolerance()));
}

TEST(ReverseSequence, by_hand) {
    expect_values("ReverseSequence", "0=0 1=1", {},
                  {mat_of(Shape(3, 2), {1, 2, 3, 4, 5, 6}), mat_of(Shape(2, s32), {2, 3})},
                  mat_of(Shape(3, 2), {2, 1, 3, 6, 5, 4}));
}

}  // namespace quoll
