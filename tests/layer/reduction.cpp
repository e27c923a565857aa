#include "layer_test.h"

namespace quoll {

static LayerCase reduce(Shape in, int operation, const std::string& more) {
    LayerCase c({in}, "0=" + std::to_string(operation) + " 5=1 " + more);
    if (operation == 6) c.range(0.9f, 1.1f).term_magnitude(8);  // the product stays near 1
    if (operation == 9) c.range(0.1f, 2.f);
    return c.terms((double)in.total());
}

static std::vector<LayerCase> cases() {
    std::vector<LayerCase> all;
    for (int operation = 0; operation <= 10; operation++) {
        all.push_back(reduce(Shape(31), operation, ""));
        all.push_back(reduce(Shape(7, 8), operation, "1=0 -23303=1,0 2=0.5"));
        all.push_back(reduce(Shape(16, 5), operation, "1=0 -23303=1,-1 4=1"));
        all.push_back(reduce(Shape(90, 48), operation, "1=0 -23303=1,1 4=1"));
        all.push_back(reduce(Shape(3, 5, 4), operation, "2=2.0 4=1"));
        all.push_back(reduce(Shape(3, 2, 16), operation, "1=0 -23303=1,0"));
        all.push_back(reduce(Shape(4, 3, 8), operation, "1=0 -23303=1,1 4=1"));
        all.push_back(reduce(Shape(4, 3, 8), operation, "1=0 -23303=2,1,2"));
        all.push_back(reduce(Shape(4, 3, 13), operation, "1=0 -23303=2,0,-1"));
        all.push_back(reduce(Shape(3, 2, 2, 4), operation, "1=0 -23303=3,0,1,2"));
        all.push_back(reduce(Shape(3, 2, 2, 8), operation, "1=0 -23303=2,-1,-2 4=1"));
        all.push_back(reduce(Shape(3, 2, 2, 12), operation, "1=0 -23303=1,1"));
        all.push_back(reduce(Shape(3, 2, 3, 16), operation, "1=0 -23303=2,1,2"));
        all.push_back(reduce(Shape(3, 2, 3, 16), operation, "1=0 -23303=2,0,1 4=1"));
    }
    for (int operation : {0, 4, 8})
        all.push_back(reduce(Shape(43, 60, 16), operation, "1=0 -23303=1,0").terms(16));
    all.push_back(reduce(Shape(4, 3, 8), 7, "1=0 2=3.0"));
    all.push_back(reduce(Shape(13), 3, "1=0"));
    return all;
}
static const std::vector<LayerCase> kCases = cases();
QUOLL_LAYER_CASES(Reduction, kCases)

TEST(Reduction, operations_by_hand) {
    const Mat x = mat_of(Shape(3), {1, -2, 4});
    const float want[] = {3, 7, 21, 1, 4, -2, -8, 7, 4.5825757f, 1.0986123f, 4.0509549f};
    for (int operation = 0; operation <= 10; operation++) {
        const std::string params = "0=" + std::to_string(operation);
        expect_values("Reduction", params, {}, {x}, mat_of(Shape(1), {want[operation]}));
        expect_values("Reduction", params + " 2=-2.0", {}, {x},
                      mat_of(Shape(1), {-2 * want[operation]}));
    }
}

// Those of ints are exact where a float would not be, wrap, and cut means.
TEST(Reduction, ints_by_hand) {
    const int values[] = {16777217, -3, 5, 1 << 30, 1 << 30, 1 << 30};
    Mat x(Shape(3, 2, DType::s32), 1);
    std::copy(values, values + 6, (int*)x.data);
    const int want[8][2] = {{16777219, -1073741824}, {16777225, -1073741824}, {33554467, 0},
                            {5592406, 1 << 30},      {16777217, 1 << 30},     {-3, 1 << 30},
                            {-251658255, 0},         {16777225, -1073741824}};
    for (const bool reference : {false, true}) {
        for (int operation = 0; operation < 8; operation++) {
            const std::string params = "0=" + std::to_string(operation) + " 1=0 -23303=1,1 5=1";
            const LayerPtr layer = make_layer("Reduction", params, {}, 1, 1, reference);
            ASSERT_NE(nullptr, layer);
            const std::vector<Mat> got = run_layer(*layer, {x});
            ASSERT_EQ(1u, got.size()) << operation;
            ASSERT_EQ(DType::s32, got[0].dtype);
            ASSERT_EQ(2, got[0].w);
            for (int i = 0; i < 2; i++)
                EXPECT_EQ(want[operation][i], ((const int*)got[0].data)[i]) << operation;
        }
    }
}

TEST(Reduction, axes_by_hand) {
    const Mat x = mat_of(Shape(2, 2, 2), {1, 2, 3, 4, 5, 6, 7, 8});
    expect_values("Reduction", "", {}, {x}, mat_of(Shape(1), {36}));
    expect_values("Reduction", "4=1", {}, {x}, mat_of(Shape(1, 1, 1), {36}));
    expect_values("Reduction", "1=0 -23303=1,0 5=1", {}, {x}, mat_of(Shape(2, 2), {6, 8, 10, 12}));
    expect_values("Reduction", "1=0 -23303=1,1 5=1 4=1", {}, {x},
                  mat_of(Shape(2, 1, 2), {4, 6, 12, 14}));
    expect_values("Reduction", "1=0 -23303=2,-1,0 5=1", {}, {x}, mat_of(Shape(2), {14, 22}));
    expect_values("Reduction", "1=0 5=1 2=2.0", {}, {x},
                  mat_of(Shape(2, 2, 2), {2, 4, 6, 8, 10, 12, 14, 16}));
    expect_values("Reduction", "1=0 2=2.0", {}, {mat_of(Shape(3), {1, 2, 3})},
                  mat_of(Shape(1), {12}));
}

// An application may pack its blobs by any number of channels.
TEST(Reduction, any_elempack) {
    Mat x(Shape(61, 43, 6), 1);
    for (int q = 0; q < 6; q++)
        for (int i = 0; i < 61 * 43; i++) ((float*)x.channel(q))[i] = (float)((i * 7 + q) % 31);
    for (const char* params : {"0=0 1=0 -23303=1,0 4=1 5=1", "0=4 1=0 -23303=2,0,1 5=1"}) {
        const LayerPtr layer = make_layer("Reduction", params, {}, 1, 1, false);
        ASSERT_NE(nullptr, layer);
        const std::vector<Mat> want = run_layer(*layer, {x});
        ASSERT_EQ(1u, want.size());
        for (const int pack : {3, 6}) {
            Mat blocks;
            convert_packing(x, blocks, pack);
            const std::vector<Mat> got = run_layer(*layer, {blocks});
            ASSERT_EQ(1u, got.size());
            EXPECT_TRUE(nearly_equal(got[0], want[0], Tolerance())) << params << ", " << pack;
        }
    }
}

TEST(Reduction, large_exponents_do_not_overflow) {
    expect_values("Reduction", "0=10", {}, {mat_of(Shape(2), {1000, 1000})},
                  mat_of(Shape(1), {1000.6931f}));
}

TEST(Reduction, refuses_old_files_and_missing_axes) {
    EXPECT_EQ(nullptr, make_layer("Reduction", "1=0 -23303=1,1"));
    EXPECT_EQ(nullptr, make_layer("Reduction", "0=11"));
    EXPECT_EQ(nullptr, make_layer("Reduction", "1=0 -23303=1,4 5=1"));
    const LayerPtr layer = make_layer("Reduction", "1=0 -23303=1,2 5=1");
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(3, 4)}).empty());
}

}  // namespace quoll
