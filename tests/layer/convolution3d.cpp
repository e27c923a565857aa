#include <algorithm>

#include "conv_case.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    conv_case(Shape(5, 4, 6, 1), 1, 1, "5=1"),
    conv_case(Shape(5, 4, 3, 16), 24, 1, "5=1 9=1"),
    conv_case(Shape(6, 7, 5, 8), 16, 3, "4=1 5=1 9=2 -23310=1,0.1"),
    conv_case(Shape(7, 6, 8, 13), 7, 2, "3=2 4=1 24=0 17=2 16=2 5=1 18=0.5 9=4"),
    conv_case(Shape(9, 8, 7, 4), 8, 3, "2=2 4=-233 9=6 -23310=2,0.2,0.5"),
    conv_case(Shape(8, 6, 10, 4), 12, 2, "3=2 13=1 23=3 4=-234 5=1 9=5"),
    conv_case(Shape(5, 6, 7, 16), 16, 3, "4=2 22=2 12=1 18=-1 9=3 -23310=2,-0.3,0.4"),
    // By Winograd's algorithm: windows of three slices, and of every other slice.
    conv_case(Shape(8, 9, 3, 32), 16, 3, "4=1 5=1 9=1").error_growth(20),
    conv_case(Shape(8, 8, 5, 16), 16, 3, "4=1 23=2 5=1 9=4").error_growth(20),
    conv_case(Shape(8, 9, 3, 50), 36, 3, "4=1 5=1 9=1").error_growth(20),
    // int8 products, in packs that fill registers and that do not, rounded outputs, zero points.
    conv_case(Shape(6, 7, 5, 16), 32, 3, "4=1 5=1 8=1 9=1"),
    conv_case(Shape(7, 6, 8, 13), 7, 2, "3=2 4=1 24=0 17=2 16=2 5=1 8=1 18=0.5 9=4"),
    conv_case(Shape(9, 8, 7, 32), 24, 3, "2=2 22=1 4=-233 8=1 9=6 -23310=2,0.2,0.5"),
    conv_case(Shape(8, 6, 10, 5), 3, 2, "3=2 13=1 23=3 4=-234 8=101 5=1")
        .weights("top_blob_int8_scales", 20, 30),
    LayerCase({Shape(6, 5, 4, 8), Shape(6, 5, 4, 16)}, "0=16 1=3 4=1 5=1 6=3456 8=1 9=1 29=1")
        .terms(216),
    affine(conv_case(Shape(6, 7, 5, 16, DType::s8), 24, 3, "4=1 5=1 8=1 26=1 27=-100 9=1")),
    int16(conv_case(Shape(6, 7, 5, 4), 8, 3, "4=1 5=1 8=1 26=3 9=1")),
    affine(conv_case(Shape(7, 5, 6, 3, DType::s8), 16, 3, "4=1 3=2 5=1 8=101 26=1 27=7 28=-128")),
    LayerCase({Shape(6, 5, 4, 4)}, "0=8 1=3 11=2 21=1 6=192 4=1 24=0 5=1").terms(24),
    // Of bf16 by planes: the depth as rows, slices every other, what is added of other sizes.
    LayerCase({Shape(5, 4, 6, 16)}, "0=16 1=1 21=3 24=1 23=2 6=768 5=1 9=1").terms(48),
    // Slices so large that each of a window is laid out by itself.
    LayerCase({Shape(15, 14, 4, 512)}, "0=8 1=1 21=3 24=1 6=12288 5=1 9=1").terms(1536),
    // Few channels, the rows of whose slices alternate.
    conv_case(Shape(21, 18, 6, 3), 24, 3, "3=2 4=1 23=1 5=1 9=1"),
    LayerCase({Shape(17, 19, 5, 3)}, "0=16 1=7 21=3 3=2 13=1 23=2 4=3 24=1 6=7056 5=1").terms(441),
    LayerCase({Shape(13, 12, 4, 2), Shape(13, 12, 3, 8)}, "0=8 1=5 21=2 4=2 24=0 6=800 9=1 29=1")
        .terms(101),
    LayerCase({Shape(7, 6, 5, 16)}, "0=16 1=3 21=1 23=2 4=1 24=0 6=2304 5=1").terms(144),
    LayerCase({Shape(6, 5, 4, 8), Shape(6, 5, 4, 16)}, "0=16 1=3 4=1 6=3456 9=1 29=1").terms(216),
    LayerCase({Shape(6, 5, 4, 8), Shape(1, 1, 1, 16)}, "0=16 1=3 4=1 6=3456 9=1 29=1").terms(216),
    LayerCase({Shape(6, 5, 4, 8), Shape(6, 5, 4, 16)}, "0=16 1=1 6=128 5=1 29=1").terms(9),
    LayerCase({Shape(6, 5, 3)}, "0=4 1=3 11=3 21=1 6=108 4=1 24=0").terms(27),
    LayerCase({Shape(9, 8, 6, 6), Shape(2, 3, 3, 24), Shape(4)}, "0=4 3=2 5=1 19=1 9=1").terms(108),
};
QUOLL_LAYER_CASES(Convolution3D, kCases)

