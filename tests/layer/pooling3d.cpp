#include "layer_test.h"

namespace quoll {

static std::vector<LayerCase> cases() {
    std::vector<LayerCase> all;
    for (const char* type : {"0=0 ", "0=1 ", "0=1 6=1 "}) {
        const auto add = [&](Shape in, const std::string& params, double terms) {
            all.push_back(LayerCase({in}, type + params).terms(terms));
        };
        for (const char* mode : {"5=0", "5=1", "5=2", "5=3"}) {
            add(Shape(6, 5, 4, 3), std::string("1=2 2=1 ") + mode, 8);
            add(Shape(7, 6, 5, 16), std::string("1=3 2=2 3=1 ") + mode, 27);
            add(Shape(8, 5, 7, 12), std::string("1=2 11=3 21=4 2=2 22=3 12=1 ") + mode, 24);
        }
        add(Shape(6, 5, 4, 4), "1=3 2=2 3=1 14=0 13=0 15=1 23=1 16=0", 27);
        add(Shape(6, 5, 7, 8), "1=1 21=3 22=2 23=4 16=4", 3);
        add(Shape(6, 5, 7, 8), "1=2 2=1 21=1 22=4 5=2", 4);
        add(Shape(6, 5, 4, 24), "4=1", 120);
        add(Shape(6, 5, 4, 13), "4=1", 120);
        add(Shape(6, 5, 4, 16), "7=1 8=3 18=2 28=5", 36);
        add(Shape(6, 5, 4, 5), "7=1 8=-233 18=2 28=-233", 4);
        add(Shape(6, 5, 3), "1=2 21=1", 4);
    }
    return all;
}
static const std::vector<LayerCase> kCases = cases();
QUOLL_LAYER_CASES(Pooling3D, kCases)

TEST(Pooling3D, by_hand) {
    const Mat x = mat_of(Shape(2, 2, 3, 1), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
    expect_values("Pooling3D", "0=0 1=2 5=1", {}, {x}, mat_of(Shape(1, 1, 2, 1), {8, 12}));
    expect_values("Pooling3D", "0=1 1=2 5=1", {}, {x}, mat_of(Shape(1, 1, 2, 1), {4.5f, 8.5f}));
    // A tail behind, which averages leave out unless asked to count it.
    expect_values("Pooling3D", "0=1 1=2 2=2", {}, {x}, mat_of(Shape(1, 1, 2, 1), {4.5f, 10.5f}));
    expect_values("Pooling3D", "0=1 1=2 2=2 6=1", {}, {x},
                  mat_of(Shape(1, 1, 2, 1), {4.5f, 5.25f}));
    // Slices in front only.
    expect_values("Pooling3D", "0=0 1=1 21=2 23=1 16=0 5=1", {}, {x},
                  mat_of(Shape(2, 2, 3, 1), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
    // SAME pads slices behind in both modes.
    for (const char* mode : {"5=2", "5=3"})
        expect_values("Pooling3D", std::string("0=0 1=1 21=2 ") + mode, {}, {x},
                      mat_of(Shape(2, 2, 3, 1), {5, 6, 7, 8, 9, 10, 11, 12, 9, 10, 11, 12}));
    // Columns are padded, slices cut on both sides.
    expect_values("Pooling3D", "0=0 1=2 11=1 2=1 21=1 22=3 5=2", {}, {x},
                  mat_of(Shape(2, 2, 1, 1), {6, 6, 8, 8}));
    expect_values("Pooling3D", "0=0 1=2 11=1 2=1 21=1 22=3 5=3", {}, {x},
                  mat_of(Shape(2, 2, 1, 1), {5, 6, 7, 8}));
    expect_values("Pooling3D", "0=1 4=1", {}, {x}, mat_of(Shape(1), {6.5f}));
    // Slices 0 to 1 and 1 to 2.
    expect_values("Pooling3D", "0=1 7=1 8=1 28=2", {}, {x},
                  mat_of(Shape(1, 1, 2, 1), {4.5f, 8.5f}));
}

TEST(Pooling3D, refuses_what_does_not_fit) {
    for (const char* params : {"", "0=2 1=2", "1=2 5=4", "1=2 22=0", "7=1", "7=1 8=2 28=0"})
        EXPECT_EQ(nullptr, make_layer("Pooling3D", params)) << params;
    const LayerPtr layer = make_layer("Pooling3D", "1=5 5=1");
    ASSERT_NE(nullptr, layer);
    EXPECT_TRUE(run_layer(*layer, {Mat(6, 6, 4, 1)}).empty());
}

}  // namespace quoll
