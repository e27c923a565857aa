#include "conv_case.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    conv_case(Shape(4, 3, 5, 1), 1, 1, "5=1", 1),
    conv_case(Shape(4, 3, 2, 16), 16, 2, "3=2 5=1 9=1", 16),
    conv_case(Shape(4, 5, 3, 7), 7, 3, "3=2 13=1 23=3 4=1 5=1 9=2 -23310=1,0.1", 7),
    conv_case(Shape(3, 4, 5, 6), 9, 3, "2=2 4=1 24=2 17=0 16=2 5=1 9=4", 3),
    conv_case(Shape(4, 3, 5, 8), 4, 2, "3=2 4=-233 25=7 26=5 27=9 9=6 -23310=2,0.2,0.5", 2),
    LayerCase({Shape(3, 4, 2, 6), Shape(2, 2, 3, 12)}, "0=4 7=2 28=1 3=2").terms(36),
};
QUOLL_LAYER_CASES(DeconvolutionDepthWise3D, kCases)

TEST(DeconvolutionDepthWise3D, by_hand) {
    const Mat x = mat_of(Shape(1, 1, 2, 2), {1, 2, 3, 4});
    expect_values("DeconvolutionDepthWise3D", "0=2 1=1 21=2 6=4 7=2 5=1",
                  {mat_of(Shape(4), {1, 10, 100, 1000}), mat_of(Shape(2), {0.5f, 0})}, {x},
                  mat_of(Shape(1, 1, 3, 2), {1.5f, 12.5f, 20.5f, 300, 3400, 4000}));
    EXPECT_EQ(nullptr, make_layer("DeconvolutionDepthWise3D", "0=3 1=1 6=3 7=2", {Mat(3)}));
}

namespace {
class LimitedAllocator : public Allocator {
public:
    void* fastMalloc(size_t size) override { return size > 16 << 20 ? nullptr : fast_malloc(size); }
    void fastFree(void* ptr) override { fast_free(ptr); }
};
}  // namespace

// With its border the input has 200 MB, the output that the params ask for 80 values per channel.
TEST(DeconvolutionDepthWise3D, dilated_kernels_take_no_memory_beyond_that_of_the_blobs) {
    LimitedAllocator allocator;
    Option opt;
    opt.blob_allocator = opt.workspace_allocator = &allocator;
    Mat weight(5508), x(6, 5, 17);
    weight.fill(0.5f), x.fill(1.f);
    const char* const params = "0=2 1=9 2=16 6=5508 11=2 15=2 19=8 25=2 26=5 27=8";
    std::vector<Mat> answers[2];
    for (bool reference : {true, false}) {
        const LayerPtr layer =
            make_layer("DeconvolutionDepthWise3D", params, {weight}, 1, 1, reference);
        ASSERT_TRUE(layer != nullptr);
        answers[reference] = run_layer(*layer, {x}, opt);
        ASSERT_EQ(1u, answers[reference].size()) << reference;
    }
    EXPECT_TRUE(nearly_equal(answers[0][0], answers[1][0], Tolerance()));
}

}  // namespace quoll