TEST(Convolution3D, by_hand) {
    const Mat x = mat_of(Shape(2, 2, 2, 1), {1, 2, 3, 4, 5, 6, 7, 8});
    const Mat corners = mat_of(Shape(8), {1, 0, 0, 0, 0, 0, 0, 10});
    expect_values("Convolution3D", "0=1 1=2 6=8", {corners}, {x}, mat_of(Shape(1, 1, 1, 1), {81}));
    // One axis at a time: the kernel is [d][h][w].
    const Mat pair = mat_of(Shape(2), {1, 10});
    expect_values("Convolution3D", "0=1 1=2 11=1 21=1 6=2", {pair}, {x},
                  mat_of(Shape(1, 2, 2, 1), {21, 43, 65, 87}));
    expect_values("Convolution3D", "0=1 1=1 11=2 21=1 6=2", {pair}, {x},
                  mat_of(Shape(2, 1, 2, 1), {31, 42, 75, 86}));
    expect_values("Convolution3D", "0=1 1=1 11=1 21=2 6=2", {pair}, {x},
                  mat_of(Shape(2, 2, 1, 1), {51, 62, 73, 84}));
    // SAME_LOWER pads columns and rows before, slices behind.
    expect_values("Convolution3D", "0=1 1=2 11=1 21=1 6=2 4=-234", {pair}, {x},
                  mat_of(Shape(2, 2, 2, 1), {10, 21, 30, 43, 50, 65, 70, 87}));
    for (const char* same : {"4=-233", "4=-234"})
        expect_values("Convolution3D", std::string("0=1 1=1 11=1 21=2 6=2 ") + same, {pair}, {x},
                      mat_of(Shape(2, 2, 2, 1), {51, 62, 73, 84, 5, 6, 7, 8}));
    // A slice of 100 in front, none behind.
    expect_values("Convolution3D", "0=1 1=1 21=2 6=2 24=1 17=0 18=100", {pair}, {x},
                  mat_of(Shape(2, 2, 2, 1), {110, 120, 130, 140, 51, 62, 73, 84}));
}

TEST(Convolution3D, zero_points_by_hand) {
    // Steps of 0.5 (x) and 0.25 (w) around the zero point 3, which is what the padding holds; taps
    // in depth, as the same pair of Convolution1D in width.
    Mat weight(2, (size_t)1u);
    ((signed char*)weight.data)[0] = 1, ((signed char*)weight.data)[1] = -2;
    const std::vector<Mat> weights = {weight, mat_of(Shape(1), {4}), mat_of(Shape(1), {2})};
    const Mat x = mat_of(Shape(1, 1, 2, 1, DType::s8), {-128, 127});
    expect_values("Convolution3D", "0=1 1=1 11=1 21=2 24=1 6=2 8=1 26=1 27=3", weights, {x},
                  mat_of(Shape(1, 1, 3, 1), {32.75f, -47.375f, 15.5f}));
}

namespace {
class LargestAllocator : public Allocator {
public:
    void* fastMalloc(size_t size) override {
        largest = std::max(largest, size);
        return fast_malloc(size);
    }
    void fastFree(void* ptr) override { fast_free(ptr); }
    size_t largest = 0;
};
}  // namespace

// In bf16 a window at a time, where none share slices.
TEST(Convolution3D, windows_of_other_slices_take_no_copy_of_the_input) {
    LargestAllocator workspace;
    Option opt;
    opt.use_bf16_storage = true;
    // These take other copies.
    opt.use_winograd_convolution = opt.use_packing_layout = false;
    const LayerPtr layer =
        make_layer("Convolution3D", "0=16 1=3 21=2 23=2 6=4608", {Mat(4608)}, 1, 1, false, opt);
    ASSERT_NE(nullptr, layer);
    opt.workspace_allocator = &workspace;
    Mat x(16, 16, 32, 16), y;
    x.fill(1.f);
    ASSERT_EQ(0, layer->forward(x, y, opt));
    EXPECT_LT(workspace.largest, x.total() * sizeof(float) / 2);
}

TEST(Convolution3D, refuses_what_does_not_fit) {
    EXPECT_EQ(nullptr, make_layer("Convolution3D", "0=2 1=3 6=53", {Mat(53)}));
    EXPECT_EQ(nullptr, make_layer("Convolution3D", "0=2 1=1 21=0 6=2", {Mat(2)}));
    EXPECT_EQ(nullptr, make_layer("Convolution3D", "0=2 1=2000000 6=2", {Mat(2)}));
    const LayerPtr layer = make_layer("Convolution3D", "0=2 1=3 6=108", {Mat(108)});
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(5, 5, 5, 3)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(5, 5, 2, 2)}).empty());
}

}  // namespace quoll
