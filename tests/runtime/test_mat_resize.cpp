// Resizing of f32 Mats against ncnn, over packs, batches and threads.
#include <gtest/gtest.h>

#include <string>

#include "mat_helpers.h"
#include "pixel_cases.h"

using namespace quoll;

namespace {

typedef void (*Resize)(const Mat&, Mat&, int, int, const Option&);
const Resize kResizes[] = {resize_nearest, resize_bilinear, resize_bicubic};

Resize find_resize(const std::string& op) {
    return op == "resize_nearest"    ? resize_nearest
           : op == "resize_bilinear" ? resize_bilinear
                                     : resize_bicubic;
}

}  // namespace

TEST(MatResize, AgreesWithNcnn) {
    for (const PixelCase& c : pixel_cases("resize_")) {
        Mat m = c.given.mat();
        find_resize(c.op)(m, m, c.params[0], c.params[1], Option());
        // ncnn computes cubic weights in float, where (1 + t)^3 and its like cancel
        const float tolerance = c.op == "resize_nearest"    ? 0.f
                                : c.op == "resize_bilinear" ? 2e-6f
                                                            : 1e-5f;
        expect_result(m, c.expected, tolerance, c.name());
    }
}

// Nearest takes source index floor(i * in / out) also where ncnn's float quotient is exact.
TEST(MatResize, NearestIndices) {
    for (int in : {1, 2, 7, 64, 100}) {
        Mat row(in, 1, 1);
        for (int i = 0; i < in; i++) row[i] = (float)i;
        for (int factor : {1, 2, 4, 8}) {
            Mat out;
            resize_nearest(row, out, in * factor, 1);
            ASSERT_EQ(out.w, in * factor);
            for (int i = 0; i < out.w; i++) ASSERT_EQ(out[i], (float)(i / factor));
        }
    }
}

// Resizing keeps a constant; bilinear, away from the edges, also a ramp.
TEST(MatResize, KeepsConstantsAndRamps) {
    for (Resize resize : kResizes) {
        Mat flat(5, 4, 2), out;
        flat.fill(3.f);
        resize(flat, out, 12, 9, Option());
        ASSERT_EQ(out.h, 9);
        for (int q = 0; q < 2; q++)
            for (int i = 0; i < 12 * 9; i++) ASSERT_NEAR(out.channel(q)[i], 3.f, 1e-6f);
    }
    Mat ramp(16, 1, 1), out;
    for (int i = 0; i < 16; i++) ramp[i] = (float)i;
    resize_bilinear(ramp, out, 32, 1);
    for (int i = 1; i < 31; i++) ASSERT_NEAR(out[i], (i + .5f) / 2 - .5f, 1e-5f);
}

// A source axis of one value is constant along that axis.
TEST(MatResize, OneValueAxis) {
    for (Resize resize : kResizes) {
        Mat column(1, 3, 1), row(3, 1, 1), out;
        for (int i = 0; i < 3; i++) column[i] = row[i] = (float)(i * i);
        resize(column, out, 4, 3, Option());
        for (int i = 0; i < 12; i++) ASSERT_NEAR(out[i], (float)(i / 4 * (i / 4)), 1e-6f);
        resize(row, out, 3, 4, Option());
        for (int i = 0; i < 12; i++) ASSERT_NEAR(out[i], (float)(i % 3 * (i % 3)), 1e-6f);
    }
}

TEST(MatResize, EveryPackBatchAndThreadCount) {
    for (Resize resize : kResizes) {
        for (int dims = 1; dims <= 3; dims++) {
            Shape shape = dims == 1 ? Shape(16) : dims == 2 ? Shape(7, 16) : Shape(7, 5, 16);
            shape.n = 2;
            const Mat planar = random_values(shape, 1, dims);
            Mat want;
            for (int b = 0; b < 2; b++) {
                resize(planar.batch(b), want, 11, 3, Option());
                for (int pack : {1, 4, 8, 16}) {
                    Option opt;
                    opt.num_threads = pack % 3 + 1;
                    Mat packed, got;
                    convert_packing(planar, packed, pack);
                    resize(packed, got, 11, 3, opt);
                    ASSERT_EQ(got.elempack, pack);
                    ASSERT_EQ(got.n, 2);
                    ASSERT_EQ(0, count_differences(want, got.batch(b))) << dims << " " << pack;
                }
            }
        }
    }
}

TEST(MatResize, SameSizeShares) {
    const Mat m = random_values(Shape(4, 3, 2), 1, 1);
    Mat out;
    resize_bicubic(m, out, 4, 3);
    EXPECT_EQ(out.data, m.data);
}

TEST(MatResize, Errors) {
    for (Resize resize : kResizes) {
        LogCapture log;
        const Mat good = random_values(Shape(4, 3, 2), 1, 1);
        Mat half;
        cast_float32_to_float16(good, half);
        const Mat bad[] = {Mat(), half, Mat(2, 2, 2, 2)};
        for (const Mat& m : bad) {
            Mat out = good;
            resize(m, out, 2, 2, Option());
            EXPECT_TRUE(out.empty());
        }
        for (int size : {0, -1}) {
            Mat out = good;
            resize(good, out, size, 2, Option());
            EXPECT_TRUE(out.empty());
        }
        EXPECT_EQ(5u, log.messages.size());
        Mat huge = good;
        resize(good, huge, 0x7fffffff, 0x7fffffff, Option());
        EXPECT_TRUE(huge.empty());
    }
}

// Whichever allocation fails, dst is empty, the log says so and nothing leaks.
TEST(MatResize, OutOfMemory) {
    for (Resize resize : kResizes) {
        const Mat m = random_values(Shape(4, 3, 2), 1, 1);
        for (int fail = 0; fail < 6; fail++) {
            LogCapture log;
            TestAllocator allocator;
            allocator.fail_from = fail;
            Option opt;
            opt.blob_allocator = opt.workspace_allocator = &allocator;
            Mat out;
            resize(m, out, 9, 5, opt);
            EXPECT_TRUE(out.empty());
            EXPECT_TRUE(log.contains("out of memory"));
            EXPECT_EQ(0, allocator.in_use);
        }
    }
}
