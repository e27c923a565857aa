#include "layer_test.h"

namespace quoll {

static LayerCase deconv(Shape in, int outputs, int group, int kernel,
                        const std::string& more = "") {
    const int terms = in.c / group * kernel * kernel;
    return LayerCase({in}, "0=" + std::to_string(outputs) + " 1=" + std::to_string(kernel) +
                               " 6=" + std::to_string(outputs * terms) +
                               " 7=" + std::to_string(group) + " " + more)
        .terms(terms);
}

static const std::vector<LayerCase> kCases = {
    deconv(Shape(9, 7, 1), 1, 1, 1, "5=1"),
    deconv(Shape(5, 6, 16), 16, 16, 2, "3=2 5=1 9=1"),
    deconv(Shape(5, 6, 8), 8, 8, 4, "3=2 4=1 5=1 9=2 -23310=1,0.1"),
    deconv(Shape(5, 6, 13), 13, 13, 3, "4=1 9=3 -23310=2,-0.3,0.4"),
    deconv(Shape(9, 5, 16), 16, 16, 5, "2=2 12=1 3=4 13=3 5=1"),
    deconv(Shape(9, 5, 8), 8, 8, 4, "2=3 12=2 3=2 13=6 4=1 15=0 14=2 16=3 18=1 9=1 5=1"),
    deconv(Shape(11, 7, 48), 48, 48, 3, "4=1 5=1 9=3 -23310=2,-0.3,0.4"),
    deconv(Shape(4, 3, 12), 12, 12, 2, "3=5 13=3 18=2 19=1 5=1"),
    deconv(Shape(5, 6, 4), 12, 4, 3, "2=2 3=3 4=2 14=1 15=0 16=3 5=1 9=4"),
    deconv(Shape(5, 6, 32), 16, 2, 4, "3=2 4=-233 20=10 21=12 5=1 9=6 -23310=2,0.2,0.5"),
    deconv(Shape(5, 6, 6), 9, 3, 3, "3=2 4=-234 20=10 21=12 18=1 9=5"),
    // A blob of two axes is one channel.
    deconv(Shape(9, 7), 8, 1, 1, "5=1"),
    deconv(Shape(9, 7), 3, 1, 3, "3=2 4=1"),
    deconv(Shape(7, 6, 32), 48, 2, 3, "3=2 4=1 5=1 9=1"),
    // Windows side by side.
    deconv(Shape(7, 4, 24), 16, 1, 1, "5=1"),
    deconv(Shape(7, 4, 48), 32, 2, 2, "3=2 5=1 9=1"),
    deconv(Shape(5, 3, 18), 9, 3, 3, "3=3"),
    LayerCase({Shape(5, 6, 8), Shape(3, 2, 1, 8), Shape(8)}, "3=2 4=1 5=1 7=8 28=1").terms(6),
    LayerCase({Shape(5, 6, 6), Shape(2, 2, 3, 6)}, "4=-233 20=4 21=5 7=2 28=1 9=1").terms(12),
};
QUOLL_LAYER_CASES(DeconvolutionDepthWise, kCases)

TEST(DeconvolutionDepthWise, by_hand) {
    const Mat x = mat_of(Shape(2, 1, 2), {1, 2, 3, 4});
    expect_values("DeconvolutionDepthWise", "0=2 1=2 11=1 6=4 7=2 5=1",
                  {mat_of(Shape(4), {1, 10, 100, 1000}), mat_of(Shape(2), {0.5f, 0})}, {x},
                  mat_of(Shape(3, 1, 2), {1.5f, 12.5f, 20.5f, 300, 3400, 4000}));
    // Groups of two inputs and one output; the dynamic weight is [num_input][outputs of a group].
    const Mat y = mat_of(Shape(1, 1, 4), {1, 2, 3, 4}), k = mat_of(Shape(4), {1, 10, 100, 1000});
    expect_values("DeconvolutionDepthWise", "0=2 1=1 6=4 7=2", {k}, {y},
                  mat_of(Shape(1, 1, 2), {21, 4300}));
    expect_values("DeconvolutionDepthWise", "7=2 28=1", {},
                  {y, mat_of(Shape(1, 1, 1, 4), {1, 10, 100, 1000})},
                  mat_of(Shape(1, 1, 2), {21, 4300}));
}

}  // namespace quoll
