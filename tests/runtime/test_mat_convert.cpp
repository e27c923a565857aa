// convert_packing, flatten, casts and int8 conversions: every dims, pack, dtype and batch against
// index arithmetic.
#include <gtest/gtest.h>
#include <math.h>
#include <stdint.h>

#include "mat_helpers.h"
#include "pixel_cases.h"

using namespace quoll;

namespace {

const DType kTypes[] = {DType::f32, DType::f16, DType::bf16, DType::s32, DType::s8, DType::u8};

Shape shape_of(int dims, DType t) {
    return dims == 1   ? Shape(48, t)
           : dims == 2 ? Shape(7, 48, t)
           : dims == 3 ? Shape(7, 3, 48, t)
                       : Shape(3, 2, 3, 48, t);
}

int lane_of(const Mat& m, int c, int h, int w) { return m.dims == 1 ? w : m.dims == 2 ? h : c; }

}  // namespace

TEST(ConvertPacking, EveryPair) {
    Option opt;
    opt.num_threads = 2;
    for (DType t : kTypes) {
        for (int dims = 1; dims <= 4; dims++) {
            for (int n = 1; n <= 2; n++) {
                Shape shape = shape_of(dims, t);
                shape.n = n;
                const Mat planar = random_bytes(shape, 1, dims);
                for (int from : {1, 2, 3, 4, 8, 16, 24, 48}) {
                    Mat packed;
                    convert_packing(planar, packed, from, opt);
                    ASSERT_EQ(packed.elempack, from);
                    ASSERT_EQ(packed.elemsize, dtype_size(t) * from);
                    ASSERT_EQ(0, count_differences(planar, packed));
                    for (int to : {1, 3, 4, 6, 8, 12, 16, 48}) {
                        Mat again;
                        convert_packing(packed, again, to, opt);
                        ASSERT_EQ(again.elempack, to);
                        ASSERT_EQ(0, count_differences(planar, again))
                            << dims << " axes, " << from << " to " << to << ", " << dtype_name(t);
                    }
                }
            }
        }
    }
}

// Large enough that several threads share the work.
TEST(ConvertPacking, Threads) {
    const Mat planar = random_values(Shape(40, 40, 64), 1, 1);
    for (int threads : {1, 2, 5}) {
        Option opt;
        opt.num_threads = threads;
        Mat m;
        for (int pack : {8, 16, 4, 1}) {
            convert_packing(pack == 8 ? planar : m, m, pack, opt);
            ASSERT_EQ(0, count_differences(planar, m));
        }
    }
}

TEST(ConvertPacking, SharesWhatNeedsNoCopy) {
    const Mat m = random_bytes(Shape(5, 4, 6), 1, 1);
    Mat out;
    convert_packing(m, out, 1);
    EXPECT_EQ(out.data, m.data);
    convert_packing(m, out, 4);  // 6 channels are not divisible
    EXPECT_EQ(out.data, m.data);
    EXPECT_EQ(out.elempack, 1);
    const Mat line = random_bytes(Shape(8), 1, 1);
    convert_packing(line, out, 4);
    EXPECT_EQ(out.data, line.data);
    EXPECT_EQ(out.elempack, 4);
    EXPECT_EQ(out.w, 2);
    EXPECT_EQ(out.total(), 2u);
}

TEST(ConvertPacking, InPlaceAndViews) {
    Mat m = random_bytes(Shape(5, 4, 8), 1, 1);
    const Mat copy = m.clone();
    convert_packing(m, m, 8);
    EXPECT_EQ(m.elempack, 8);
    EXPECT_EQ(0, count_differences(copy, m));
    // channels of a 4-D Mat follow each other without gaps
    const Mat volume = random_bytes(Shape(3, 3, 4, 2), 1, 2);
    const Mat view = volume.channel(1);
    Mat packed;
    convert_packing(view, packed, 4);
    EXPECT_EQ(0, count_differences(view, packed));
}

