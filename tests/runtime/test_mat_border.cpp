// copy_make_border and copy_cut_border against ncnn and, for every pack, dtype and batch, against
// index arithmetic.
#include <gtest/gtest.h>
#include <stdint.h>

#include "mat_helpers.h"
#include "pixel_cases.h"

using namespace quoll;

namespace {

struct Sides {
    int top, bottom, left, right, front, behind;
};

Shape shape_of(int dims, DType t) {
    return dims == 1   ? Shape(48, t)
           : dims == 2 ? Shape(5, 48, t)
           : dims == 3 ? Shape(5, 4, 48, t)
                       : Shape(5, 4, 3, 48, t);
}

// The index that an index of the grown axis reads; -1: the constant.
int source_index(int i, int before, int size, int type) {
    i -= before;
    if (i >= 0 && i < size) return i;
    if (type == BORDER_CONSTANT) return -1;
    if (type == BORDER_REPLICATE) return i < 0 ? 0 : size - 1;
    while (i < 0 || i >= size) i = i < 0 ? -i : 2 * (size - 1) - i;
    return i;
}

// The scalar with value 3 of a dtype.
void three(DType t, unsigned char* out) {
    const float f = 3.f;
    const int32_t i = 3;
    const unsigned short half = 0x4200, brain = 0x4040;
    const unsigned char byte = 3;
    memcpy(out,
           t == DType::f32    ? (const void*)&f
           : t == DType::s32  ? &i
           : t == DType::f16  ? &half
           : t == DType::bf16 ? (const void*)&brain
                              : &byte,
           dtype_size(t));
}

// Checks a grown Mat scalar by scalar.
void expect_border(const Mat& src, const Mat& dst, const Sides& s, int type) {
    const Shape from = src.logical_shape(), to = dst.logical_shape();
    const int top = src.dims > 1 ? s.top : 0, bottom = src.dims > 1 ? s.bottom : 0;
    const int fd = src.dims == 4 ? s.front : 0, fc = src.dims == 3 ? s.front : 0;
    ASSERT_EQ(to.w, from.w + s.left + s.right);
    ASSERT_EQ(to.h, from.h + top + bottom);
    ASSERT_EQ(to.d, from.d + (src.dims == 4 ? s.front + s.behind : 0));
    ASSERT_EQ(to.c, from.c + (src.dims == 3 ? s.front + s.behind : 0));
    ASSERT_EQ(to.n, from.n);
    const size_t size = dtype_size(from.dtype);
    int wrong = 0;
    for_each_index(to, [&](int b, int c, int d, int h, int w) {
        const int q = source_index(c, fc, from.c, type), z = source_index(d, fd, from.d, type);
        const int y = source_index(h, top, from.h, type), x = source_index(w, s.left, from.w, type);
        unsigned char want[4];
        if (q < 0 || z < 0 || y < 0 || x < 0)
            three(from.dtype, want);
        else
            memcpy(want, scalar_at(src, b, q, z, y, x), size);
        wrong += memcmp(want, scalar_at(dst, b, c, d, h, w), size) != 0;
    });
    ASSERT_EQ(0, wrong);
}

const Sides kSides[] = {{1, 2, 3, 0, 2, 1}, {0, 0, 4, 4, 0, 0}, {8, 4, 0, 1, 4, 8},
                        {3, 1, 1, 3, 0, 2}, {0, 0, 0, 0, 0, 0}, {16, 0, 16, 0, 16, 0}};

bool reflects(const Shape& s, const Sides& b) {
    return b.left < s.w && b.right < s.w && (s.dims < 2 || (b.top < s.h && b.bottom < s.h)) &&
           (s.dims != 3 || (b.front < s.c && b.behind < s.c)) &&
           (s.dims != 4 || (b.front < s.d && b.behind < s.d));
}

}  // namespace

TEST(MatBorder, AgreesWithNcnn) {
    for (const PixelCase& c : pixel_cases("copy_")) {
        Mat m = c.given.mat();
        const std::vector<int>& p = c.params;
        if (c.op == "copy_make_border_3d")
            copy_make_border_3d(m, m, p[0], p[1], p[2], p[3], p[4], p[5], p[6], 7.f);
        else
            copy_cut_border(m, m, p[0], p[1], p[2], p[3]);
        expect_result(m, c.expected, 0.f, c.name());
    }
}

TEST(MatBorder, EveryDimsPackTypeAndBatch) {
    Option opt;
    opt.num_threads = 2;
    for (int dims = 1; dims <= 4; dims++) {
        for (int pack : {1, 3, 4, 8, 16}) {
            Shape shape = shape_of(dims, pack == 3 ? DType::s8 : DType::f32);
            shape.n = pack == 4 ? 2 : 1;
            const Mat src = random_bytes(shape, pack, pack);
            for (const Sides& s : kSides) {
                for (int type = 0; type < 3; type++) {
                    if (type == BORDER_REFLECT && !reflects(shape, s)) continue;
                    Mat dst;
                    copy_make_border_3d(src, dst, s.top, s.bottom, s.left, s.right, s.front,
                                        s.behind, type, 3.f, opt);
                    ASSERT_NO_FATAL_FAILURE(expect_border(src, dst, s, type))
                        << dims << " axes, pack " << pack << ", type " << type;
                    const int outer = dst.logical_shape().size(0);
                    ASSERT_EQ(dst.elempack, outer % pack ? 1 : pack);
                    if (dims > 1) {  // cutting the border off gives the source again
                        copy_cut_border_3d(dst, dst, s.top, s.bottom, s.left, s.right, s.front,
                                           s.behind, opt);
                        ASSERT_EQ(0, count_differences(src, dst));
                    }
                }
            }
        }
    }
}

