// Mat itself: layout, sharing, views, sizes that overflow, scalar conversions.
#include "quoll/mat.h"

#include <gtest/gtest.h>
#include <math.h>
#include <stdint.h>

#include <atomic>
#include <thread>

#include "mat_helpers.h"
#include "pixel_cases.h"

using namespace quoll;

namespace {

// A Mat whose scalar at each index tells the index.
Mat numbered(const Shape& shape) {
    Mat m(shape);
    float next = 0.f;
    for_each_index(shape,
                   [&](int b, int c, int d, int h, int w) { value_at(m, b, c, d, h, w) = next++; });
    return m;
}

// True when the scalars of m, in order, are 0, 1, 2...
bool in_order(const Mat& m) {
    float next = 0.f;
    bool ok = !m.empty();
    for_each_index(m.logical_shape(), [&](int b, int c, int d, int h, int w) {
        ok = ok && value_at(m, b, c, d, h, w) == next++;
    });
    return ok;
}

}  // namespace

TEST(Mat, StartsEmpty) {
    const Mat m;
    EXPECT_TRUE(m.empty());
    EXPECT_EQ(m.dims, 0);
    EXPECT_EQ(m.total(), 0u);
    EXPECT_EQ(m.elembits(), 0);
    EXPECT_EQ(m.n, 1);
    EXPECT_TRUE(m.clone().empty());
    EXPECT_TRUE(m.reshape(1).empty());
    EXPECT_EQ(m.logical_shape().total(), 0u);
}

TEST(Mat, CreateSetsTheLayout) {
    const Mat a(5), b(5, 3), c(5, 3, 2), d(3, 5, 2, 4);
    EXPECT_EQ(a.dims, 1);
    EXPECT_EQ(a.cstep, 5u);
    EXPECT_EQ(a.total(), 5u);
    EXPECT_EQ(b.dims, 2);
    EXPECT_EQ(b.cstep, 15u);
    EXPECT_EQ(b.total(), 15u);
    EXPECT_EQ(c.dims, 3);
    EXPECT_EQ(c.cstep, 16u);
    EXPECT_EQ(c.total(), 32u);
    EXPECT_EQ(d.dims, 4);
    EXPECT_EQ(d.cstep, 32u);
    EXPECT_EQ(d.c, 4);
    const Mat s8(5, 3, 2, (size_t)1u), f16(3, 3, 3, (size_t)2u), packed(3, 3, 2, (size_t)16u, 4);
    EXPECT_EQ(s8.dtype, DType::s8);
    EXPECT_EQ(s8.cstep, 16u);
    EXPECT_EQ(f16.dtype, DType::f16);
    EXPECT_EQ(f16.cstep, 16u);
    EXPECT_EQ(packed.dtype, DType::f32);
    EXPECT_EQ(packed.cstep, 9u);
    EXPECT_EQ(packed.elembits(), 32);
    EXPECT_EQ(packed.logical_shape(), Shape(3, 3, 8));
    EXPECT_EQ(packed.shape().c, 8);
    EXPECT_EQ(packed.shape().data, nullptr);
    for (const Mat* m : {&a, &b, &c, &d, &s8, &f16, &packed})
        for (int q = 0; q < m->c; q++)
            EXPECT_EQ(0u, (uintptr_t)((char*)m->data + q * m->cstep * m->elemsize) % 16);
}

TEST(Mat, CreateFromShape) {
    for (DType t : {DType::f32, DType::f16, DType::bf16, DType::s32, DType::s8, DType::u8}) {
        Shape shape(5, 3, 8, t);
        shape.n = 3;
        const Mat m(shape, 4);
        EXPECT_EQ(m.dtype, t);
        EXPECT_EQ(m.logical_shape(), shape);
        EXPECT_EQ(m.elemsize, dtype_size(t) * 4);
        EXPECT_EQ(m.c, 2);
        for (int b = 0; b < 3; b++) EXPECT_EQ(0u, (uintptr_t)m.batch(b).data % 16);
        EXPECT_GE(m.nstep, m.cstep * 2);
    }
    LogCapture log;
    EXPECT_TRUE(Mat(Shape(5, 3, 7), 4).empty());  // 7 channels are not divisible
    EXPECT_TRUE(Mat(Shape(5, 3, 8), 0).empty());
    EXPECT_TRUE(Mat(Shape(), 1).empty());
    EXPECT_EQ(3u, log.messages.size());
}

