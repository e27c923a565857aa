#include <math.h>

#include "layer_test.h"

namespace quoll {

static std::vector<LayerCase> unary() {
    std::vector<LayerCase> all;
    for (int op = 0; op <= 7; op++) {
        const std::string params = "0=" + std::to_string(op) + " 2=0";
        for (DType t : {DType::f32, DType::s32, DType::s8, DType::u8}) {
            const bool floats = op == 4 || op == 5;
            if ((floats && t != DType::f32) || (op == 6 && t != DType::u8) ||
                (op == 7 && t == DType::f32))
                continue;
            for (Shape s : {Shape(19), Shape(5, 8), Shape(5, 3, 16), Shape(3, 2, 2, 4)}) {
                s.dtype = t;
                all.push_back(LayerCase({s}, params).range(op == 6 ? 0 : -9, 9));
            }
        }
    }
    return all;
}
static const std::vector<LayerCase> kUnary = unary();
QUOLL_LAYER_CASES(TensorUnary, kUnary)

static std::vector<LayerCase> casts() {
    std::vector<LayerCase> all;
    for (int to = 0; to <= 6; to++) {
        if (to == 1 || to == 2) continue;  // what the storage tests widen
        for (DType t : {DType::f32, DType::s32, DType::s8, DType::u8}) {
            Shape s(5, 3, 16, t);
            all.push_back(
                LayerCase({s}, "0=" + std::to_string(to)).range(t == DType::u8 ? 0 : -99, 99));
            // A narrow storage type must not change what floats are cut to.
            if (t == DType::f32)
                all.back().fill([](std::vector<Mat>& in) {
                    for (int q = 0; q < in[0].c; q++) {
                        float* p = in[0].channel(q);
                        for (int i = 0; i < in[0].w * in[0].h; i++) p[i] = roundf(p[i]);
                    }
                });
        }
    }
    return all;
}
static const std::vector<LayerCase> kCasts = casts();
QUOLL_LAYER_CASES(CastTo, kCasts)

TEST(TensorUnary, by_hand) {
    const Mat x = mat_of(Shape(4), {-1.5f, 0.5f, 2.5f, -2});
    expect_values("TensorUnary", "0=0", {}, {x}, mat_of(Shape(4), {1.5f, 0.5f, 2.5f, 2}));
    expect_values("TensorUnary", "0=1", {}, {x}, mat_of(Shape(4), {1.5f, -0.5f, -2.5f, 2}));
    expect_values("TensorUnary", "0=2", {}, {x}, mat_of(Shape(4), {-1, 1, 1, -1}));
    expect_values("TensorUnary", "0=3", {}, {x}, mat_of(Shape(4), {-2, 0, 2, -2}));
    expect_values("TensorUnary", "0=7", {}, {mat_of(Shape(2, DType::s32), {0, 5})},
                  mat_of(Shape(2, DType::s32), {-1, -6}));
}

TEST(TensorUnary, special_values) {
    const Mat x = mat_of(Shape(4), {NAN, INFINITY, -INFINITY, 1});
    const struct {
        const char* params;
        int bits;
    } expected[] = {{"0=4", 1}, {"0=5", 6}, {"0=5 1=0", 2}, {"0=5 2=0", 4}};
    for (const auto& e : expected) {
        const std::vector<Mat> got = run_layer(*make_layer("TensorUnary", e.params), {x});
        ASSERT_EQ(1u, got.size());
        for (int i = 0; i < 4; i++)
            EXPECT_EQ(e.bits >> i & 1, ((const unsigned char*)got[0].data)[i]) << e.params;
    }
}

TEST(CastTo, limits_and_wraps) {
    const Mat x = mat_of(Shape(5), {-1.9f, 300, -300, NAN, -3e9f});
    expect_values("CastTo", "0=3", {}, {x},
                  mat_of(Shape(5, DType::s32), {-1, 300, -300, 0, -2147483648.f}));
    expect_values("CastTo", "0=4", {}, {x}, mat_of(Shape(5, DType::s8), {-1, 127, -128, 0, -128}));
    expect_values("CastTo", "0=4", {}, {mat_of(Shape(2, DType::s32), {200, -200})},
                  mat_of(Shape(2, DType::s8), {-56, 56}));
}

}  // namespace quoll
