#include "layer_test.h"

namespace quoll {

static const DType s32 = DType::s32;

static std::vector<LayerCase> elements() {
    std::vector<LayerCase> all;
    for (int reduction = 0; reduction <= 4; reduction++) {
        const std::string r = " 1=" + std::to_string(reduction);
        for (DType t : {DType::f32, DType::s32, DType::s8}) {
            all.push_back(
                LayerCase({Shape(7, t), Shape(3, s32), Shape(3, t)}, r).range(1, -7, 6).terms(4));
            all.push_back(
                LayerCase({Shape(3, 5, 8, t), Shape(2, 6, 8, s32), Shape(2, 6, 8, t)}, "0=1" + r)
                    .range(1, -5, 4)
                    .terms(7));
        }
        all.push_back(LayerCase({Shape(4, 3), Shape(4, 5, s32), Shape(4, 5)}, "0=0" + r)
                          .range(1, 0, 2)
                          .terms(6));
    }
    return all;
}
static const std::vector<LayerCase> kScatterElements = elements();
QUOLL_LAYER_CASES(ScatterElements, kScatterElements)

static std::vector<LayerCase> nd() {
    std::vector<LayerCase> all;
    for (int reduction = 0; reduction <= 4; reduction++) {
        const std::string r = " 1=" + std::to_string(reduction);
        all.push_back(
            LayerCase({Shape(7), Shape(1, 3, s32), Shape(3)}, r).range(1, -7, 6).terms(4));
        all.push_back(LayerCase({Shape(3, 5, 8), Shape(1, 4, s32), Shape(3, 5, 4)}, r)
                          .range(1, -8, 7)
                          .terms(5));
        all.push_back(LayerCase({Shape(3, 4, 4, s32), Shape(2, 6, s32), Shape(3, 6, s32)}, r)
                          .range(1, -4, 3)
                          .terms(7));
    }
    return all;
}
static const std::vector<LayerCase> kScatterND = nd();
QUOLL_LAYER_CASES(ScatterND, kScatterND)

TEST(ScatterElements, by_hand) {
    const Mat x = mat_of(Shape(3), {1, 2, 3}), index = mat_of(Shape(2, s32), {1, -2});
    const Mat updates = mat_of(Shape(2), {10, 5});
    const float want[][3] = {{1, 5, 3}, {1, 17, 3}, {1, 100, 3}, {1, 10, 3}, {1, 2, 3}};
    for (int reduction = 0; reduction <= 4; reduction++) {
        const float* w = want[reduction];
        expect_values("ScatterElements", "1=" + std::to_string(reduction), {}, {x, index, updates},
                      mat_of(Shape(3), {w[0], w[1], w[2]}));
    }
}

TEST(ScatterND, by_hand) {
    const Mat x = mat_of(Shape(2, 2), {1, 2, 3, 4});
    expect_values("ScatterND", "", {},
                  {x, mat_of(Shape(1, 1, s32), {-1}), mat_of(Shape(2, 1), {7, 8})},
                  mat_of(Shape(2, 2), {1, 2, 7, 8}));
    expect_values("ScatterND", "1=1", {},
                  {x, mat_of(Shape(2, 2, s32), {0, 1, 0, 1}), mat_of(Shape(2), {10, 20})},
                  mat_of(Shape(2, 2), {1, 32, 3, 4}));
}

}  // namespace quoll