TEST(Mat, CreateKeepsMemoryWhenNothingChanges) {
    Mat m(5, 4, 3);
    void* data = m.data;
    m.create(5, 4, 3);
    EXPECT_EQ(m.data, data);
    const Mat shared = m;
    m.create(5, 4, 3);  // somebody else looks at the old memory
    EXPECT_NE(m.data, data);
    EXPECT_EQ(shared.data, data);
    Mat like;
    like.create_like(shared);
    EXPECT_EQ(like.logical_shape(), shared.logical_shape());
}

// Sizes whose product overflows, or that no machine has.
TEST(Mat, AbsurdSizes) {
    LogCapture log;
    const int big = 1 << 30, most = 0x7fffffff;
    EXPECT_TRUE(Mat(big, big).empty());
    EXPECT_TRUE(Mat(big, big, big).empty());
    EXPECT_TRUE(Mat(most, most, most, most).empty());
    EXPECT_TRUE(Mat(1 << 16, 1 << 16, 1 << 16, 1 << 16).empty());  // 2^64 elements
    EXPECT_TRUE(Mat(most, most, (size_t)1u).empty());
    Shape shape(1, 1, most, DType::s8);
    shape.n = 1 << 29;  // 2^60 bytes, but 2^64 with the channels' alignment
    EXPECT_TRUE(Mat(shape).empty());
    shape.n = most;
    EXPECT_TRUE(Mat(shape).empty());
    EXPECT_GE(log.messages.size(), 7u);
}

TEST(Mat, SizesBelowOneGiveAnEmptyMat) {
    EXPECT_TRUE(Mat(0).empty());
    EXPECT_TRUE(Mat(-1, 3).empty());
    EXPECT_TRUE(Mat(3, 0, 3).empty());
    EXPECT_TRUE(Mat(3, 3, 3, -7).empty());
    EXPECT_TRUE(Mat(3, (size_t)0u).empty());
    EXPECT_TRUE(Mat(3, (size_t)4u, 0).empty());
    EXPECT_TRUE(Mat(3).reshape(-3).empty());
    EXPECT_TRUE(Mat(3).reshape(-1, -3).empty());
    EXPECT_TRUE(Mat(3).reshape(0).empty());
}

TEST(Mat, CopiesShareAndCountReferences) {
    Mat a = numbered(Shape(4, 3, 2));
    EXPECT_EQ(1, *a.refcount);
    Mat b = a, c;
    c = b;
    EXPECT_EQ(3, *a.refcount);
    c = c;
    EXPECT_EQ(3, *a.refcount);
    Mat moved = static_cast<Mat&&>(c);
    EXPECT_TRUE(c.empty());
    EXPECT_EQ(3, *a.refcount);
    b[0] = 77.f;
    EXPECT_EQ(a[0], 77.f);
    b.release();
    moved = Mat();
    EXPECT_EQ(1, *a.refcount);
    b.release();
    EXPECT_TRUE(b.empty());
}

TEST(Mat, ReferencesAcrossThreads) {
    TestAllocator allocator;  // its counters are not atomic: the last owner alone frees
    {
        Mat shared(100, (size_t)4u, &allocator);
        shared.fill(1.f);
        std::vector<std::thread> threads;
        std::atomic<int> wrong(0);
        for (int t = 0; t < 4; t++) {
            threads.emplace_back([shared, &wrong] {
                for (int i = 0; i < 2000; i++) {
                    Mat copy = shared, other;
                    other = copy;
                    Mat third = static_cast<Mat&&>(copy);
                    wrong += third[i % 100] != 1.f || other.data != third.data;
                }
            });
        }
        shared.release();
        for (std::thread& t : threads) t.join();
        EXPECT_EQ(0, wrong);
    }
    EXPECT_EQ(1, allocator.requests);
    EXPECT_EQ(0, allocator.in_use);
}

TEST(Mat, CloneIsDeepAndDropsNothing) {
    for (int pack : {1, 4}) {
        Shape shape(5, 3, 8);
        shape.n = 2;
        const Mat m = random_values(shape, pack, 1);
        const Mat copy = m.clone();
        EXPECT_NE(copy.data, m.data);
        EXPECT_EQ(copy.elempack, pack);
        EXPECT_EQ(0, count_differences(m, copy));
        const Mat middle = m.channel_range(1, 1).clone();  // of a view
        EXPECT_EQ(0, count_differences(m.channel_range(1, 1), middle));
        Mat from;
        from.clone_from(m);
        EXPECT_EQ(0, count_differences(m, from));
    }
    Mat bf16(Shape(3, DType::bf16));
    EXPECT_EQ(bf16.clone().dtype, DType::bf16);
}

