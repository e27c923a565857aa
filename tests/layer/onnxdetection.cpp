#include "layer_test.h"

namespace quoll {

static const DType s32 = DType::s32;

static const std::vector<LayerCase> kNms = {
    LayerCase({Shape(4, 12), Shape(12, 2)}, "1=4 2=0.3 3=0.1").range(0.f, 1.f).items_not_alone(),
    LayerCase({Shape(4, 12, 3), Shape(12, 2, 3)}, "0=1 1=3 2=0.5")
        .range(0.f, 1.f)
        .items_not_alone(),
    LayerCase({Shape(4, 9), Shape(9, 1), Shape(1, s32), Shape(1), Shape(1)}, "")
        .range(0.f, 1.f)
        .range(2, 5, 5)
        .range(3, 0.4f, 0.4f)
        .range(4, 0.2f, 0.2f)
        .items_not_alone(),
};
QUOLL_LAYER_CASES(NonMaxSuppression, kNms)

static LayerCase on_boxes(Shape image, int boxes, const std::string& params, float most) {
    return LayerCase({image, Shape(4, boxes), Shape(boxes, s32)}, params)
        .range(0, -1.f, 1.f)
        .range(1, 0.f, most)
        .range(2, 0, 0)
        .terms(64);
}
static const std::vector<LayerCase> kCrops = {
    on_boxes(Shape(7, 6, 3), 4, "0=3 1=4", 1.2f).items_not_alone(),
    on_boxes(Shape(7, 6, 3), 2, "0=1 1=5 3=0.5", 1.f).items_not_alone(),
    on_boxes(Shape(7, 6, 3), 3, "0=2 1=2 2=1", 1.f).items_not_alone(),
};
QUOLL_LAYER_CASES(CropAndResize, kCrops)

static const std::vector<LayerCase> kRoiAlign = {
    on_boxes(Shape(7, 6, 3), 4, "1=3 2=4", 7.f).items_not_alone(),
    on_boxes(Shape(7, 6, 3), 2, "0=1 1=2 2=2 3=2 5=0", 7.f).items_not_alone(),
    on_boxes(Shape(7, 6, 3), 3, "1=2 2=1 3=3 4=0.5", 14.f).items_not_alone(),
};
QUOLL_LAYER_CASES(OnnxROIAlign, kRoiAlign)

static const std::vector<LayerCase> kAffineGrid = {
    LayerCase({Shape(3, 2)}, "-23300=4,1,1,5,4").terms(3),
    LayerCase({Shape(4, 3)}, "-23300=5,1,1,3,4,2 1=1").terms(4),
    LayerCase({Shape(3, 2), Shape(4, s32)}, "1=1").range(1, 2, 6).terms(3),
};
QUOLL_LAYER_CASES(AffineGrid, kAffineGrid)

TEST(NonMaxSuppression, by_hand) {
    // Box 1 covers box 0 to 0.8; box 2 is elsewhere.
    const Mat boxes = mat_of(Shape(4, 3), {0, 0, 1, 1, 0, 0, 1, 0.8f, 2, 2, 3, 3});
    const Mat scores = mat_of(Shape(3, 1), {0.5f, 0.9f, 0.7f});
    expect_values("NonMaxSuppression", "1=3 2=0.5", {}, {boxes, scores},
                  mat_of(Shape(3, 2, s32), {0, 0, 1, 0, 0, 2}));
    expect_values("NonMaxSuppression", "1=3 2=0.9 3=0.6", {}, {boxes, scores},
                  mat_of(Shape(3, 2, s32), {0, 0, 1, 0, 0, 2}));
    expect_values("NonMaxSuppression", "1=1 2=0.9", {}, {boxes, scores},
                  mat_of(Shape(3, 1, s32), {0, 0, 1}));
    std::vector<Mat> none(1);  // the default keeps no box
    ASSERT_EQ(0,
              make_layer("NonMaxSuppression", "", {}, 2)->forward({boxes, scores}, none, Option()));
    EXPECT_EQ(Shape(3, 0, s32), none[0].logical_shape());
}

TEST(CropAndResize, by_hand) {
    const Mat image = mat_of(Shape(3, 3, 1), {0, 1, 2, 3, 4, 5, 6, 7, 8});
    const Mat first = mat_of(Shape(1, s32), {0});
    expect_values("CropAndResize", "0=2 1=2 3=-1.0", {},
                  {image, mat_of(Shape(4, 1), {0, 0, 0.5f, 1.5f}), first},
                  mat_of(Shape(2, 2, 1), {0, -1, 3, -1}));
    expect_values("CropAndResize", "", {}, {image, mat_of(Shape(4, 1), {0, 0, 1, 0.5f}), first},
                  mat_of(Shape(1, 1, 1), {3.5f}));
}

TEST(OnnxROIAlign, by_hand) {
    const Mat image = mat_of(Shape(3, 3, 1), {0, 1, 2, 3, 4, 5, 6, 7, 8});
    const Mat box = mat_of(Shape(4, 1), {0, 0, 2, 2}), first = mat_of(Shape(1, s32), {0});
    // half_pixel: from -0.5 to 1.5; one sample at 0.5, 0.5, the mean of 0 1 3 4.
    expect_values("OnnxROIAlign", "3=1", {}, {image, box, first}, mat_of(Shape(1, 1, 1), {2}));
    expect_values("OnnxROIAlign", "0=1 3=1", {}, {image, box, first}, mat_of(Shape(1, 1, 1), {1}));
    expect_values("OnnxROIAlign", "3=1 5=0", {}, {image, box, first}, mat_of(Shape(1, 1, 1), {4}));
}

TEST(AffineGrid, by_hand) {
    const Mat theta = mat_of(Shape(3, 2), {1, 0, 0.25f, 0, 2, 0});
    expect_values("AffineGrid", "-23300=4,1,1,1,2", {}, {theta},
                  mat_of(Shape(2, 2, 1), {-0.25f, 0, 0.75f, 0}));
}

}  // namespace quoll
