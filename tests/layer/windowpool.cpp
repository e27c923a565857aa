#include "layer_test.h"

namespace quoll {

static const DType s32 = DType::s32;

static std::vector<LayerCase> pools() {
    std::vector<LayerCase> all;
    for (int op = 0; op <= 3; op++) {
        const std::string o = "0=" + std::to_string(op);
        all.push_back(LayerCase({Shape(9, 4)}, o + " -23301=1,3 -23302=1,2").terms(3));
        all.push_back(LayerCase({Shape(9, 7, 4)},
                                o + " -23301=2,3,2 -23302=2,2,1 -23303=2,1,2 -23304=4,1,0,1,1 5=1 "
                                    "7=1 8=3")
                          .terms(6));
        all.push_back(LayerCase({Shape(9, 7, 8)}, o + " -23301=2,3,3 -23302=2,2,2 6=1").terms(9));
        all.push_back(LayerCase({Shape(6, 5, 4, 3)}, o + " -23301=3,2,2,3 6=2 8=1").terms(12));
    }
    // On blocks of channels: SAME modes, ceiling, one side padded, 1 to 3 axes.
    for (const char* op : {"0=0", "0=2", "0=2 7=1"})
        for (const char* more : {"6=1", "6=2", "5=1", "-23304=4,0,1,1,0", "-23304=4,0,1,1,0 5=1"}) {
            const std::string o = std::string(op) + " " + more;
            all.push_back(
                LayerCase({Shape(15, 11, 16)}, o + " -23301=2,3,2 -23302=2,2,2").terms(6));
            all.push_back(LayerCase({Shape(15, 11, 6)}, o + " -23301=2,2,3").terms(6));
        }
    for (const char* op : {"0=0", "0=1"})
        for (const char* more :
             {"-23302=2,2,1 -23303=2,2,3 -23304=4,2,3,1,2", "-23303=2,2,2 6=1", "-23302=2,3,3"})
            all.push_back(
                LayerCase({Shape(15, 11, 16)}, std::string(op) + " -23301=2,3,2 " + more));
    for (const char* op : {"0=0", "0=2"}) {
        const std::string o = std::string(op) + " 6=1 ";
        all.push_back(LayerCase({Shape(15, 16)}, o + "-23301=1,4 -23302=1,3").terms(4));
        all.push_back(
            LayerCase({Shape(7, 6, 5, 16)}, o + "-23301=3,2,2,2 -23302=3,2,1,2").terms(8));
    }
    all.push_back(LayerCase({Shape(15, 11, 16, DType::s8)}, "6=1 -23301=2,3,2").range(-99, 99));
    all.push_back(LayerCase({Shape(9, 7, 4)}, "-23301=2,3,2").outputs(2).items_not_alone());
    all.push_back(LayerCase({Shape(9, 7, 4, DType::s8)}, "-23301=2,2,2 9=1")
                      .range(-9, 9)
                      .outputs(2)
                      .items_not_alone());
    return all;
}
static const std::vector<LayerCase> kWindowPool = pools();
QUOLL_LAYER_CASES(WindowPool, kWindowPool)

static const std::vector<LayerCase> kMaxUnpool = {
    LayerCase({Shape(3, 2), Shape(3, 2, s32)}, "-23301=1,2 -23302=1,2")
        .range(1, 0, 11)
        .items_not_alone(),
    LayerCase({Shape(3, 2, 4), Shape(3, 2, 4, s32)}, "-23301=2,2,2 -23302=2,2,2")
        .range(1, 0, 95)
        .items_not_alone(),
    LayerCase({Shape(3, 2, 4), Shape(3, 2, 4, s32), Shape(4, s32)}, "-23301=2,2,2 -23302=2,2,2")
        .range(1, 0, 95)
        .fill([](std::vector<Mat>& in) {
            const int size[] = {1, 4, 5, 7};
            std::copy(size, size + 4, (int*)in[2].data);
        })
        .items_not_alone(),
};
// Places that come twice keep the last value: any other order would be another answer.
QUOLL_LAYER_CASES(MaxUnpool, kMaxUnpool)

static const std::vector<LayerCase> kCol2Im = {
    LayerCase({Shape(4, 6)}, "-23300=1,5 -23301=1,2").terms(2),
    LayerCase({Shape(9, 8)}, "-23300=2,5,5 -23301=2,2,2 -23302=2,2,2 -23304=4,1,0,0,1").terms(4),
    LayerCase({Shape(4, 8), Shape(2, s32), Shape(2, s32)}, "-23302=2,2,2 -23303=2,1,1")
        .terms(4)
        .fill([](std::vector<Mat>& in) {
            const int image[] = {4, 4}, kernel[] = {2, 2};
            std::copy(image, image + 2, (int*)in[1].data);
            std::copy(kernel, kernel + 2, (int*)in[2].data);
        }),
};
QUOLL_LAYER_CASES(Col2Im, kCol2Im)

TEST(WindowPool, by_hand) {
    const Mat x = mat_of(Shape(4, 1), {3, -4, 1, 2});
    const std::string window = " -23301=1,2 -23302=1,2 -23304=2,1,1";
    expect_values("WindowPool", "0=0" + window, {}, {x}, mat_of(Shape(3, 1), {3, 1, 2}));
    expect_values("WindowPool", "0=1" + window, {}, {x}, mat_of(Shape(3, 1), {3, -4, 2}));
    expect_values("WindowPool", "0=2" + window, {}, {x}, mat_of(Shape(3, 1), {3, -1.5f, 2}));
    expect_values("WindowPool", "0=2 7=1" + window, {}, {x}, mat_of(Shape(3, 1), {1.5f, -1.5f, 1}));
    expect_values("WindowPool", "0=3 8=1" + window, {}, {x}, mat_of(Shape(3, 1), {3, 5, 2}));
}

TEST(WindowPool, indices_by_hand) {
    const std::vector<Mat> got =
        run_layer(*make_layer("WindowPool", "-23301=2,2,2 -23302=2,2,2 9=1", {}, 1, 2),
                  {mat_of(Shape(2, 2, 2), {1, 4, 2, 3, 5, 6, 8, 7})});
    ASSERT_EQ(2u, got.size());
    EXPECT_TRUE(nearly_equal(got[0], mat_of(Shape(1, 1, 2), {4, 8}), Tolerance()));
    EXPECT_TRUE(nearly_equal(got[1], mat_of(Shape(1, 1, 2, s32), {2, 5}), Tolerance()));
}

TEST(MaxUnpool, by_hand) {
    expect_values("MaxUnpool", "-23301=1,2 -23302=1,2", {},
                  {mat_of(Shape(2, 1), {5, 6}), mat_of(Shape(2, 1, s32), {1, 2})},
                  mat_of(Shape(4, 1), {0, 5, 6, 0}));
}

TEST(Col2Im, by_hand) {
    // Windows 0 1, 1 2 of an image of 3.
    expect_values("Col2Im", "-23300=1,3 -23301=1,2", {}, {mat_of(Shape(2, 2), {1, 2, 10, 20})},
                  mat_of(Shape(3, 1), {1, 12, 20}));
}

}  // namespace quoll