TEST(Mat, ViewsOfForeignMemory) {
    alignas(16) float memory[64];
    for (int i = 0; i < 64; i++) memory[i] = (float)i;
    {
        Mat a(5, memory), b(4, 3, memory), c(4, 2, 3, memory), d(2, 2, 2, 3, memory);
        Mat packed(3, 2, 2, memory, 16u, 4);
        EXPECT_EQ(a.refcount, nullptr);
        EXPECT_EQ(b.row(2)[1], 9.f);
        EXPECT_EQ(c.channel(2).row(1)[3], 23.f);
        EXPECT_EQ(d.channel(1).channel(1).row(1)[0], 14.f);
        EXPECT_EQ(value_at(packed, 0, 5, 0, 1, 2), 24.f + 20.f + 1.f);
        a[0] = -1.f;
        EXPECT_EQ(b[0], -1.f);
        Mat copy = c;  // a view of a view
        EXPECT_EQ(copy.data, memory);
        copy.create(4, 2, 3);  // becomes an owner, the foreign memory stays as it was
        copy.fill(5.f);
    }
    EXPECT_EQ(memory[0], -1.f);
    EXPECT_EQ(memory[63], 63.f);
}

// fill sets the data and nothing beside it, whatever follows the last channel.
TEST(Mat, Fill) {
    alignas(16) float memory[24];
    for (float& v : memory) v = -1.f;
    Mat view(3, 1, 2, memory);
    view.fill(2.f);
    const float want[] = {2, 2, 2, -1, 2, 2, 2, -1, -1};
    EXPECT_EQ(0, memcmp(memory, want, sizeof(want)));

    Mat line(3);  // three floats and the reference count follow each other
    Mat plane = line.reshape(3, 1, 1);
    plane.fill(4.f);
    EXPECT_EQ(2, *line.refcount);
    EXPECT_EQ(line[2], 4.f);

    Mat packed(Shape(3, 3, 8), 4);
    packed.fill(5.f);
    for_each_index(packed.logical_shape(), [&](int b, int c, int d, int h, int w) {
        ASSERT_EQ(value_at(packed, b, c, d, h, w), 5.f);
    });
    Mat ints(Shape(7, 2, DType::s32)), bytes(Shape(5, 5, 3, DType::s8)),
        halves(Shape(9, DType::f16));
    ints.fill(9);
    bytes.fill((signed char)-3);
    halves.fill((unsigned short)0x3c00);
    EXPECT_EQ(((int*)ints.data)[13], 9);
    EXPECT_EQ(*(signed char*)scalar_at(bytes, 0, 2, 0, 4, 4), -3);
    EXPECT_EQ(((unsigned short*)halves.data)[8], 0x3c00);
    Shape batch(2, 2, 3);
    batch.n = 2;
    Mat many(batch);
    many.fill(6.f);
    EXPECT_EQ(value_at(many, 1, 2, 0, 1, 1), 6.f);
    Mat().fill(1.f);
}

TEST(Mat, ReshapeKeepsOrder) {
    const Shape shapes[] = {Shape(48),         Shape(8, 6),       Shape(3, 16),
                            Shape(4, 4, 3),    Shape(3, 2, 8),    Shape(1, 1, 48),
                            Shape(48, 1, 1),   Shape(2, 3, 2, 4), Shape(3, 1, 1, 16),
                            Shape(1, 3, 16, 1)};
    for (const Shape& from : shapes) {
        for (const Shape& to : shapes) {
            const Mat m = numbered(from);
            const Mat r = to.dims == 1   ? m.reshape(to.w)
                          : to.dims == 2 ? m.reshape(to.w, to.h)
                          : to.dims == 3 ? m.reshape(to.w, to.h, to.c)
                                         : m.reshape(to.w, to.h, to.d, to.c);
            ASSERT_EQ(r.logical_shape(), to);
            ASSERT_TRUE(in_order(r));
        }
    }
    EXPECT_TRUE(Mat(48).reshape(47).empty());
    EXPECT_TRUE(Mat(48).reshape(7, 7).empty());
    EXPECT_TRUE(Mat(48).reshape(1 << 30, 1 << 30, 1 << 4).empty());
    EXPECT_TRUE(Mat(16).reshape(1 << 16, 1 << 16, 1 << 16, 1 << 16).empty());
}