TEST(MatBorder, EveryDType) {
    for (DType t : {DType::f32, DType::f16, DType::bf16, DType::s32, DType::s8, DType::u8}) {
        const Mat src = random_bytes(shape_of(3, t), 4, 7);
        Mat dst;
        copy_make_border(src, dst, 1, 1, 2, 2, BORDER_CONSTANT, 3.f);
        ASSERT_NO_FATAL_FAILURE(expect_border(src, dst, {1, 1, 2, 2, 0, 0}, BORDER_CONSTANT))
            << dtype_name(t);
        EXPECT_EQ(dst.dtype, t);
    }
}

TEST(MatBorder, ConstantsAreClamped) {
    const float values[] = {-1e9f, -2.7f, 1e9f, 1e30f, -1e30f};
    const int s8[] = {-128, -2, 127, 127, -128}, u8[] = {0, 0, 255, 255, 0};
    const int s32[] = {-1000000000, -2, 1000000000, 2147483520, INT32_MIN};
    for (int i = 0; i < 5; i++) {
        Mat a(Shape(1, DType::s8)), b(Shape(1, DType::u8)), c(Shape(1, DType::s32));
        copy_make_border(a, a, 0, 0, 1, 0, BORDER_CONSTANT, values[i]);
        copy_make_border(b, b, 0, 0, 1, 0, BORDER_CONSTANT, values[i]);
        copy_make_border(c, c, 0, 0, 1, 0, BORDER_CONSTANT, values[i]);
        EXPECT_EQ(((signed char*)a.data)[0], s8[i]);
        EXPECT_EQ(((unsigned char*)b.data)[0], u8[i]);
        EXPECT_EQ(((int*)c.data)[0], s32[i]);
    }
}

TEST(MatBorder, NoBorderShares) {
    const Mat m = random_bytes(Shape(4, 3, 2), 1, 1);
    Mat out;
    copy_make_border(m, out, 0, 0, 0, 0, BORDER_CONSTANT, 0.f);
    EXPECT_EQ(out.data, m.data);
    copy_cut_border(m, out, 0, 0, 0, 0);
    EXPECT_EQ(out.data, m.data);
}

TEST(MatBorder, CutsThroughElements) {
    for (int dims = 1; dims <= 3; dims++) {
        const Mat src = random_bytes(shape_of(dims, DType::f32), 8, dims);
        Mat planar, want, got;
        convert_packing(src, planar, 1);
        copy_cut_border_3d(planar, want, 1, 1, 1, 1, 3, 0);
        copy_cut_border_3d(src, got, 1, 1, 1, 1, 3, 0);
        EXPECT_EQ(0, count_differences(want, got)) << dims;
    }
}

TEST(MatBorder, Errors) {
    LogCapture log;
    const Mat good = random_bytes(Shape(4, 3, 2), 1, 1);
    const int big = 0x7fffffff;
    const auto makes = [&](const Mat& m, const Sides& s, int type) {
        Mat out = good;
        copy_make_border_3d(m, out, s.top, s.bottom, s.left, s.right, s.front, s.behind, type, 0.f);
        return !out.empty();
    };
    const auto cuts = [&](const Mat& m, const Sides& s) {
        Mat out = good;
        copy_cut_border_3d(m, out, s.top, s.bottom, s.left, s.right, s.front, s.behind);
        return !out.empty();
    };
    EXPECT_FALSE(makes(Mat(), {1, 1, 1, 1, 0, 0}, 0));
    EXPECT_FALSE(makes(good, {-1, 1, 1, 1, 0, 0}, 0));
    EXPECT_FALSE(makes(good, {1, 1, 1, 1, 0, -5}, 0));
    EXPECT_FALSE(makes(good, {1, 1, 1, 1, 0, 0}, 3));
    EXPECT_FALSE(makes(good, {1, 1, 1, 1, 0, 0}, BORDER_TRANSPARENT));
    EXPECT_FALSE(makes(good, {0, 0, 4, 0, 0, 0}, BORDER_REFLECT));
    EXPECT_FALSE(makes(good, {0, 0, 0, 0, 2, 0}, BORDER_REFLECT));
    EXPECT_FALSE(makes(good, {0, 0, big, big, 0, 0}, BORDER_CONSTANT));
    EXPECT_FALSE(makes(good, {big - 3, 0, big - 4, 0, big - 2, 0}, BORDER_REPLICATE));
    EXPECT_FALSE(cuts(Mat(), {0, 1, 0, 0, 0, 0}));
    EXPECT_FALSE(cuts(good, {0, 0, 2, 2, 0, 0}));
    EXPECT_FALSE(cuts(good, {0, 0, big, big, 0, 0}));
    EXPECT_FALSE(cuts(good, {3, 0, 0, 0, 0, 0}));
    EXPECT_FALSE(cuts(good, {0, 0, 0, 0, 0, 2}));
    EXPECT_FALSE(cuts(good, {-1, 0, 0, 0, 0, 0}));
    EXPECT_GE(log.messages.size(), 15u);
}

TEST(MatBorder, OutOfMemory) {
    const Mat src = random_bytes(Shape(4, 4, 8), 8, 1);
    for (int fail = 0; fail < 2; fail++) {
        for (int cut = 0; cut < 2; cut++) {
            LogCapture log;
            TestAllocator allocator;
            allocator.fail_from = fail;
            Option opt;
            opt.blob_allocator = &allocator;
            Mat out;
            if (cut)
                copy_cut_border_3d(src, out, 1, 0, 0, 0, 1, 0, opt);
            else
                copy_make_border_3d(src, out, 1, 0, 0, 0, 1, 0, 0, 0.f, opt);
            EXPECT_TRUE(out.empty());
            EXPECT_TRUE(log.contains("no memory"));
            EXPECT_EQ(0, allocator.in_use);
        }
    }
}
