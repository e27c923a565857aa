#include "layer/control/loop.h"

#include "layer_test.h"
#include "quoll/net.h"

namespace quoll {

static const std::vector<LayerCase> kStartCases = {
    LayerCase({Shape(1, DType::s32), Shape(1, DType::u8), Shape(5, 3)}, "").outputs(4),
    LayerCase({Shape(1, DType::s32), Shape(1)}, "").outputs(3),
};
QUOLL_LAYER_CASES(LoopStart, kStartCases)

static const std::vector<LayerCase> kEndCases = {
    LayerCase({Shape(1, DType::s32), Shape(1, DType::u8), Shape(5, 3), Shape(4)},
              "0=1 -23301=1,1 -23302=1,0")
        .outputs(2),
    LayerCase({Shape(1, DType::s32), Shape(1), Shape(5, 3, 2), Shape(1, DType::s32)},
              "0=2 -23301=2,3,0 -23302=2,0,3")
        .outputs(2),
};
QUOLL_LAYER_CASES(LoopEnd, kEndCases)

namespace {

// x doubles `count` times, or until its largest value is above 10; what it was before each time is
// a scan, and so is 3 plus the number of the iteration.
const char* const kDoubling =
    "7767517\n14 21\n"
    "Input count 0 1 count\nInput going 0 1 going\nInput x 0 1 x\n"
    "LoopStart start 3 4 count going x token i c state\n"
    "Split s 1 3 state s0 s1 s2\nCastTo f 1 1 i f 0=0\nBinaryOp three 1 1 f number 0=0 1=1 2=3.0\n"
    "BinaryOp twice 1 1 s0 next 0=2 1=1 2=2.0\nReduction most 1 1 s1 m 0=4 1=1\n"
    "Threshold enough 1 1 m over 0=10.0\nUnaryOp neg 1 1 over minus 0=1\n"
    "BinaryOp not 1 1 minus on 0=0 1=1 2=1.0\n"
    "LoopEnd end 5 3 token on next s2 number last rows numbers 0=2 -23301=2,1,0 -23302=2,0,0 "
    "-23303=1,2\n"
    "Noop none 1 1 c unused\n";

struct Answer {
    int status;
    Mat last, rows, numbers;
};

Answer run_doubling(int count, float going, bool lightmode) {
    Net net;
    net.opt.lightmode = lightmode;
    EXPECT_EQ(0, net.load_param_mem(kDoubling));
    const float none = 0;
    EXPECT_LE(0, net.load_model((const unsigned char*)&none));
    Mat counts, condition(1), x(2);
    counts.create(Shape(1, DType::s32), 1, nullptr);
    *(int32_t*)counts.data = count;
    condition.fill(going);
    ((float*)x.data)[0] = 1.f, ((float*)x.data)[1] = 3.f;
    Extractor ex = net.create_extractor();
    EXPECT_EQ(0, ex.input("count", counts));
    EXPECT_EQ(0, ex.input("going", condition));
    EXPECT_EQ(0, ex.input("x", x));
    Answer a;
    a.status = ex.extract("last", a.last, 1);
    if (a.status == 0) a.status = ex.extract("rows", a.rows, 1);
    if (a.status == 0) a.status = ex.extract("numbers", a.numbers, 1);
    return a;
}

}  // namespace

TEST(Loop, runs_as_often_as_its_count) {
    for (bool lightmode : {true, false}) {
        const Answer a = run_doubling(2, 1.f, lightmode);
        ASSERT_EQ(0, a.status);
        EXPECT_EQ(12.f, ((const float*)a.last)[1]);
        ASSERT_EQ(Shape(2, 2), a.rows.logical_shape());
        const float rows[] = {1, 3, 2, 6};
        EXPECT_EQ(0, memcmp(rows, a.rows.data, sizeof(rows)));
        ASSERT_EQ(Shape(2), a.numbers.logical_shape());
        EXPECT_EQ(4.f, ((const float*)a.numbers)[1]);
    }
}

TEST(Loop, ends_with_its_condition) {
    const Answer a = run_doubling(100, 1.f, true);
    ASSERT_EQ(0, a.status);
    EXPECT_EQ(24.f, ((const float*)a.last)[1]);  // 12 is above 10, and known only afterwards
    EXPECT_EQ(Shape(2, 3), a.rows.logical_shape());
}

TEST(Loop, may_not_run_at_all) {
    for (const Answer& a : {run_doubling(0, 1.f, true), run_doubling(5, 0.f, true)}) {
        ASSERT_EQ(0, a.status);
        EXPECT_EQ(3.f, ((const float*)a.last)[1]);
        EXPECT_EQ(Shape(2, 0), a.rows.logical_shape());
        EXPECT_EQ(Shape(0), a.numbers.logical_shape());
    }
}

TEST(Loop, ends_have_to_fit_their_start) {
    const char* const text =
        "7767517\n6 11\nInput n 0 1 n\nInput going 0 1 going\nInput x 0 1 x\n"
        "LoopStart start 3 4 n going x token i c state\nSplit s 1 2 state s0 s1\n"
        "LoopEnd end 4 2 token c s0 s1 out more\n";
    Net net;
    ASSERT_EQ(0, net.load_param_mem(text));
    const float none = 0;
    ASSERT_LE(0, net.load_model((const unsigned char*)&none));
    Mat n, going(1), x(2), out;
    n.create(Shape(1, DType::s32), 1, nullptr);
    *(int32_t*)n.data = 1;
    going.fill(1.f), x.fill(1.f);
    Extractor ex = net.create_extractor();
    ASSERT_EQ(0, ex.input("n", n));
    ASSERT_EQ(0, ex.input("going", going));
    ASSERT_EQ(0, ex.input("x", x));
    EXPECT_LT(ex.extract("out", out), 0);
}

}  // namespace quoll