TEST(Mat, ReshapeSharesWhereTheLayoutAllows) {
    const Mat line = numbered(Shape(48)), gaps = numbered(Shape(3, 1, 16));
    EXPECT_EQ(line.reshape(8, 6).data, line.data);
    EXPECT_EQ(line.reshape(4, 4, 3).data, line.data);   // 16 floats per channel: no gaps
    EXPECT_EQ(line.reshape(48, 1, 1).data, line.data);  // one channel
    EXPECT_NE(line.reshape(3, 1, 16).data, line.data);
    EXPECT_NE(gaps.reshape(48).data, gaps.data);
    EXPECT_EQ(gaps.reshape(1, 3, 16).data, gaps.data);
    // what was shared does not claim memory behind the block
    const Mat one = numbered(Shape(3)).reshape(3, 1, 1);
    EXPECT_EQ(one.total(), 3u);
}

TEST(Mat, ReshapeKeepsElementsAndBatch) {
    Shape shape(6, 2, 4);
    shape.n = 3;
    const Mat m = numbered(shape);
    const Mat flat = m.reshape(48);
    EXPECT_EQ(flat.n, 3);
    EXPECT_TRUE(in_order(flat));
    const Mat back = flat.reshape(3, 2, 8);
    EXPECT_EQ(back.n, 3);
    EXPECT_TRUE(in_order(back));
    const Mat packed = random_values(Shape(6, 2, 8), 4, 1), rows = packed.reshape(12, 2);
    EXPECT_EQ(rows.elempack, 4);
    EXPECT_EQ(rows.logical_shape(), Shape(12, 8));
    EXPECT_EQ(value_at(rows, 0, 0, 0, 5, 7), value_at(packed, 0, 5, 0, 1, 1));
}

TEST(Mat, Views) {
    Mat m = numbered(Shape(5, 3, 4));
    EXPECT_EQ(m.channel(2).dims, 2);
    EXPECT_EQ(m.channel(2).row(1)[3], 2 * 15 + 5 + 3.f);
    EXPECT_EQ(m.channel(2).refcount, nullptr);
    const Mat two = m.channel_range(1, 2);
    EXPECT_EQ(two.dims, 3);
    EXPECT_EQ(two.c, 2);
    EXPECT_EQ(two.channel(1).row(2)[4], 2 * 15 + 10 + 4.f);
    const Mat rows = m.channel(3).row_range(1, 2);
    EXPECT_EQ(rows.h, 2);
    EXPECT_EQ(rows.row(1)[0], 3 * 15 + 10.f);
    Mat line = numbered(Shape(20));
    const Mat part = line.range(5, 7);
    EXPECT_EQ(part.w, 7);
    EXPECT_EQ(part[6], 11.f);
    m.channel(1).fill(-1.f);
    EXPECT_EQ(value_at(m, 0, 0, 0, 2, 4), 14.f);
    EXPECT_EQ(value_at(m, 0, 1, 0, 2, 4), -1.f);
    EXPECT_EQ(value_at(m, 0, 2, 0, 0, 0), 30.f);

    Mat volume = numbered(Shape(3, 2, 5, 2));  // w h d c
    EXPECT_EQ(volume.channel(1).dims, 3);
    EXPECT_EQ(volume.channel(1).c, 5);
    EXPECT_EQ(volume.channel(1).channel(4).row(1)[2], 59.f);
    EXPECT_EQ(volume.channel(1).depth(4).row(1)[2], 59.f);
    EXPECT_EQ(volume.channel_range(1, 1).dims, 4);
    const Mat depths = volume.depth_range(1, 3);
    EXPECT_EQ(depths.dims, 3);
    EXPECT_EQ(depths.c, 3);
    EXPECT_EQ(depths.channel(2).row(0)[0], 18.f);

    Mat packed = random_values(Shape(5, 3, 8), 4, 1);
    EXPECT_EQ(packed.channel(1).elempack, 4);
    EXPECT_EQ(packed.channel(1).row(2)[4 * 4 + 2], value_at(packed, 0, 6, 0, 2, 4));
    const Mat bf16(Shape(5, 3, 8, DType::bf16));
    EXPECT_EQ(bf16.channel(1).dtype, DType::bf16);
    EXPECT_EQ(bf16.channel_range(1, 2).dtype, DType::bf16);
}