TEST(ConvertPacking, Errors) {
    LogCapture log;
    const Mat good = random_bytes(Shape(5, 4, 8), 1, 1);
    Mat out = good;
    convert_packing(Mat(), out, 4);
    EXPECT_TRUE(out.empty());
    for (int pack : {0, -1}) {
        out = good;
        convert_packing(good, out, pack);
        EXPECT_TRUE(out.empty());
    }
    Mat odd = good;
    odd.elemsize = 3;
    convert_packing(odd, out, 4);
    EXPECT_TRUE(out.empty());
    EXPECT_EQ(4u, log.messages.size());
    TestAllocator none;
    none.fail_from = 0;
    Option opt;
    opt.blob_allocator = &none;
    convert_packing(good, out, 4, opt);
    EXPECT_TRUE(out.empty());
    EXPECT_TRUE(log.contains("[convert_packing] no memory"));
}

// As ncnn's functions, which leave the sizes.
TEST(ConvertPacking, AnAxisOfSizeZero) {
    const Mat none(7, 0, 3, (void*)nullptr, (size_t)4u);
    Mat half, wide, same;
    cast_float32_to_float16(none, half);
    convert_packing(half, same, 1);
    cast_float16_to_float32(same, wide);
    for (const Mat* m : {&half, &same, &wide}) {
        EXPECT_TRUE(m->empty());
        EXPECT_EQ(m->dims, 3);
        EXPECT_EQ(m->w, 7);
        EXPECT_EQ(m->h, 0);
        EXPECT_EQ(m->c, 3);
        EXPECT_EQ(m->elempack, 1);
        EXPECT_EQ(m->elemsize, m == &wide ? 4u : 2u);
        EXPECT_EQ(m->dtype, m == &wide ? DType::f32 : DType::f16);
    }
}

TEST(Flatten, EveryDimsPackAndBatch) {
    for (DType t : kTypes) {
        for (int dims = 1; dims <= 4; dims++) {
            for (int pack : {1, 3, 4, 8, 16}) {
                Shape shape = shape_of(dims, t);
                shape.n = pack == 8 ? 3 : 1;
                const Mat m = random_bytes(shape, pack, dims);
                Mat flat;
                flatten(m, flat);
                ASSERT_EQ(flat.dims, 1);
                ASSERT_EQ(flat.elempack, 1);
                ASSERT_EQ(flat.n, shape.n);
                ASSERT_EQ((size_t)flat.w * flat.n, shape.total());
                int i = 0, wrong = 0;
                for_each_index(shape, [&](int b, int c, int d, int h, int w) {
                    wrong += memcmp(scalar_at(m, b, c, d, h, w),
                                    scalar_at(flat, b, 0, 0, 0, i++ % flat.w), dtype_size(t)) != 0;
                });
                ASSERT_EQ(0, wrong) << dims << " axes, pack " << pack;
            }
        }
    }
}

TEST(Flatten, Errors) {
    LogCapture log;
    Mat out(3);
    flatten(Mat(), out);
    EXPECT_TRUE(out.empty());
    TestAllocator none;
    none.fail_from = 0;
    Option opt;
    opt.blob_allocator = &none;
    for (int pack : {1, 4}) {
        flatten(random_bytes(Shape(3, 3, 4), pack, 1), out, opt);
        EXPECT_TRUE(out.empty());
    }
    EXPECT_TRUE(log.contains("[flatten] no memory"));
}

TEST(Cast, AgreesWithNcnn) {
    for (const PixelCase& c : pixel_cases("cast_")) {
        Mat m = c.given.mat();
        if (c.op == "cast_float16") {
            cast_float32_to_float16(m, m);
            EXPECT_EQ(m.dtype, DType::f16);
            cast_float16_to_float32(m, m);
        } else {
            cast_float32_to_bfloat16(m, m);
            EXPECT_EQ(m.dtype, DType::bf16);
            cast_bfloat16_to_float32(m, m);
        }
        expect_result(m, c.expected, 0.f, c.name());
    }
}

