#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(5, 4, 21)},
              "0=2 1=3 2=0.2 3=0.45 -23304=8,10,15,20,10,30,30,40,20 -23305=3,3,1,2 -23306=1,32")
        .range(-2, 2),
    LayerCase({Shape(5, 4, 16), Shape(3, 2, 16)},
              "0=3 1=2 2=0.1 3=0.6 -23304=4,10,15,20,10 -23305=4,0,1,1,0 -23306=2,32,16")
        .range(-2, 2),
};
QUOLL_LAYER_CASES(Yolov3DetectionOutput, kCases)

TEST(Yolov3DetectionOutput, by_hand) {
    // One place of 32 pixels, anchor 1 of 16 x 8; score 1 / (1 + 1 * (1 + 1 / 3)).
    const Mat x = mat_of(Shape(1, 1, 7), {0, 0, 0, 0, 0, 0, 1.098612289f});
    const Mat want = mat_of(Shape(6, 1), {2, 0.428571429f, 0.25f, 0.375f, 0.75f, 0.625f});
    const std::string params = "0=2 1=1 2=0.3 -23304=4,99,99,16,8 -23306=1,32 ";
    expect_values("Yolov3DetectionOutput", params + "-23305=1,1", {}, {x}, want);
    expect_values("Yolov3DetectionOutput", params + "-23305=1,1.0", {}, {x}, want);
    // As ncnn's converter writes it: the bits of 1.0f.
    expect_values("Yolov3DetectionOutput", params + "-23305=1,1065353216", {}, {x}, want);
    EXPECT_EQ(nullptr, make_layer("Yolov3DetectionOutput", params + "-23305=1,2"));
    EXPECT_EQ(nullptr, make_layer("Yolov3DetectionOutput", params + "-23305=1,2139095040"));
    EXPECT_TRUE(run_layer(*make_layer("Yolov3DetectionOutput", params), {x}).empty());
}

}  // namespace quoll
