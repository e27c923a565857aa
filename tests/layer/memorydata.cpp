#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({}, "0=19"),
    LayerCase({}, "0=5 1=8 21=0"),
    LayerCase({}, "0=5 1=3 2=16"),
    LayerCase({}, "0=5 1=3 11=2 2=16 21=0"),
    LayerCase({}, ""),
    LayerCase({}, "0=5 1=3 2=16 22=3"),
    LayerCase({}, "0=5 1=3 22=4"),
    LayerCase({}, "0=5 1=3 2=16 21=2 22=4"),
    LayerCase({}, "0=5 1=3 11=2 2=3 21=2 22=5"),
};
QUOLL_LAYER_CASES(MemoryData, kCases)

TEST(MemoryData, integers) {
    const std::vector<float> values = {1, -2, 2147483520.f, 200, 5, 6};
    Mat bits = mat_of(Shape(6, DType::s32), values);
    bits.dtype = DType::f32;  // as a file has them
    const char* const params[] = {"0=1 1=3 2=2 22=3", "0=1 1=3 2=2 22=5"};
    expect_values("MemoryData", params[0], {bits}, {}, mat_of(Shape(1, 3, 2, DType::s32), values));
    const std::vector<Mat> got = run_layer(*make_layer("MemoryData", params[1], {bits}, 0), {});
    ASSERT_EQ(1u, got.size());
    ASSERT_EQ(Shape(1, 3, 2, DType::u8), got[0].logical_shape());
    EXPECT_EQ(200, ((const unsigned char*)got[0].channel(1).data)[0]);
    EXPECT_EQ(nullptr, make_layer("MemoryData", "0=6 22=3 21=0", {bits}));
    EXPECT_EQ(nullptr, make_layer("MemoryData", "0=6 22=1", {bits}));
}

TEST(MemoryData, bytes) {
    Mat bytes(Shape(6, DType::s8));
    for (int i = 0; i < 6; i++) ((signed char*)bytes.data)[i] = (signed char)(i * 50);
    const std::vector<Mat> got =
        run_layer(*make_layer("MemoryData", "0=3 1=2 21=2 22=5", {bytes}, 0), {});
    ASSERT_EQ(1u, got.size());
    ASSERT_EQ(Shape(3, 2, DType::u8), got[0].logical_shape());
    EXPECT_EQ(250, ((const unsigned char*)got[0].data)[5]);
    for (const char* params : {"0=6 21=2", "0=6 21=2 22=3"})
        EXPECT_EQ(nullptr, make_layer("MemoryData", params, {bytes})) << params;
}

TEST(MemoryData, by_hand) {
    const Mat data = mat_of(Shape(6), {1, 2, 3, 4, 5, 6});
    expect_values("MemoryData", "0=1 1=3 2=2", {data}, {},
                  mat_of(Shape(1, 3, 2), {1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(nullptr, make_layer("MemoryData", "0=65536 1=65536 2=65536", {data}));
    EXPECT_EQ(nullptr, make_layer("MemoryData", "0=-1", {data}));
}

}  // namespace quoll
