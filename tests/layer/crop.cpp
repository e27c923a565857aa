#include "layer_test.h"

namespace quoll {

// Input 1 holds offsets and sizes.
static LayerCase by_values(Shape in, std::vector<int> values) {
    return LayerCase({in, Shape((int)values.size(), DType::s32)}, "0=-233")
        .fill([values](std::vector<Mat>& inputs) {
            for (size_t i = 0; i < values.size(); i++) ((int*)inputs[1].data)[i] = values[i];
        });
}

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(19)}, "0=3 3=8"),
    LayerCase({Shape(32)}, "0=8 3=-233"),
    LayerCase({Shape(9, 16)}, "1=4 3=-233 4=8"),
    LayerCase({Shape(9, 7, 32)}, "2=16 3=9 4=7 5=16"),
    LayerCase({Shape(9, 7, 32)}, "0=1 1=2 3=6 4=5 5=-233"),
    LayerCase({Shape(9, 7, 16)}, "0=1 1=2 2=4 3=-233 4=-233 5=-233 6=3 7=1 8=4"),
    LayerCase({Shape(5, 4, 3, 16)}, "0=1 1=1 13=1 2=8 3=3 4=-233 14=-233 5=8 7=1"),
    LayerCase({Shape(20)}, "-23309=1,5 -23310=1,-3"),
    LayerCase({Shape(9, 7, 32)}, "-23309=1,16 -23310=1,-233 -23311=1,0"),
    LayerCase({Shape(9, 7, 24)}, "-23309=2,8,-5 -23310=2,16,-1 -23311=2,0,2"),
    LayerCase({Shape(9, 7, 24)}, "-23309=3,3,0,1 -23310=3,9,0,99"),
    LayerCase({Shape(5, 4, 3, 16)}, "-23309=2,1,-8 -23310=2,3,-4 -23311=2,1,-4"),
    LayerCase({Shape(9, 7, 32)}, "19=\"0,2\" 20=\"/(0c,2),-2\" 21=\"0,1\""),
    LayerCase({Shape(9, 7, 32), Shape(4, 3)}, "19=\"1,-233\" 20=\"1h,1w\" 21=\"1,2\""),
    LayerCase({Shape(9, 7, 16), Shape(4, 3, 8)}, "0=1 1=2 2=4"),
    LayerCase({Shape(9, 7, 16), Shape(4, 3)}, "0=1 1=2"),
    LayerCase({Shape(9, 16), Shape(4, 8)}, "0=1 1=4"),
    LayerCase({Shape(9), Shape(4, 8)}, "0=1"),
    LayerCase({Shape(5, 4, 3, 16), Shape(4, 3, 2, 4)}, "0=1 1=1 13=1 2=4"),
    LayerCase({Shape(5, 4, 3, 16), Shape(4, 3)}, "0=1 1=1 13=1"),
    by_values(Shape(9, 7, 16), {2, 1, 4, 3, 2, 8}),
    by_values(Shape(9, 16), {2, 8, 0, 3, 8, 0}),
    by_values(Shape(9), {2, 0, 0, 7, 0, 0}),
    by_values(Shape(5, 4, 3, 16), {1, 1, 1, 4, 2, 2, 2, 8}),
    LayerCase({Shape(9, 7, 16, DType::s8)}, "0=1 1=2 2=4 3=5 4=4 5=8").range(-127, 127),
    LayerCase({Shape(9, 7, 16)}, "3=9 4=7 5=16"),
};
QUOLL_LAYER_CASES(Crop, kCases)

TEST(Crop, by_hand) {
    const Mat x = mat_of(Shape(3, 2), {1, 2, 3, 4, 5, 6});
    expect_values("Crop", "0=1 3=2 4=1", {}, {x}, mat_of(Shape(2, 1), {2, 3}));
    expect_values("Crop", "3=-233 4=-233 6=1", {}, {x}, mat_of(Shape(2, 2), {1, 2, 4, 5}));
    expect_values("Crop", "-23309=2,-1,1 -23310=2,-233,3", {}, {x}, mat_of(Shape(2, 1), {5, 6}));
    // An end of 0 is the end; beyond the end is the end.
    expect_values("Crop", "-23309=1,1 -23310=1,0 -23311=1,1", {}, {x},
                  mat_of(Shape(2, 2), {2, 3, 5, 6}));
    expect_values("Crop", "-23309=1,-99 -23310=1,99 -23311=1,-1", {}, {x}, x);
    expect_values("Crop", "0=1 1=1", {}, {x, Mat(2)}, mat_of(Shape(2, 1), {5, 6}));
    expect_values("Crop", "0=-233", {}, {x, mat_of(Shape(6, DType::s32), {2, 0, 9, 1, 2, 9})},
                  mat_of(Shape(1, 2), {3, 6}));
}

TEST(Crop, refuses_what_does_not_fit) {
    for (const char* params :
         {"0=9 3=1 4=1", "0=-1 3=1 4=1", "3=1", "0=2 3=-233 4=1 6=1", "-23309=1,2 -23310=1,1",
          "-23309=1,1 -23310=1,2 -23311=1,2", "-23309=1,1", "-23309=2,0,0 -23310=1,1",
          "-23309=3,0,0,0 -23310=3,1,1,1", "19=\"0\" 20=\"1w\"", "19=\"0\" 20=\"+(\""}) {
        const LayerPtr layer = make_layer("Crop", params);
        EXPECT_TRUE(!layer || run_layer(*layer, {Mat(3, 2)}).empty()) << params;
    }
    const LayerPtr layer = make_layer("Crop", "0=-233", {}, 2);
    EXPECT_TRUE(run_layer(*layer, {Mat(3, 2), Mat(6)}).empty());
    EXPECT_TRUE(run_layer(*layer, {Mat(3, 2), Mat(Shape(4, DType::s32))}).empty());
    const Mat hostile = mat_of(Shape(6, DType::s32), {2147483520, 0, 0, 2147483520, 1, 1});
    EXPECT_TRUE(run_layer(*layer, {Mat(3, 2), hostile}).empty());
}

}  // namespace quoll