TEST(Mat, Batch) {
    Shape shape(3, 3, 2);
    shape.n = 4;
    Mat m = numbered(shape);
    EXPECT_EQ(m.total(), m.nstep * 4);
    for (int b = 0; b < 4; b++) {
        const Mat item = m.batch(b);
        EXPECT_EQ(item.n, 1);
        EXPECT_EQ(item.dims, 3);
        EXPECT_EQ(value_at(item, 0, 1, 0, 2, 2), b * 18 + 17.f);
    }
    m.batch(2).fill(-1.f);
    EXPECT_EQ(value_at(m, 1, 1, 0, 2, 2), 35.f);
    EXPECT_EQ(value_at(m, 2, 0, 0, 0, 0), -1.f);
    EXPECT_EQ(value_at(m, 3, 0, 0, 0, 0), 54.f);
}

TEST(Mat, SubstractMeanNormalize) {
    const float mean[] = {1, 2, 3}, norm[] = {.5f, .25f, 2.f};
    for (const PixelCase& c : pixel_cases("substract_mean_normalize")) {
        Mat m = c.given.mat();
        m.substract_mean_normalize(mean, norm);
        expect_result(m, c.expected, 1e-3f, c.name());
    }
    for (int use = 0; use < 4; use++) {
        const Mat before = random_values(Shape(5, 4, 3), 1, 1);
        Mat m = before.clone();
        m.substract_mean_normalize(use & 1 ? mean : nullptr, use & 2 ? norm : nullptr);
        for_each_index(m.logical_shape(), [&](int b, int c, int d, int h, int w) {
            const float want = (value_at(before, b, c, d, h, w) - (use & 1 ? mean[c] : 0.f)) *
                               (use & 2 ? norm[c] : 1.f);
            ASSERT_EQ(value_at(m, b, c, d, h, w), want);
        });
    }
    LogCapture log;
    Mat packed = random_values(Shape(5, 4, 4), 4, 1), copy = packed.clone();
    packed.substract_mean_normalize(mean, norm);
    EXPECT_EQ(0, count_differences(packed, copy));
    EXPECT_EQ(1u, log.messages.size());
    Mat().substract_mean_normalize(mean, norm);
}

TEST(Mat, FromFloat16) {
    const unsigned short half[] = {0x3c00, 0xc000, 0x0001, 0x7bff};
    const Mat m = Mat::from_float16(half, 4);
    ASSERT_EQ(m.w, 4);
    EXPECT_EQ(m.dtype, DType::f32);
    EXPECT_EQ(m[0], 1.f);
    EXPECT_EQ(m[1], -2.f);
    EXPECT_EQ(m[2], ldexpf(1.f, -24));
    EXPECT_EQ(m[3], 65504.f);
    EXPECT_TRUE(Mat::from_float16(half, 0).empty());
}

namespace {

// The value of a 16-bit float of `mantissa` fraction bits, from its definition.
double value_of(unsigned short u, int mantissa, int bias) {
    const int fraction = u & ((1 << mantissa) - 1), exponents = 1 << (15 - mantissa);
    const int exponent = u >> mantissa & (exponents - 1);
    const double sign = u & 0x8000 ? -1.0 : 1.0;
    if (exponent == exponents - 1) return fraction ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * ldexp(fraction, 1 - bias - mantissa);
    return sign * ldexp(fraction + (1 << mantissa), exponent - bias - mantissa);
}

float from_bits(uint32_t u) {
    float f;
    memcpy(&f, &u, 4);
    return f;
}

// Checks that `got` is the 16-bit float nearest to f, and the even one of two.
void expect_nearest(float f, unsigned short got, int mantissa, int bias) {
    const unsigned short infinity = (unsigned short)(0x7fff & ~((1 << mantissa) - 1));
    if (f != f) {
        ASSERT_GT(got & 0x7fff, infinity);
        return;
    }
    ASSERT_EQ((got & 0x8000) != 0, signbit(f));
    const unsigned short g = got & 0x7fff;
    ASSERT_LE(g, infinity);
    // infinity stands for the power of two that would follow the largest number
    const auto at = [&](int u) {
        return u == infinity ? ldexp(1, bias + 1) : value_of((unsigned short)u, mantissa, bias);
    };
    const double a = fabs((double)f), here = at(g);
    if (std::isinf(a)) {
        ASSERT_EQ(g, infinity);
        return;
    }
    if (g < infinity) {
        const double above = (here + at(g + 1)) / 2;
        ASSERT_TRUE(a < above || (a == above && g % 2 == 0)) << f << " " << g;
    }
    if (g > 0) {
        const double below = (here + at(g - 1)) / 2;
        ASSERT_TRUE(a > below || (a == below && g % 2 == 0)) << f << " " << g;
    }
}

}  // namespace