TEST(Cast, EveryDimsPackAndBatch) {
    typedef void (*CastTo)(const Mat&, Mat&, const Option&);
    struct {
        DType from, to;
        CastTo cast;
    } const kCasts[] = {
        {DType::f32, DType::f16, cast_float32_to_float16},
        {DType::f16, DType::f32, cast_float16_to_float32},
        {DType::f32, DType::bf16, cast_float32_to_bfloat16},
        {DType::bf16, DType::f32, cast_bfloat16_to_float32},
        // ncnn's programs, which do not know, take every Mat of two bytes for f16.
        {DType::bf16, DType::f32, cast_float16_to_float32},
        {DType::s8, DType::f32, cast_int8_to_float32},
    };
    for (const auto& k : kCasts) {
        for (int dims = 1; dims <= 4; dims++) {
            for (int pack : {1, 3, 8}) {
                Shape shape = shape_of(dims, k.from);
                shape.n = pack == 3 ? 2 : 1;
                const Mat m = random_bytes(shape, pack, 1);
                Mat out;
                k.cast(m, out, Option());
                shape.dtype = k.to;
                ASSERT_EQ(out.logical_shape(), shape);
                ASSERT_EQ(out.elempack, pack);
                int wrong = 0;
                for_each_index(shape, [&](int b, int c, int d, int h, int w) {
                    const void* from = scalar_at(m, b, c, d, h, w);
                    float f = 0.f, narrow = 0.f;
                    unsigned short u = 0;
                    if (dtype_size(k.from) == 4) {
                        memcpy(&f, from, 4);
                        u = k.to == DType::f16 ? float32_to_float16(f) : float32_to_bfloat16(f);
                    } else if (k.from == DType::s8) {
                        f = *(const signed char*)from;
                    } else {
                        memcpy(&u, from, 2);
                        f = k.from == DType::f16 ? float16_to_float32(u) : bfloat16_to_float32(u);
                    }
                    // Processors that convert to bf16 themselves take denormals as zero.
                    unsigned short got = 0;
                    if (k.to == DType::bf16) memcpy(&got, scalar_at(out, b, c, d, h, w), 2);
                    if (k.to == DType::bf16 && fpclassify(f) == FP_SUBNORMAL && !(got & 0x7fff))
                        u = (unsigned short)(signbit(f) ? 0x8000 : 0);
                    memcpy(&narrow, &u, 2);
                    wrong += memcmp(k.to == DType::f32 ? &f : &narrow,
                                    scalar_at(out, b, c, d, h, w), dtype_size(k.to)) != 0;
                });
                ASSERT_EQ(0, wrong) << dtype_name(k.from) << " to " << dtype_name(k.to);
            }
        }
    }
}

// Every half through the loop and through the scalar function, in both directions.
TEST(Cast, LoopsAndScalarsAgreeOnEveryHalf) {
    Mat half(Shape(65536, DType::f16)), wide, back;
    for (int i = 0; i < 65536; i++) ((unsigned short*)half.data)[i] = (unsigned short)i;
    cast_float16_to_float32(half, wide);
    cast_float32_to_float16(wide, back);
    for (int i = 0; i < 65536; i++) {
        const float f = float16_to_float32((unsigned short)i);
        ASSERT_EQ(0, memcmp(&f, &wide[i], 4)) << i;
        ASSERT_EQ(float32_to_float16(f), ((unsigned short*)back.data)[i]) << i;
    }
}

TEST(Cast, WrongTypes) {
    LogCapture log;
    const Mat f32 = random_values(Shape(5), 1, 1);
    const Mat f16 = random_bytes(Shape(5, DType::f16), 1, 1);
    const Mat u8 = random_bytes(Shape(5, DType::u8), 1, 1);
    Mat out = f32;
    cast_float32_to_float16(f16, out);
    EXPECT_TRUE(out.empty());
    EXPECT_TRUE(log.contains("[cast_float32_to_float16] expected f32, got f16"));
    cast_float16_to_float32(f32, out);
    EXPECT_TRUE(out.empty());
    cast_float16_to_float32(u8, out);
    EXPECT_TRUE(out.empty());
    cast_float32_to_bfloat16(u8, out);
    EXPECT_TRUE(out.empty());
    cast_bfloat16_to_float32(f32, out);
    EXPECT_TRUE(out.empty());
    cast_int8_to_float32(u8, out);
    EXPECT_TRUE(out.empty());
    cast_int8_to_float32(Mat(), out);
    EXPECT_TRUE(out.empty());
    EXPECT_EQ(7u, log.messages.size());
    cast_bfloat16_to_float32(Mat(5, (size_t)2u), out);  // made by the elemsize form
    EXPECT_EQ(out.dtype, DType::f32);
    TestAllocator none;
    none.fail_from = 0;
    Option opt;
    opt.blob_allocator = &none;
    cast_float32_to_float16(f32, out, opt);
    EXPECT_TRUE(out.empty());
    EXPECT_TRUE(log.contains("[cast_float32_to_float16] no memory"));
}

