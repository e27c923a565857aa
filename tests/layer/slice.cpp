#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(19)}, "-23300=3,4,7,-233").outputs(3),
    LayerCase({Shape(32)}, "-23300=2,-233,-233").outputs(2),
    LayerCase({Shape(5, 32)}, "-23300=2,8,-233 1=0").outputs(2),
    LayerCase({Shape(20, 8)}, "-23300=3,-233,3,-233 1=1").outputs(3),
    LayerCase({Shape(7, 5, 32)}, "-23300=2,-233,-233").outputs(2),
    LayerCase({Shape(7, 5, 24)}, "-23300=2,8,16").outputs(2),
    LayerCase({Shape(7, 5, 24)}, "-23300=3,4,12,8 1=-3").outputs(3),
    LayerCase({Shape(7, 5, 20)}, "-23300=3,3,-233,-233").outputs(3),
    LayerCase({Shape(7, 9, 16)}, "-23300=2,4,3 1=1").outputs(2),
    LayerCase({Shape(7, 9, 16)}, "-23300=2,-233,2 1=-1").outputs(2),
    LayerCase({Shape(7, 5, 32)}, "-23302=1,8").outputs(2),
    LayerCase({Shape(7, 5, 32)}, "-23302=3,8,-8,32 1=0").outputs(3),
    LayerCase({Shape(3, 5, 4, 16)}, "-23300=2,-233,-233").outputs(2),
    LayerCase({Shape(3, 5, 4, 16)}, "-23300=2,1,-233 1=1").outputs(2),
    LayerCase({Shape(3, 5, 4, 16)}, "-23302=2,-4,-1 1=2").outputs(3),
    LayerCase({Shape(3, 5, 4, 16)}, "-23300=3,-233,-233,-233 1=3").outputs(3),
    LayerCase({Shape(6, 16, DType::s8)}, "-23300=2,-233,-233").outputs(2).range(-127, 127),
    LayerCase({Shape(9, DType::s32)}, "-23300=3,1,1,-233").outputs(3).range(-99, 99),
};
QUOLL_LAYER_CASES(Slice, kCases)

static void expect_pieces(const char* params, const Mat& x, const std::vector<Mat>& want) {
    for (bool reference : {true, false}) {
        const LayerPtr layer = make_layer("Slice", params, {}, 1, (int)want.size(), reference);
        ASSERT_NE(nullptr, layer);
        const std::vector<Mat> got = run_layer(*layer, {x});
        ASSERT_EQ(want.size(), got.size());
        for (size_t i = 0; i < got.size(); i++)
            EXPECT_TRUE(nearly_equal(got[i], want[i], Tolerance())) << i;
    }
}

TEST(Slice, by_hand) {
    const Mat x = mat_of(Shape(5), {1, 2, 3, 4, 5});
    // -233: half of the five values, rounded down, then the rest.
    expect_pieces("-23300=2,-233,-233", x, {mat_of(Shape(2), {1, 2}), mat_of(Shape(3), {3, 4, 5})});
    expect_pieces("-23302=2,1,-1", x, {mat_of(Shape(1), {1}), mat_of(Shape(4), {2, 3, 4, 5})});
    expect_pieces("-23302=2,1,-1", x,
                  {mat_of(Shape(1), {1}), mat_of(Shape(3), {2, 3, 4}), mat_of(Shape(1), {5})});
    expect_pieces("-23300=2,1,1 1=1", mat_of(Shape(2, 2), {1, 2, 3, 4}),
                  {mat_of(Shape(1, 2), {1, 3}), mat_of(Shape(1, 2), {2, 4})});
}

TEST(Slice, refuses_what_does_not_fit) {
    for (const char* params :
         {"-23300=2,4,4", "-23300=1,2", "-23300=2,0,5", "-23302=2,4,2", "1=1 -23300=2,1,1", ""}) {
        const LayerPtr layer = make_layer("Slice", params, {}, 1, 3);
        EXPECT_TRUE(!layer || run_layer(*layer, {Mat(5)}).empty()) << params;
    }
}

TEST(Slice, takes_all_of_the_axis_where_it_has_to) {
    for (const char* exact : {"-23300=2,2,2 3=1", "-23300=2,-233,-233 3=1"}) {
        const LayerPtr layer = make_layer("Slice", exact, {}, 1, 2);
        ASSERT_NE(nullptr, layer) << exact;
        EXPECT_EQ(2u, run_layer(*layer, {Mat(4)}).size()) << exact;
        EXPECT_TRUE(run_layer(*layer, {Mat(5)}).empty()) << exact;
    }
    // Shares are equal to each other, not to pieces of a given size.
    const LayerPtr layer = make_layer("Slice", "-23300=3,1,-233,-233 3=1", {}, 1, 3);
    ASSERT_NE(nullptr, layer);
    EXPECT_EQ(3u, run_layer(*layer, {Mat(7)}).size());
    EXPECT_TRUE(run_layer(*layer, {Mat(6)}).empty());
}

namespace {
class CountingAllocator : public Allocator {
public:
    void* fastMalloc(size_t size) override {
        held++;
        return fast_malloc(size);
    }
    void fastFree(void* ptr) override {
        held--;
        fast_free(ptr);
    }
    int held = 0;
};
}  // namespace

TEST(Slice, channels_share_the_memory_that_the_last_one_frees) {
    const LayerPtr layer = make_layer("Slice", "-23300=2,8,-233", {}, 1, 2, false);
    CountingAllocator allocator;
    Mat x;
    x.create(Shape(4, 3, 24), 8, &allocator);
    ASSERT_FALSE(x.empty());
    x.fill(1.f);
    x.channel(1).fill(2.f);
    std::vector<Mat> pieces = run_layer(*layer, {x});
    ASSERT_EQ(2u, pieces.size());
    EXPECT_EQ(x.data, pieces[0].data);
    EXPECT_EQ(x.channel(1).data, pieces[1].data);
    EXPECT_EQ(1, allocator.held);
    x.release();
    pieces[0].release();
    EXPECT_EQ(1, allocator.held);
    EXPECT_EQ(2.f, pieces[1][0]);
    pieces[1].release();
    EXPECT_EQ(0, allocator.held);
}

}  // namespace quoll
