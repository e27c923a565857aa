#include "layer_test.h"

namespace quoll {

static const DType s32 = DType::s32;

static std::vector<LayerCase> along_axes(const std::string& params, int axis_id, double terms) {
    std::vector<LayerCase> all;
    const std::string axis = params + " " + std::to_string(axis_id) + "=";
    all.push_back(LayerCase({Shape(19)}, axis + "0").terms(terms));
    all.push_back(LayerCase({Shape(5, 8)}, axis + "0").terms(terms));
    all.push_back(LayerCase({Shape(5, 3, 4)}, axis + "-1").terms(terms));
    all.push_back(LayerCase({Shape(5, 3, 4)}, axis + "0").terms(terms));
    all.push_back(LayerCase({Shape(5, 3, 2, 4)}, axis + "-2").terms(terms));
    return all;
}

static std::vector<LayerCase> cum_sums() {
    std::vector<LayerCase> all;
    for (const char* params : {"", "1=1", "2=1", "1=1 2=1"})
        for (const LayerCase& c : along_axes(params, 0, 19)) all.push_back(c);
    all.push_back(
        LayerCase({Shape(5, 3, 4, s32), Shape(1, s32)}, "").range(0, -9, 9).range(1, 0, 2));
    return all;
}
static const std::vector<LayerCase> kCumSum = cum_sums();
QUOLL_LAYER_CASES(CumSum, kCumSum)

static const std::vector<LayerCase> kTrilu = {
    LayerCase({Shape(5, 4)}, ""),
    LayerCase({Shape(5, 4, 3, s32)}, "0=0 1=1").range(-9, 9),
    LayerCase({Shape(3, 4, 2, 2, DType::s8), Shape(1, s32)}, "0=0").range(-4, 4),
};
QUOLL_LAYER_CASES(Trilu, kTrilu)

static const std::vector<LayerCase> kLogSoftmax = along_axes("", 0, 19);
QUOLL_LAYER_CASES(LogSoftmax, kLogSoftmax)
static const std::vector<LayerCase> kHardmax = along_axes("", 0, 1);
QUOLL_LAYER_CASES(Hardmax, kHardmax)
static const std::vector<LayerCase> kLpNormalization = along_axes("1=1", 0, 19);
QUOLL_LAYER_CASES(LpNormalization, kLpNormalization)

static const std::vector<LayerCase> kMeanVariance = {
    LayerCase({Shape(19)}, "").terms(19),
    LayerCase({Shape(5, 8)}, "-23300=1,0").terms(8),
    LayerCase({Shape(5, 3, 4)}, "-23300=2,1,-1").terms(15),
    LayerCase({Shape(5, 3, 2, 4)}, "-23300=2,0,3").terms(20),
};
QUOLL_LAYER_CASES(MeanVarianceNormalization, kMeanVariance)

static const std::vector<LayerCase> kDet = {
    LayerCase({Shape(4, 4)}, "").terms(24),
    LayerCase({Shape(3, 3, 5)}, "").terms(6),
    LayerCase({Shape(2, 2, 3, 2)}, "").terms(2),
};
QUOLL_LAYER_CASES(Det, kDet)

TEST(CumSum, by_hand) {
    const Mat x = mat_of(Shape(3), {1, 2, 3});
    expect_values("CumSum", "", {}, {x}, mat_of(Shape(3), {1, 3, 6}));
    expect_values("CumSum", "1=1", {}, {x}, mat_of(Shape(3), {0, 1, 3}));
    expect_values("CumSum", "2=1", {}, {x}, mat_of(Shape(3), {6, 5, 3}));
    expect_values("CumSum", "1=1 2=1", {}, {x}, mat_of(Shape(3), {5, 3, 0}));
}

TEST(Trilu, by_hand) {
    const Mat x = mat_of(Shape(3, 2), {1, 2, 3, 4, 5, 6});
    expect_values("Trilu", "", {}, {x}, mat_of(Shape(3, 2), {1, 2, 3, 0, 5, 6}));
    expect_values("Trilu", "0=0 1=-1", {}, {x}, mat_of(Shape(3, 2), {0, 0, 0, 4, 0, 0}));
}

TEST(LogSoftmax, by_hand) {
    expect_values("LogSoftmax", "", {}, {mat_of(Shape(2), {1000, 1000})},
                  mat_of(Shape(2), {-0.69314718f, -0.69314718f}));
}

TEST(Hardmax, by_hand) {
    expect_values("Hardmax", "", {}, {mat_of(Shape(3), {1, 4, 4})}, mat_of(Shape(3), {0, 1, 0}));
}

TEST(LpNormalization, by_hand) {
    expect_values("LpNormalization", "", {}, {mat_of(Shape(2, 2), {3, -4, 0, 0})},
                  mat_of(Shape(2, 2), {0.6f, -0.8f, 0, 0}));
    expect_values("LpNormalization", "1=1", {}, {mat_of(Shape(2), {1, -3})},
                  mat_of(Shape(2), {0.25f, -0.75f}));
}

TEST(MeanVarianceNormalization, by_hand) {
    expect_values("MeanVarianceNormalization", "-23300=1,1", {},
                  {mat_of(Shape(2, 2), {1, 3, 10, 30})}, mat_of(Shape(2, 2), {-1, 1, -1, 1}));
}

TEST(Det, by_hand) {
    expect_values("Det", "", {}, {mat_of(Shape(2, 2, 2), {1, 2, 3, 4, 0, 2, 3, 0})},
                  mat_of(Shape(2), {-2, -6}));
}

}  // namespace quoll
