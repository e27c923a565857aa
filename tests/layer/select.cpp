#include "layer_test.h"
#include "quoll/net.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(1), Shape(5, 3), Shape(5, 3)}, "").range(0, 1, 2).items_not_alone(),
    LayerCase({Shape(1, DType::s32), Shape(5, 3, 16), Shape(4)}, "")
        .range(0, 0, 0)
        .items_not_alone(),
    LayerCase({Shape(1, DType::u8), Shape(5), Shape(2, 3, 8)}, "").range(0, 0, 1).items_not_alone(),
    LayerCase({Shape(1), Shape(5, 3, 16)}, "").range(0, 1, 2).items_not_alone(),
};
QUOLL_LAYER_CASES(Select, kCases)

// Only the branch that is chosen is computed: the other one would fail, since its input is missing.
TEST(Select, leaves_the_other_branch_alone) {
    const char* const text =
        "7767517\n8 10\nInput c 0 1 c\nInput x 0 1 x\nInput missing 0 1 m\n"
        "Split s 1 2 x x0 x1\nAbsVal a 1 1 x0 y\nBinaryOp b 2 1 x1 m z 0=0\n"
        "UnaryOp neg 1 1 z n 0=1\nSelect choice 3 1 c y n out\n";
    Net net;
    ASSERT_EQ(0, net.load_param_mem(text));
    const float none = 0;
    ASSERT_EQ(0, net.load_model((const unsigned char*)&none));
    for (int condition = 0; condition < 2; condition++) {
        for (int given = 0; given < 2; given++) {
            Mat c(1), x(3), m(3), out;
            c.fill((float)condition), x.fill(-2.f), m.fill(5.f);
            Extractor ex = net.create_extractor();
            ASSERT_EQ(0, ex.input("c", c));
            ASSERT_EQ(0, ex.input("x", x));
            if (given) {
                ASSERT_EQ(0, ex.input("m", m));
            }
            const int status = ex.extract("out", out);
            if (!condition && !given) {
                EXPECT_LT(status, 0);
                continue;
            }
            ASSERT_EQ(0, status);
            ASSERT_EQ(3, out.w);
            EXPECT_EQ(condition ? 2.f : -3.f, ((const float*)out)[1]);
        }
    }
}

// The condition is read last where it is chosen.
TEST(Select, chooses_its_condition) {
    const char* const text =
        "7767517\n3 3\nInput x 0 1 x\nAbsVal a 1 1 x y\nSelect choice 3 1 y y x out\n";
    Net net;
    ASSERT_EQ(0, net.load_param_mem(text));
    Mat x(1), out;
    x[0] = -2.f;
    Extractor ex = net.create_extractor();
    ASSERT_EQ(0, ex.input("x", x));
    ASSERT_EQ(0, ex.extract("out", out));
    EXPECT_EQ(2.f, out[0]);
}

TEST(Select, checks_without_a_choice) {
    const char* const text =
        "7767517\n3 3\nInput c 0 1 c\nInput x 0 1 x\nSelect sizes_agree 2 1 c x out\n";
    Net net;
    ASSERT_EQ(0, net.load_param_mem(text));
    for (int condition = 0; condition < 2; condition++) {
        Mat c(1), x(3), out;
        c.fill((float)condition), x.fill(-2.f);
        Extractor ex = net.create_extractor();
        ASSERT_EQ(0, ex.input("c", c));
        ASSERT_EQ(0, ex.input("x", x));
        const int status = ex.extract("out", out);
        EXPECT_EQ(condition != 0, status == 0);
        if (status == 0) {
            EXPECT_EQ(-2.f, out[2]);
        }
    }
}

}  // namespace quoll
