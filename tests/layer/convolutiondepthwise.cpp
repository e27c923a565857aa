#include <string.h>

#include "conv_case.h"

namespace quoll {

static LayerCase conv(Shape in, int outputs, int group, int kernel, const std::string& more = "") {
    const int terms = in.c / group * kernel * kernel;
    return LayerCase({in}, "0=" + std::to_string(outputs) + " 1=" + std::to_string(kernel) +
                               " 6=" + std::to_string(outputs * terms) +
                               " 7=" + std::to_string(group) + " " + more)
        .terms(terms);
}

static const std::vector<LayerCase> kCases = {
    conv(Shape(9, 7, 1), 1, 1, 1, "5=1"),
    conv(Shape(9, 7, 15), 15, 15, 1, "5=1 9=6 -23310=2,0.2,0.5"),
    conv(Shape(12, 10, 16), 16, 16, 3, "4=1 5=1 9=1"),
    conv(Shape(13, 11, 24), 24, 24, 3, "4=1 3=2 9=2 -23310=1,0.1"),
    conv(Shape(13, 11, 8), 8, 8, 5, "4=2 5=1 9=3 -23310=2,-0.3,0.4"),
    conv(Shape(13, 11, 12), 12, 12, 5, "4=-233 3=2 5=1 9=5"),
    conv(Shape(13, 11, 3), 3, 3, 3, "4=-234 2=2 18=0.5 5=1"),
    conv(Shape(13, 11, 4), 4, 4, 7, "4=3 15=1 14=2 16=0 12=1 13=3 9=4"),
    conv(Shape(37, 5, 16), 16, 16, 3, "4=1 5=1 9=1 18=0.5"),
    conv(Shape(12, 10, 5), 5, 5, 3, "4=1 5=1 9=1"),
    conv(Shape(18, 9, 12), 12, 12, 3, "4=1 3=2"),
    conv(Shape(30, 9, 16), 16, 16, 5, "4=3 15=1 14=0 16=4 18=-0.5"),
    conv(Shape(29, 6, 48), 48, 48, 3, "3=2 4=0 15=1 14=0 16=1 5=1 9=6 -23310=2,0.2,0.5"),
    // Dilated: a window further down may begin with a row further up, as taps above the input are
    // left out. Large enough for two threads.
    conv(Shape(40, 40, 16), 16, 16, 3, "4=1 2=2 5=1"),
    conv(Shape(40, 40, 16), 16, 16, 3, "4=3 2=3 9=1"),
    conv(Shape(33, 47, 32), 32, 32, 5, "4=5 2=3 3=2 5=1"),
    conv(Shape(40, 40, 4), 4, 4, 3, "4=1 2=2 14=5 16=4 5=1"),
    conv(Shape(9, 7, 8), 16, 8, 3, "4=1 5=1"),
    conv(Shape(9, 7, 32), 16, 2, 3, "4=1 5=1 9=1"),
    conv(Shape(9, 7, 6), 9, 3, 2, "5=1"),
    // Several outputs of a channel: one by one or, where steps are large or they are many,
    // together.
    conv(Shape(9, 7, 16), 48, 16, 3, "4=1 3=2 5=1 9=1"),
    conv(Shape(13, 11, 8), 16, 8, 5, "4=2 3=4 5=1"),
    conv(Shape(9, 7, 3), 96, 3, 3, "4=1 5=1 9=4"),
    // Groups of 4 and 8 channels that share registers.
    conv(Shape(19, 11, 32), 32, 8, 3, "4=1 5=1 9=1"),
    conv(Shape(13, 12, 32), 32, 4, 3, "4=1 3=2 5=1 9=4"),
    conv(Shape(9, 8, 16), 16, 2, 5, "4=-233 5=1 9=2 -23310=1,0.1"),
    // Groups of 16 channels: one row or several to a tile, several bands of rows.
    conv(Shape(19, 11, 48), 48, 3, 3, "4=1 5=1 9=1"),
    conv(Shape(41, 9, 32), 32, 2, 3, "4=1 3=2 5=1 9=2 -23310=1,0.1"),
    conv(Shape(75, 60, 32), 32, 2, 3, "4=1 5=1 9=4"),
    conv(Shape(13, 12, 32), 32, 2, 5, "4=-233 13=2 5=1"),
    conv(Shape(12, 9, 32), 32, 2, 2, "5=1 9=6 -23310=2,0.2,0.5"),
    conv(Shape(9, 10, 32), 32, 2, 3, "4=2 14=1 16=3 12=2 5=1"),
    // Numbers of them that do not fill whole steps of a tile unit.
    conv(Shape(9, 7, 104), 104, 13, 3, "4=1 5=1 9=1"),
    conv(Shape(21, 9, 44), 44, 11, 3, "4=1 3=2 5=1"),
    conv(Shape(12, 9, 40), 40, 5, 3, "4=1 2=2 5=1 9=4"),
    conv(Shape(7, 6, 12), 12, 3, 2, "5=1 9=2 -23310=1,0.1"),
    conv(Shape(3, 3, 48), 48, 6, 3, "4=12 2=12 5=1"),
    LayerCase({Shape(20)}, "0=12 1=1 5=1 6=240 9=1").terms(20),
    conv(Shape(14, 11, 48), 32, 2, 3, "4=1 3=2 5=1 18=0.5 9=4"),
    conv(Shape(9, 7, 16), 16, 16, 3, "4=1 5=1 8=1 9=1"),
    conv(Shape(9, 7, 16), 16, 16, 3, "4=1 8=2"),
    conv(Shape(9, 7, 8), 8, 2, 3, "4=1 5=1 8=101").weights("top_blob_int8_scales", 20, 30),
    conv(Shape(9, 7, 8, DType::s8), 8, 8, 3, "4=1 5=1 8=102").range(-127, 127).int8_weights(),
    // Rows joined into words: several of them, apart, beside the input, in small and wide maps.
    conv(Shape(37, 41, 16), 16, 16, 5, "4=2 3=2 5=1 8=1 9=3 -23310=2,-0.3,0.4"),
    conv(Shape(13, 11, 24), 24, 24, 7, "4=3 15=1 14=2 16=0 12=2 13=3 8=1 18=-1.4"),
    conv(Shape(21, 19, 16), 16, 16, 2, "4=-233 3=5 8=1"),
    conv(Shape(70, 9, 8, DType::s8), 8, 8, 3, "4=-234 8=102 18=3").range(-127, 127).int8_weights(),
    conv(Shape(9, 7, 12), 12, 12, 5, "4=2 5=1 8=101 9=4").weights("top_blob_int8_scales", 20, 30),
    conv(Shape(3, 2, 16), 16, 16, 3, "4=1 8=1"),
    conv(Shape(5, 4, 16), 16, 16, 3, "2=3000 4=3000 8=1 5=1"),  // more padding than is worthwhile
    // Zero points, with a weight scale for each channel, however many a group has.
    affine(conv(Shape(9, 7, 16, DType::s8), 16, 16, 3, "4=1 5=1 8=1 26=1 27=-100 9=1")),
    affine(conv(Shape(9, 7, 24, DType::s8), 24, 24, 3, "4=1 3=2 8=101 26=1 27=20 28=-128")),
    affine(conv(Shape(9, 7, 7, DType::s8), 7, 7, 5, "4=2 5=1 8=102 26=1 27=-128 28=127 9=4")),
    affine(conv(Shape(9, 7, 16, DType::s8), 8, 2, 3, "4=1 5=1 8=101 26=1 27=-3 28=5")),
    LayerCase({Shape(9, 8, 8), Shape(3, 3, 1, 8), Shape(8)}, "4=1 5=1 7=8 19=1").terms(9),
    LayerCase({Shape(9, 8, 8), Shape(2, 3, 4, 6)}, "3=2 7=2 19=1 9=1").terms(24),
    // A blob of two axes is one channel.
    LayerCase({Shape(9, 7)}, "0=8 1=1 6=8 5=1 7=1"),
    LayerCase({Shape(9, 7)}, "0=3 1=3 6=27 3=2 4=1 7=1").terms(9),
};
QUOLL_LAYER_CASES(ConvolutionDepthWise, kCases)

TEST(ConvolutionDepthWise, by_hand) {
    const Mat x = mat_of(Shape(2, 1, 2), {1, 2, 3, 4});
    // Each channel has a kernel of its own.
    expect_values("ConvolutionDepthWise", "0=2 1=2 11=1 6=4 7=2 5=1",
                  {mat_of(Shape(4), {1, 10, 100, 1000}), mat_of(Shape(2), {0.5f, 0})}, {x},
                  mat_of(Shape(1, 1, 2), {21.5f, 4300}));
    // Two outputs of each input channel.
    expect_values("ConvolutionDepthWise", "0=4 1=1 6=4 7=2", {mat_of(Shape(4), {1, -1, 2, 0.5f})},
                  {x}, mat_of(Shape(2, 1, 4), {1, 2, -1, -2, 6, 8, 1.5f, 2}));
}

namespace {
class CountingAllocator : public Allocator {
public:
    void* fastMalloc(size_t size) override {
        bytes += size;
        return fast_malloc(size);
    }
    void fastFree(void* ptr) override { fast_free(ptr); }
    size_t bytes = 0;
};
}  // namespace

// A copy of the input for each of them would be sixteen times as large as the input.
TEST(ConvolutionDepthWise, many_outputs_of_a_channel_take_no_copies_of_it) {
    for (const char* params : {"0=48 1=3 3=2 6=432 7=3", "0=48 1=5 3=4 6=1200 7=3"}) {
        const LayerPtr layer = make_layer("ConvolutionDepthWise", params,
                                          {Mat(params[7] == '3' ? 432 : 1200)}, 1, 1, false);
        ASSERT_NE(nullptr, layer);
        CountingAllocator workspace;
        Option opt;
        opt.workspace_allocator = &workspace;
        Mat x(64, 64, 3), y;
        x.fill(1.f);
        ASSERT_EQ(0, layer->forward(x, y, opt));
        EXPECT_LT(workspace.bytes, 2 * x.total() * sizeof(float)) << params;
    }
}

TEST(ConvolutionDepthWise, int8_scales_by_hand) {
    // One weight scale per group: 2 and 4; input scale 10: 3 -> 30.
    expect_values(
        "ConvolutionDepthWise", "0=2 1=1 6=2 7=2 8=1",
        {mat_of(Shape(2), {1.2f, 1.2f}), mat_of(Shape(2), {2, 4}), mat_of(Shape(1), {10})},
        {mat_of(Shape(1, 1, 2), {3, 3})}, mat_of(Shape(1, 1, 2), {3, 3.75f}));
    // One for all groups.
    expect_values("ConvolutionDepthWise", "0=2 1=1 6=2 7=2 8=2",
                  {mat_of(Shape(2), {1.2f, 1.2f}), mat_of(Shape(1), {2}), mat_of(Shape(1), {10})},
                  {mat_of(Shape(1, 1, 2), {3, 1})}, mat_of(Shape(1, 1, 2), {3, 1}));
}

// As programs in C may: forward() uses what came last.
TEST(ConvolutionDepthWise, takes_other_params_and_weights_later) {
    const LayerPtr layer = make_layer("ConvolutionDepthWise", "0=4 1=1 6=4 7=2",
                                      {mat_of(Shape(4), {5, 5, 5, 5})}, 1, 1, false);
    ASSERT_NE(nullptr, layer);
    const Mat x = mat_of(Shape(1, 1, 2), {3, 3});
    EXPECT_EQ(15.f, run_layer(*layer, {x})[0][0]);
    ASSERT_EQ(0, layer->destroy_pipeline(Option()));
    ParamDict pd;
    pd.set(0, 4), pd.set(1, 1), pd.set(6, 4), pd.set(7, 2), pd.set(8, 1);
    ASSERT_EQ(0, layer->load_param(pd));
    Mat weight(4, (size_t)1u);
    memset(weight.data, 10, 4);
    const Mat weights[] = {weight, mat_of(Shape(2), {10, 10}), mat_of(Shape(1), {1})};
    ASSERT_EQ(0, layer->load_model(ModelBinFromMatArray(weights)));
    ASSERT_EQ(0, layer->create_pipeline(Option()));
    EXPECT_EQ(3.f, run_layer(*layer, {x})[0][0]);
}

TEST(ConvolutionDepthWise, refuses_groups_that_do_not_fit) {
    EXPECT_EQ(nullptr, make_layer("ConvolutionDepthWise", "0=3 1=1 6=3 7=2", {Mat(3)}));
    EXPECT_EQ(nullptr, make_layer("ConvolutionDepthWise", "0=2 1=1 6=2 7=0", {Mat(2)}));
    EXPECT_EQ(nullptr,
              make_layer("ConvolutionDepthWise", "0=2 1=1 6=2 7=2 8=3", {Mat(2), Mat(1), Mat(1)}));
    const LayerPtr layer = make_layer("ConvolutionDepthWise", "0=4 1=1 6=4 7=4", {Mat(4)});
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(5, 5, 3)}).empty());
}

}  // namespace quoll