TEST(Int8, Quantize) {
    for (int dims = 1; dims <= 4; dims++) {
        for (int pack : {1, 3, 4, 8, 16}) {
            Shape shape = shape_of(dims, DType::f32);
            shape.n = pack == 4 ? 2 : 1;
            const Mat m = random_values(shape, pack, dims, 3.f);
            for (int scales : {1, 48}) {
                const Mat scale = random_values(Shape(scales), 1, 5, 60.f);
                Mat out;
                quantize_to_int8(m, out, scale);
                ASSERT_EQ(out.dtype, DType::s8);
                ASSERT_EQ(out.elempack, pack);
                int wrong = 0;
                for_each_index(shape, [&](int b, int c, int d, int h, int w) {
                    const float s = scale[scales == 1 ? 0 : lane_of(m, c, h, w)];
                    const float product = value_at(m, b, c, d, h, w) * s;
                    const float want = fminf(127.f, fmaxf(-127.f, roundf(product)));
                    wrong += *(signed char*)scalar_at(out, b, c, d, h, w) != (signed char)want;
                });
                ASSERT_EQ(0, wrong) << dims << " axes, pack " << pack << ", " << scales;
            }
        }
    }
}

TEST(Int8, Dequantize) {
    for (int dims = 1; dims <= 4; dims++) {
        for (int pack : {1, 3, 4, 8, 16}) {
            Mat m(shape_of(dims, DType::s32), pack);
            std::mt19937 random(dims);
            for (size_t i = 0; i < m.total() * pack; i++)
                ((int*)m.data)[i] = (int)(random() % 200001) - 100000;
            for (int scales : {1, 48}) {
                for (int biases : {0, 1, 48}) {
                    const Mat scale = random_values(Shape(scales), 1, 5);
                    const Mat bias = biases ? random_values(Shape(biases), 1, 6) : Mat();
                    Mat out;
                    dequantize_from_int32(m, out, scale, bias);
                    ASSERT_EQ(out.dtype, DType::f32);
                    float worst = 0.f;
                    for_each_index(m.logical_shape(), [&](int b, int c, int d, int h, int w) {
                        const int lane = lane_of(m, c, h, w);
                        const double x = *(int*)scalar_at(m, b, c, d, h, w);
                        const double want = x * scale[scales == 1 ? 0 : lane] +
                                            (biases ? bias[biases == 1 ? 0 : lane] : 0.f);
                        const float got = value_at(out, b, c, d, h, w);
                        worst = fmaxf(worst, (float)fabs(got - want));
                    });
                    ASSERT_LT(worst, 0.02f) << dims << " axes, pack " << pack;
                }
            }
        }
    }
}

TEST(Int8, InPlaceAndErrors) {
    LogCapture log;
    const Mat one(1, (size_t)4u), four(4), five(5);
    for (const Mat& m : {one, four, five}) const_cast<Mat&>(m).fill(2.f);
    Mat m(5, (size_t)4u);
    m.fill(3.f);
    quantize_to_int8(m, m, one);
    ASSERT_EQ(m.w, 5);
    EXPECT_EQ(((signed char*)m.data)[4], 6);
    Mat out;
    quantize_to_int8(m, out, one);
    EXPECT_TRUE(out.empty());  // s8 already
    quantize_to_int8(five, out, four);
    EXPECT_TRUE(out.empty());  // 4 scales for 5 values
    quantize_to_int8(five, out, Mat());
    EXPECT_TRUE(out.empty());
    quantize_to_int8(Mat(), out, one);
    EXPECT_TRUE(out.empty());
    dequantize_from_int32(m, out, one, one);
    EXPECT_TRUE(out.empty());
    dequantize_from_int32(five, out, four, one);
    EXPECT_TRUE(out.empty());
    dequantize_from_int32(five, out, one, four);
    EXPECT_TRUE(out.empty());
    dequantize_from_int32(five, out, m, one);
    EXPECT_TRUE(out.empty());
    EXPECT_EQ(8u, log.messages.size());
    EXPECT_TRUE(log.contains("[quantize_to_int8] scale_data: expected 1 or 5 f32 values"));
}
