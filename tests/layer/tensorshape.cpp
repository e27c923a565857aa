#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kShapeOf = {
    LayerCase({Shape(7)}, ""),
    LayerCase({Shape(5, 4, 16)}, "0=1"),
    LayerCase({Shape(5, 4, 3, 8)}, "0=-3 1=-1"),
    LayerCase({Shape(5, 4, 3)}, "2=1").items_not_alone(),
    LayerCase({Shape(5, 4, 3, DType::s32)}, "3=1").items_not_alone(),
};
QUOLL_LAYER_CASES(ShapeOf, kShapeOf)

static LayerCase with_shape(Shape data, std::vector<int> sizes) {
    return LayerCase({data, Shape((int)sizes.size(), DType::s32)}, "")
        .fill([sizes](std::vector<Mat>& in) {
            std::copy(sizes.begin(), sizes.end(), (int*)in[1].data);
        });
}

static const std::vector<LayerCase> kExpand = {
    LayerCase({Shape(5)}, "-23300=3,2,3,5"),
    LayerCase({Shape(1, 4, 3)}, "-23300=1,7"),
    with_shape(Shape(1, 4, 1, DType::s8), {6, 1, 5}),
};
QUOLL_LAYER_CASES(Expand, kExpand)

static const std::vector<LayerCase> kReshapeTo = {
    LayerCase({Shape(5, 4, 3)}, "-23300=2,-1,10"),
    LayerCase({Shape(60)}, "-23300=4,3,1,5,4"),
    LayerCase({Shape(5, 4, 3)}, "-23300=4,0,2,2,-1"),
    with_shape(Shape(5, 4, 3, DType::s8), {2, -1}),
};
QUOLL_LAYER_CASES(ReshapeTo, kReshapeTo)

static const std::vector<LayerCase> kBatchAxis = {
    LayerCase({Shape(5, 3)}, "").items_not_alone(),
    LayerCase({Shape(5, 1)}, "").items_not_alone(),
    LayerCase({Shape(5, 3, 4)}, "").items_not_alone(),
    LayerCase({Shape(5, 3, 4)}, "0=1").items_not_alone(),
};
QUOLL_LAYER_CASES(BatchAxis, kBatchAxis)

TEST(ShapeOf, by_hand) {
    const DType s32 = DType::s32;
    const Mat x(Shape(5, 4, 3));
    expect_values("ShapeOf", "", {}, {x}, mat_of(Shape(3, s32), {3, 4, 5}));
    expect_values("ShapeOf", "0=-2", {}, {x}, mat_of(Shape(2, s32), {4, 5}));
    expect_values("ShapeOf", "3=1", {}, {x}, mat_of(Shape(4, s32), {1, 3, 4, 5}));
    expect_values("ShapeOf", "2=1", {}, {x}, mat_of(Shape(1, s32), {60}));
}

TEST(Expand, by_hand) {
    expect_values("Expand", "-23300=2,2,3", {}, {mat_of(Shape(1, 2), {1, 2})},
                  mat_of(Shape(3, 2), {1, 1, 1, 2, 2, 2}));
}

TEST(ReshapeTo, by_hand) {
    const Mat x = mat_of(Shape(2, 3, 1), {1, 2, 3, 4, 5, 6});
    expect_values("ReshapeTo", "-23300=2,-1,3", {}, {x}, mat_of(Shape(3, 2), {1, 2, 3, 4, 5, 6}));
    expect_values("ReshapeTo", "-23300=3,0,0,2", {}, {x},
                  mat_of(Shape(2, 3, 1), {1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(nullptr, make_layer("ReshapeTo", "-23300=1,-2"));
}

TEST(BatchAxis, by_hand) {
    const LayerPtr layer = make_layer("BatchAxis", "");
    const std::vector<Mat> got = run_layer(*layer, {mat_of(Shape(1, 3, 2), {1, 2, 3, 4, 5, 6})});
    ASSERT_EQ(1u, got.size());
    EXPECT_EQ(2, got[0].n);
    EXPECT_EQ(2, got[0].dims);
    EXPECT_EQ(4.f, got[0].batch(1).row(0)[0]);
}

}  // namespace quoll
