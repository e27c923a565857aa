#include "layer_test.h"

namespace quoll {

static const std::vector<LayerCase> kCases = {
    LayerCase({Shape(19)}, "0=-1 1=1").range(-8, 8),
    LayerCase({Shape(16)}, "").range(-8, 8),
    LayerCase({Shape(5, 8)}, "0=0 1=6").range(-8, 8),
    LayerCase({Shape(7, 5, 16)}, "0=-0.5").range(-8, 8),
    LayerCase({Shape(3, 5, 12)}, "0=-1 1=1").range(-8, 8),
    LayerCase({Shape(3, 2, 4, 32)}, "").range(-8, 8),
};
QUOLL_LAYER_CASES(Clip, kCases)

TEST(Clip, by_hand) {
    const Mat x = mat_of(Shape(4), {-2, 0, 3, 9});
    expect_values("Clip", "0=-1 1=6", {}, {x}, mat_of(Shape(4), {-1, 0, 3, 6}));
    expect_values("Clip", "", {}, {x}, x);
    // Raised first, then lowered.
    expect_values("Clip", "0=4 1=1", {}, {x}, mat_of(Shape(4), {1, 1, 1, 1}));
}

}  // namespace quoll
