// fast_malloc, the pool allocators, allocators of users.
#include "quoll/allocator.h"

#include <gtest/gtest.h>
#include <math.h>
#include <stdint.h>
#if defined(__linux__)
#include <unistd.h>
#endif

#include <atomic>
#include <thread>
#include <vector>

#include "mat_helpers.h"

using namespace quoll;

namespace {

bool aligned(const void* p) { return p && (uintptr_t)p % kMallocAlign == 0; }

}  // namespace

TEST(FastMalloc, AlignedAndReadablePastTheEnd) {
    for (size_t size : {0, 1, 63, 64, 65, 1000, 1 << 20}) {
        unsigned char* p = (unsigned char*)fast_malloc(size);
        ASSERT_TRUE(aligned(p)) << size;
        memset(p, 1, size + kMallocOverread);  // under a sanitizer this fails if it is not there
        fast_free(p);
    }
    fast_free(nullptr);
}

TEST(FastMalloc, AbsurdSizes) {
    EXPECT_EQ(nullptr, fast_malloc(SIZE_MAX));
    EXPECT_EQ(nullptr, fast_malloc(SIZE_MAX - kMallocOverread));
    EXPECT_EQ(nullptr, fast_malloc(SIZE_MAX / 2));
}

#if defined(__linux__)
// Each would fit, and nothing is touched; which are refused does not depend on what came before.
TEST(FastMalloc, BlocksThatDoNotFitTogether) {
    const size_t block = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE) / 5 * 2;
    size_t had[2] = {};
    for (size_t& count : had) {
        std::vector<void*> blocks;
        while (void* p = fast_malloc(block)) blocks.push_back(p);
        count = blocks.size();
        for (void* p : blocks) fast_free(p);
    }
    EXPECT_LE(had[0], 2u);
    EXPECT_EQ(had[0], had[1]);
    void* const small = fast_malloc(1 << 20);
    EXPECT_NE(nullptr, small);
    fast_free(small);
}
#endif

TEST(AlignSize, RoundsUp) {
    EXPECT_EQ(0u, align_size(0, 16));
    EXPECT_EQ(16u, align_size(1, 16));
    EXPECT_EQ(16u, align_size(16, 16));
    EXPECT_EQ(32u, align_size(17, 16));
}

template <class Pool>
class PoolTest : public ::testing::Test {};
typedef ::testing::Types<PoolAllocator, UnlockedPoolAllocator> Pools;
TYPED_TEST_SUITE(PoolTest, Pools);

TYPED_TEST(PoolTest, ReusesBlocksOfSimilarSize) {
    TypeParam pool;
    void* a = pool.fastMalloc(1000);
    ASSERT_TRUE(aligned(a));
    pool.fastFree(a);
    EXPECT_EQ(a, pool.fastMalloc(1000));
    pool.fastFree(a);
    EXPECT_EQ(a, pool.fastMalloc(750));  // the ratio is 0.75
    pool.fastFree(a);
    void* smaller = pool.fastMalloc(749);
    void* larger = pool.fastMalloc(1001);
    EXPECT_NE(a, smaller);
    EXPECT_NE(a, larger);
    pool.fastFree(smaller);
    pool.fastFree(larger);
}

TYPED_TEST(PoolTest, BlocksInUseAreDistinctAndWritable) {
    TypeParam pool;
    std::vector<unsigned char*> blocks;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 20; i++) {
            unsigned char* p = (unsigned char*)pool.fastMalloc(100 + i * 7);
            ASSERT_TRUE(aligned(p));
            memset(p, i, 100 + i * 7);
            blocks.push_back(p);
        }
        for (int i = 0; i < 20; i++) {
            EXPECT_EQ(blocks[i][0], i);
            EXPECT_EQ(blocks[i][99 + i * 7], i);
            pool.fastFree(blocks[i]);
        }
        blocks.clear();
    }
}

TYPED_TEST(PoolTest, CompareRatio) {
    TypeParam pool;
    pool.set_size_compare_ratio(0.f);  // any larger block serves
    void* a = pool.fastMalloc(1 << 16);
    pool.fastFree(a);
    EXPECT_EQ(a, pool.fastMalloc(1));
    pool.fastFree(a);
    pool.set_size_compare_ratio(1.f);  // only the same size does
    void* b = pool.fastMalloc((1 << 16) - 1);
    EXPECT_NE(a, b);
    pool.fastFree(b);
    LogCapture log;
    pool.set_size_compare_ratio(1.5f);
    pool.set_size_compare_ratio(-1.f);
    pool.set_size_compare_ratio(NAN);
    EXPECT_EQ(3u, log.messages.size());
    EXPECT_EQ(b, pool.fastMalloc((1 << 16) - 1));
    pool.fastFree(b);
}