TEST(ScalarConversions, EveryHalfAndBfloat) {
    for (int i = 0; i < 65536; i++) {
        const unsigned short u = (unsigned short)i;
        const double half = value_of(u, 10, 15), brain = value_of(u, 7, 127);
        const float h = float16_to_float32(u), b = bfloat16_to_float32(u);
        if (half != half) {
            ASSERT_TRUE(h != h) << i;
            ASSERT_EQ(float32_to_float16(h) & 0x7e00, 0x7e00) << i;
        } else {
            ASSERT_EQ((double)h, half) << i;
            ASSERT_EQ(signbit(h), (i & 0x8000) != 0) << i;
            ASSERT_EQ(float32_to_float16(h), u) << i;
        }
        if (brain != brain) {
            ASSERT_TRUE(b != b) << i;
            ASSERT_EQ(float32_to_bfloat16(b), (u | 0x40)) << i;
        } else {
            ASSERT_EQ((double)b, brain) << i;
            ASSERT_EQ(float32_to_bfloat16(b), u) << i;
        }
    }
}

// Every half and bfloat, the midpoints to the next one and their neighbours.
TEST(ScalarConversions, RoundToNearestEven) {
    for (int i = 0; i < 0x7f80; i++) {
        const uint32_t bits = (uint32_t)i << 16;
        for (int offset : {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff}) {
            const float f = from_bits(bits + offset);
            ASSERT_NO_FATAL_FAILURE(expect_nearest(f, float32_to_bfloat16(f), 7, 127));
            ASSERT_NO_FATAL_FAILURE(expect_nearest(-f, float32_to_bfloat16(-f), 7, 127));
        }
    }
    for (int i = 0; i < 0x7c00; i++) {
        const double here = value_of((unsigned short)i, 10, 15);
        const double next = i == 0x7bff ? 65536.0 : value_of((unsigned short)(i + 1), 10, 15);
        const float middle = (float)((here + next) / 2);  // exact
        for (float f : {(float)here, nextafterf((float)here, INFINITY), nextafterf(middle, 0.f),
                        middle, nextafterf(middle, INFINITY)}) {
            ASSERT_NO_FATAL_FAILURE(expect_nearest(f, float32_to_float16(f), 10, 15));
            ASSERT_NO_FATAL_FAILURE(expect_nearest(-f, float32_to_float16(-f), 10, 15));
        }
    }
}

// A stride through all floats.
TEST(ScalarConversions, AllOverTheFloats) {
    for (uint64_t u = 0; u <= 0xffffffffu; u += 9973) {
        const float f = from_bits((uint32_t)u);
        ASSERT_NO_FATAL_FAILURE(expect_nearest(f, float32_to_float16(f), 10, 15));
        ASSERT_NO_FATAL_FAILURE(expect_nearest(f, float32_to_bfloat16(f), 7, 127));
        const float want = f != f ? 0.f : fminf(127.f, fmaxf(-127.f, roundf(f)));
        ASSERT_EQ((float)float2int8(f), want) << f;
    }
}

TEST(ScalarConversions, Float2Int8) {
    const struct {
        float from;
        int to;
    } cases[] = {{0.f, 0},       {-0.f, 0},         {.5f, 1},        {-.5f, -1},
                 {1.5f, 2},      {-2.5f, -3},       {.49999997f, 0}, {-.49999997f, 0},
                 {126.5f, 127},  {126.49999f, 126}, {127.5f, 127},   {1e30f, 127},
                 {-1e30f, -127}, {NAN, 0},          {INFINITY, 127}, {-INFINITY, -127},
                 {-127.4f, -127}};
    for (const auto& c : cases) EXPECT_EQ(float2int8(c.from), c.to) << c.from;
}
