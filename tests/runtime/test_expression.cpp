// Size expressions: values, what is refused, and text that is hostile.
#include <climits>
#include <string>

#include <gtest/gtest.h>

#include "layer/common/expression.h"
#include "quoll/log.h"

namespace {

using quoll::Expression;
using quoll::Shape;
typedef std::vector<int> Ints;

const std::vector<Shape> kInputs = {Shape(10, 6, 5), Shape(7, 3, 2, 4)};

// Messages of what is meant to fail go here.
std::string g_message;
struct Messages {
    Messages() {
        g_message.clear();
        quoll::set_log_sink([](quoll::LogLevel, const char* text, void*) { g_message = text; }, 0);
    }
    ~Messages() { quoll::set_log_sink(0, 0); }
};

// One value if parsing (-1000) or evaluating (-2000) fails.
Ints values_of(const std::string& text) {
    Messages messages;
    quoll::Layer layer;
    Expression e;
    Ints values;
    if (e.parse(layer, "expr", text) != 0) return {-1000};
    if (e.evaluate(layer, kInputs, &values) != 0) return {-2000};
    EXPECT_EQ((int)values.size(), e.count());
    return values;
}

TEST(Expression, SizesAndNumbers) {
    EXPECT_EQ(values_of("0w,0h,0d,0c,0n"), Ints({10, 6, 1, 5, 1}));
    EXPECT_EQ(values_of("1w,1h,1d,1c"), Ints({7, 3, 2, 4}));
    EXPECT_EQ(values_of("-1"), Ints({-1}));
    EXPECT_EQ(values_of("5.9,-5.9,1e1,(3)"), Ints({5, -5, 10, 3}));
    EXPECT_EQ(values_of(""), Ints());
}

TEST(Expression, Functions) {
    EXPECT_EQ(values_of("*(0w,0.5),/(0h,3),-1"), Ints({5, 2, -1}));
    EXPECT_EQ(values_of("+(0c,1c),-(0c,1w),*(0w,1w)"), Ints({9, -2, 70}));
    EXPECT_EQ(values_of("/(0w,4),//(0w,4),//(-7,2),//(-7.5,2)"), Ints({2, 2, -3, -4}));
    EXPECT_EQ(values_of("max(2,3.5),min(0w,1w)"), Ints({3, 7}));
    EXPECT_EQ(values_of("ceil(/(0w,4)),floor(/(0w,4)),round(/(0w,4)),trunc(-2.5)"),
              Ints({3, 2, 3, -2}));
    EXPECT_EQ(values_of("neg(0w),abs(-3),sign(-3),square(1d)"), Ints({-10, 3, -1, 4}));
    EXPECT_EQ(values_of("sqrt(16),pow(2,10),exp(0),log10(1000)"), Ints({4, 1024, 1, 3}));
    EXPECT_EQ(values_of("fmod(-7,3),remainder(-7,3)"), Ints({-1, 2}));
    EXPECT_EQ(values_of("and(6,3),or(6,3),xor(6,3),lshift(3,4),rshift(48,4)"),
              Ints({2, 7, 5, 48, 3}));
    // Arithmetic is f32: 10 * 0.7f rounds to 7.
    EXPECT_EQ(values_of("*(0w,0.7)"), Ints({7}));
    EXPECT_EQ(values_of("*(max(/(0w,3),1),+(2,*(3,4)))"), Ints({46}));
}

TEST(Expression, CountsInputsAndValues) {
    quoll::Layer layer;
    Expression e;
    EXPECT_TRUE(e.empty());
    ASSERT_EQ(e.parse(layer, "expr", "+(0w,3h),7"), 0);
    EXPECT_EQ(e.count(), 2);
    EXPECT_EQ(e.input_count(), 4);
}

// "0h//2" is no operator between two numbers; ncnn takes the number in front, which files rely on.
TEST(Expression, ReadsInfixAsNcnn) {
    EXPECT_EQ(values_of("-(0w,3),0h//2,floor(*(0c,0.3))"), values_of("-(0w,3),0,floor(*(0c,0.3))"));
    EXPECT_EQ(values_of("2w*3"), Ints({2}));
    EXPECT_EQ(values_of("-1,0h,ceil(*(2,0.9)),neg(3)"), Ints({-1, values_of("0h")[0], 2, -3}));
}

// Arguments that parentheses do not hold together: ncnn takes terms in their order. The first three
// are what the ncnn wheel reshapes to.
TEST(Expression, TakesArgumentsByOrderAsNcnn) {
    EXPECT_EQ(values_of("abs(-(neg(-90)),60),10"), Ints({30, 10}));
    EXPECT_EQ(values_of("abs(-(neg(-90),60)),10"), Ints({30, 10}));
    EXPECT_EQ(values_of("neg(-(-10),20),10"), Ints({30, 10}));
    EXPECT_EQ(values_of("+(10),20,10"), Ints({30, 10}));
    EXPECT_EQ(values_of("neg(1h,3)"), Ints({-3, 3}));
    EXPECT_EQ(values_of("*(sign(-(neg(1d)),0.5),3)"), Ints({-3}));
}

TEST(Expression, RefusesBadText) {
    for (const char* text :
         {"(",    ")",          ",",    "0w,",    ",0w", "+(1,2", "+(1)", "+(1,2)(3)",   "+(1,2)x",
          "0q",   "00w",        "w",    "foo(1)", "1 2", " 1",    "+1",   "nan",         "inf",
          "1e99", "3000000000", "0x10", "--1",    "()",  "+()",   "1(2)", "and(1.5,2)x", "%(7,4)"})
        EXPECT_EQ(values_of(text), Ints({-1000})) << text;
    EXPECT_EQ(values_of("+(1,2"), Ints({-1000}));
    EXPECT_NE(g_message.find("expr: expected ')' at character 5 of \"+(1,2\""), std::string::npos)
        << g_message;
}

TEST(Expression, RefusesWhatHasNoValue) {
    for (const char* text : {"2w", "//(1,0)", "/(1,0)", "sqrt(-1)", "log(0)", "and(1.5,2)",
                             "lshift(1,31)", "rshift(1,-1)", "*(2000000000,2)", "exp(30)",
                             "square(100000)", "neg(-2147483648)", "trunc(3e9)", "*(3e9,1)"})
        EXPECT_EQ(values_of(text), Ints({-2000})) << text;
    EXPECT_EQ(values_of("2147483647,-2147483648"), Ints({INT_MAX, INT_MIN}));
}

TEST(Expression, BoundsDepthAndLength) {
    const auto nested = [](int depth) {
        std::string text = "1";
        for (int i = 0; i < depth; i++) text = "neg(" + text + ")";
        return text;
    };
    EXPECT_EQ(values_of(nested(Expression::kMaxDepth)), Ints({1}));
    EXPECT_EQ(values_of(nested(Expression::kMaxDepth + 1)), Ints({-1000}));
    EXPECT_EQ(values_of(std::string(Expression::kMaxLength + 1, '1')), Ints({-1000}));
    EXPECT_EQ(values_of(std::string(Expression::kMaxLength, '(')), Ints({-1000}));
}

}  // namespace