TYPED_TEST(PoolTest, ClearKeepsBlocksInUse) {
    TypeParam pool;
    unsigned char* used = (unsigned char*)pool.fastMalloc(5000);
    pool.fastFree(pool.fastMalloc(3000));
    pool.clear();
    memset(used, 1, 5000);
    pool.fastFree(used);
    EXPECT_EQ(used, pool.fastMalloc(5000));
    pool.fastFree(used);
    pool.clear();
    pool.clear();
}

// At the threshold a request that nothing serves costs the largest kept block, or the smallest when
// all are too small; the other one is still there.
TYPED_TEST(PoolTest, DropThreshold) {
    struct {
        size_t dropped, kept;
    } const cases[] = {{100000, 1000}, {1000, 2000}};
    for (const auto& c : cases) {
        TypeParam pool;
        pool.set_size_drop_threshold(2);
        void *dropped = pool.fastMalloc(c.dropped), *kept = pool.fastMalloc(c.kept);
        pool.fastFree(dropped);
        pool.fastFree(kept);
        void* other = pool.fastMalloc(50000);
        EXPECT_EQ(kept, pool.fastMalloc(c.kept));
        pool.fastFree(other);
        pool.fastFree(kept);
    }
}

TYPED_TEST(PoolTest, AbsurdSizeAfterSmallOnes) {
    TypeParam pool;
    void* a = pool.fastMalloc(100);
    EXPECT_EQ(nullptr, pool.fastMalloc(SIZE_MAX));
    pool.fastFree(a);
    EXPECT_EQ(nullptr, pool.fastMalloc(SIZE_MAX));
    void* b = pool.fastMalloc(100);
    EXPECT_TRUE(aligned(b));
    pool.fastFree(b);
}

TYPED_TEST(PoolTest, ForeignAndForgottenBlocksAreReported) {
    LogCapture log;
    void* lost;
    {
        TypeParam pool;
        int not_a_block;
        pool.fastFree(&not_a_block);
        pool.fastFree(nullptr);
        EXPECT_EQ(1u, log.messages.size());
        lost = pool.fastMalloc(100);
    }
    EXPECT_TRUE(log.contains("in use"));
    fast_free(lost);  // the pool leaves it to its owner
}

TYPED_TEST(PoolTest, MatsUseIt) {
    TypeParam pool;
    void* data;
    {
        Mat m(30, 20, 3, (size_t)4u, &pool);
        data = m.data;
        m.fill(1.f);
        Mat other = m;
        m.release();
        EXPECT_EQ(other[0], 1.f);
        Mat copy = other.clone(&pool);
        EXPECT_NE(copy.data, data);
    }
    const Mat again(30, 20, 3, (size_t)4u, &pool);
    EXPECT_TRUE(aligned(again.data));
}

TEST(PoolAllocatorThreads, SharedBetweenThreads) {
    PoolAllocator pool;
    std::vector<std::thread> threads;
    std::atomic<int> wrong(0);
    for (int t = 0; t < 4; t++) {
        threads.emplace_back([&pool, &wrong, t] {
            for (int i = 0; i < 500; i++) {
                const int size = 64 + (i * 37 + t) % 1000;
                unsigned char* p = (unsigned char*)pool.fastMalloc(size);
                memset(p, t, size);
                for (int k = 0; k < size; k++) wrong += p[k] != t;
                pool.fastFree(p);
            }
        });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(0, wrong);
}

TEST(UserAllocator, MatsAskItAndGiveBack) {
    TestAllocator allocator;
    {
        Mat a(10, (size_t)4u, &allocator);
        EXPECT_EQ(1, allocator.in_use);
        Mat b = a, c = std::move(a);
        EXPECT_EQ(1, allocator.in_use);
        b.create(11, (size_t)4u, &allocator);
        EXPECT_EQ(2, allocator.in_use);
        c.create(10, (size_t)4u, &allocator);  // same size, sole owner: kept
        EXPECT_EQ(2, allocator.requests);
        Mat d = c.reshape(5, 2, &allocator).clone(&allocator);
        EXPECT_EQ(3, allocator.in_use);
    }
    EXPECT_EQ(0, allocator.in_use);
}

TEST(UserAllocator, FailureLeavesTheMatEmpty) {
    TestAllocator allocator;
    allocator.fail_from = 0;
    LogCapture log;
    Mat m(10, 10, (size_t)4u, &allocator);
    EXPECT_TRUE(m.empty());
    EXPECT_EQ(m.dims, 0);
    EXPECT_TRUE(log.contains("out of memory"));
    const Mat source = random_values(Shape(3, 3, 3), 1, 1);
    EXPECT_TRUE(source.clone(&allocator).empty());
    EXPECT_TRUE(source.reshape(27, &allocator).empty());  // gaps between channels: a copy
    EXPECT_EQ(0, allocator.in_use);
}
