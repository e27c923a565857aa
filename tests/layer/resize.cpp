#include "layer_test.h"

namespace quoll {

static std::vector<LayerCase> resizes() {
    std::vector<LayerCase> all;
    const char* const sizes[] = {" -23309=2,1,2 -23311=2,5,9", " -23309=1,-1 -23310=1,0.6",
                                 " -23309=2,-1,-2 -23310=2,1.5,2.0"};
    for (int mode = 0; mode <= 2; mode++)
        for (int transform = 0; transform <= 6; transform++)
            for (const char* s : sizes) {
                std::string params =
                    "0=" + std::to_string(mode) + " 1=" + std::to_string(transform) + s;
                const bool one = s[8] == '1';
                if (transform == 4)
                    params += one ? " -23312=2,0.1,1.2" : " -23312=4,0.1,0.0,0.8,1.2";
                all.push_back(LayerCase({Shape(7, 6, 3)}, params).terms(16));
            }
    // On blocks of channels, with one axis or both, up and down; rows of two axes.
    for (const char* how :
         {"0=0", "0=0 1=3 2=2", "0=1", "0=1 1=2", "0=2 1=3", "0=1 6=1", "0=2 4=1"})
        for (const char* s : {" -23309=2,1,2 -23311=2,13,15", " -23309=2,1,2 -23311=2,4,15",
                              " -23309=1,1 -23311=1,11", " -23309=1,2 -23310=1,2.0"})
            for (const Shape& x : {Shape(7, 6, 16), Shape(7, 6, 3, 4)})
                all.push_back(LayerCase({x}, std::string(how) + s).terms(16));
    all.push_back(LayerCase({Shape(9, 16)}, "0=1 -23309=1,1 -23311=1,21").terms(4));
    all.push_back(LayerCase({Shape(9, 16, DType::u8)}, "-23309=1,1 -23311=1,21"));
    for (const char* more : {"0=1 6=1", "0=2 6=1", "0=2 4=1", "0=0 2=1 7=1", "0=0 2=2", "0=0 2=3"})
        all.push_back(LayerCase({Shape(7, 6, 3)}, std::string(more) + sizes[0]).terms(32));
    all.push_back(LayerCase({Shape(7, 6, 3, DType::s32)}, std::string("0=0") + sizes[0]));
    all.push_back(LayerCase({Shape(7, 6), Shape(2)}, "0=1 8=2").range(1, 0.5f, 2.f).terms(4));
    all.push_back(LayerCase({Shape(7, 6), Shape(4), Shape(2, DType::s32)}, "0=1 1=4 8=5")
                      .range(2, 1, 9)
                      .terms(4));
    return all;
}
static const std::vector<LayerCase> kResize = resizes();
QUOLL_LAYER_CASES(Resize, kResize)

TEST(Resize, by_hand) {
    const Mat x = mat_of(Shape(4), {1, 2, 3, 4});
    expect_values("Resize", "-23311=1,8", {}, {x}, mat_of(Shape(8), {1, 1, 2, 2, 3, 3, 4, 4}));
    expect_values("Resize", "0=1 -23310=1,2.0", {}, {x},
                  mat_of(Shape(8), {1, 1.25f, 1.75f, 2.25f, 2.75f, 3.25f, 3.75f, 4}));
    expect_values("Resize", "0=1 1=2 -23311=1,7", {}, {x},
                  mat_of(Shape(7), {1, 1.5f, 2, 2.5f, 3, 3.5f, 4}));
    expect_values("Resize", "0=1 1=4 5=9.0 -23311=1,2 -23312=2,0.5,1.5", {}, {x},
                  mat_of(Shape(2), {2.5f, 9}));
    // The triangle of half the height over four values.
    expect_values("Resize", "0=1 6=1 -23310=1,0.5", {}, {mat_of(Shape(4), {0, 8, 0, 0})},
                  mat_of(Shape(2), {3, 1}));
}

}  // namespace quoll
