#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(5, 4, 8), Shape(300, 200, 3)}, "-23300=1,60 -23302=1,2 9=-233 10=-233 13=0.5"),
    LayerCase({Shape(5, 4, 8), Shape(300, 200, 3)},
              "-23300=2,30,60 -23301=2,60,90 -23302=2,2,3 9=-233 10=-233 11=32 12=16 13=0.5 8=1"),
    LayerCase({Shape(5, 4, 8)}, "-23300=1,60 -23302=1,2 7=0 9=320 10=240 13=0.5 14=1"),
    LayerCase({Shape(5, 4, 8)}, "-23300=1,60 9=320 10=240 15=1 3=0.3 6=0.4"),
    LayerCase({Shape(5, 4, 8)}, "-23300=2,0.2,0.3 -23302=3,1,2,0.5 9=-233 10=-233 13=0.5 8=1"),
    LayerCase({Shape(5, 4, 8)}, "-23300=1,0.2 9=-233 10=-233 11=0.25 12=0.3"),
};
QUOLL_LAYER_CASES(PriorBox, kCases)

TEST(PriorBox, by_hand) {
    // Centres 25 and 75 of 100; squares of 20 and sqrt(20 * 45) = 30, then 4 by 1 and 1 by 4.
    expect_values(
        "PriorBox", "-23300=1,20 -23301=1,45 -23302=1,4 9=100 10=100 13=0.5", {}, {Mat(2, 1, 1)},
        mat_of(Shape(32, 2),
               {0.15f, 0.4f,  0.35f, 0.6f,  0.1f,  0.35f, 0.4f, 0.65f, 0.05f, 0.45f, 0.45f,
                0.55f, 0.2f,  0.3f,  0.3f,  0.7f,  0.65f, 0.4f, 0.85f, 0.6f,  0.6f,  0.35f,
                0.9f,  0.65f, 0.55f, 0.45f, 0.95f, 0.55f, 0.7f, 0.3f,  0.8f,  0.7f,  0.1f,
                0.1f,  0.2f,  0.2f,  0.1f,  0.1f,  0.2f,  0.2f, 0.1f,  0.1f,  0.2f,  0.2f,
                0.1f,  0.1f,  0.2f,  0.2f,  0.1f,  0.1f,  0.2f, 0.2f,  0.1f,  0.1f,  0.2f,
                0.2f,  0.1f,  0.1f,  0.2f,  0.2f,  0.1f,  0.1f, 0.2f,  0.2f}));
    // MXNet's form: a square of 0.2, and 0.2 times 2 by 1 / 2 for the second ratio.
    expect_values("PriorBox", "-23300=1,0.2 -23302=2,1,4 9=-233 10=-233 13=0.5", {}, {Mat(1, 1, 1)},
                  mat_of(Shape(8), {0.4f, 0.4f, 0.6f, 0.6f, 0.3f, 0.45f, 0.7f, 0.55f}));
}

TEST(PriorBox, refuses_what_does_not_fit) {
    EXPECT_EQ(nullptr, make_layer("PriorBox", "9=100 10=100"));
    EXPECT_EQ(nullptr, make_layer("PriorBox", "-23300=2,1,2 -23301=1,3 9=100 10=100"));
    EXPECT_EQ(nullptr, make_layer("PriorBox", "-23300=1,1 -23302=1,0 9=100 10=100"));
    for (const char* params :
         {"-23300=1,20 10=100", "-23300=1,20 9=100", "-23300=1,20 9=100 10=-233"})
        EXPECT_TRUE(run_layer(*make_layer("PriorBox", params), {Mat(2, 1, 1)}).empty()) << params;
}

}  // namespace quoll
