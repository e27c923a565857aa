#include "layer_test.h"

namespace quoll {

static const DType s32 = DType::s32;

static LayerCase gather(Shape data, Shape indices, const std::string& params, int size) {
    return LayerCase({data, indices}, params).range(1, (float)-size, (float)size - 1);
}

static const std::vector<LayerCase> kGather = {
    gather(Shape(7), Shape(3, s32), "", 7),
    gather(Shape(5, 4), Shape(2, 3, s32), "0=1", 5),
    gather(Shape(3, 5, 8), Shape(6, s32), "0=0", 8),
    gather(Shape(3, 5, 4), Shape(1, s32), "0=-2 1=1", 5),
    gather(Shape(3, 5, 2, 4, DType::s8), Shape(4, s32), "0=-1", 3),
    // Parts of 7 of a channel's 7 or 21 values; one run that is all of the output.
    gather(Shape(1, 5, 3), Shape(7, s32), "0=1", 5),
    gather(Shape(2, 5, 3), Shape(7, 3, s32), "0=1", 5),
    gather(Shape(5), Shape(3, 1, 2, s32), "", 5),
    gather(Shape(3, 1, 2, 4), Shape(1, s32), "0=0 1=1", 4),
};
QUOLL_LAYER_CASES(Gather, kGather)

static const std::vector<LayerCase> kGatherElements = {
    gather(Shape(7), Shape(3, s32), "", 7),
    gather(Shape(5, 4, DType::s8), Shape(5, 9, s32), "0=0", 4),
    gather(Shape(3, 5, 8), Shape(2, 6, 8, s32), "0=1", 5),
    gather(Shape(3, 5, 2, 4), Shape(9, 5, 2, 3, s32), "0=-1", 3),
};
QUOLL_LAYER_CASES(GatherElements, kGatherElements)

static const std::vector<LayerCase> kGatherND = {
    gather(Shape(7), Shape(1, 3, s32), "", 7),
    gather(Shape(5, 4), Shape(2, 3, s32), "", 4),
    gather(Shape(5, 4, 3), Shape(2, 6, s32), "", 3),
    gather(Shape(5, 4, 3), Shape(1, 2, 3, s32), "0=1", 4),
};
QUOLL_LAYER_CASES(GatherND, kGatherND)

static LayerCase compress(Shape data, int size, const std::string& params) {
    return LayerCase({data, Shape(size, DType::u8)}, params).range(1, 0, 1);
}
static const std::vector<LayerCase> kCompress = {
    compress(Shape(9), 9, ""),
    compress(Shape(5, 4), 3, "0=0"),
    compress(Shape(5, 4, 3), 60, ""),
    compress(Shape(5, 4, 3), 4, "0=-2"),
};
QUOLL_LAYER_CASES(Compress, kCompress)

TEST(Gather, by_hand) {
    const Mat x = mat_of(Shape(2, 3), {1, 2, 3, 4, 5, 6});
    expect_values("Gather", "", {}, {x, mat_of(Shape(2, s32), {2, -3})},
                  mat_of(Shape(2, 2), {5, 6, 1, 2}));
    expect_values("Gather", "0=1 1=1", {}, {x, mat_of(Shape(1, s32), {-1})},
                  mat_of(Shape(3), {2, 4, 6}));
}

TEST(GatherElements, by_hand) {
    const Mat x = mat_of(Shape(2, 2), {1, 2, 3, 4});
    expect_values("GatherElements", "0=1", {}, {x, mat_of(Shape(2, 2, s32), {0, 0, 1, 0})},
                  mat_of(Shape(2, 2), {1, 1, 4, 3}));
}

TEST(GatherND, by_hand) {
    const Mat x = mat_of(Shape(2, 2, 2), {0, 1, 2, 3, 4, 5, 6, 7});
    expect_values("GatherND", "", {}, {x, mat_of(Shape(2, 2, s32), {0, 1, 1, 0})},
                  mat_of(Shape(2, 2), {2, 3, 4, 5}));
    expect_values("GatherND", "0=1", {}, {x, mat_of(Shape(1, 2, s32), {1, 0})},
                  mat_of(Shape(2, 2), {2, 3, 4, 5}));
}

TEST(Compress, by_hand) {
    const Mat x = mat_of(Shape(2, 3), {1, 2, 3, 4, 5, 6});
    Mat keep(Shape(3, DType::u8));
    keep.fill<unsigned char>(1);
    ((unsigned char*)keep.data)[0] = 0;
    expect_values("Compress", "0=0", {}, {x, keep}, mat_of(Shape(2, 2), {3, 4, 5, 6}));
    expect_values("Compress", "", {}, {x, keep}, mat_of(Shape(2), {2, 3}));
    // What a longer condition says of parts that are not there.
    expect_values("Compress", "0=1", {}, {x, keep}, mat_of(Shape(1, 3), {2, 4, 6}));
}

}  // namespace quoll
