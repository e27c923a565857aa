// Keys and values that SDPA hands out for the next step (Option::use_growing_cache).
#include <vector>

#include <gtest/gtest.h>

#include "mat_helpers.h"
#include "quoll/net.h"

namespace {

using namespace quoll;

const char* const kGraph =
    "7767517\n6 8\nInput q 0 1 q\nInput k 0 1 k\nInput v 0 1 v\nInput past_k 0 1 past_k\n"
    "Input past_v 0 1 past_v\nSDPA sdpa 5 3 q k v past_k past_v out all_k all_v 7=1\n";

struct Step {
    Mat out, keys, values;
};

class CacheNet {
public:
    CacheNet(bool growing, bool bf16) {
        net_.opt.use_growing_cache = growing;
        net_.opt.use_bf16_storage = bf16;
        EXPECT_EQ(0, net_.load_param_mem(kGraph));
    }
    // `rows` more positions, with random inputs.
    Step run(const Step& past, int rows, unsigned seed) const {
        Extractor ex = net_.create_extractor();
        EXPECT_EQ(0, ex.input("q", random_values(Shape(8, rows, 4), 1, seed)));
        EXPECT_EQ(0, ex.input("k", random_values(Shape(8, rows, 2), 1, seed + 1)));
        EXPECT_EQ(0, ex.input("v", random_values(Shape(12, rows, 2), 1, seed + 2)));
        if (!past.keys.empty()) {
            EXPECT_EQ(0, ex.input("past_k", past.keys));
            EXPECT_EQ(0, ex.input("past_v", past.values));
        }
        Step step;
        EXPECT_EQ(0, ex.extract("out", step.out));
        EXPECT_EQ(0, ex.extract("all_k", step.keys));
        EXPECT_EQ(0, ex.extract("all_v", step.values));
        return step;
    }

private:
    Net net_;
};

class Cache : public testing::TestWithParam<bool> {};

}  // namespace

// The same answers as with caches that are copied in each step, from the same memory.
TEST_P(Cache, grows_in_place) {
    const CacheNet growing(true, GetParam()), copied(false, GetParam());
    Step a = growing.run(Step(), 5, 1), b = copied.run(Step(), 5, 1);
    for (int step = 0; step < 90; step++) {
        SCOPED_TRACE(step);
        const Step next = growing.run(a, 1, 10 * step), want = copied.run(b, 1, 10 * step);
        ASSERT_EQ(6 + step, next.keys.h);
        ASSERT_EQ(0, count_differences(next.out, want.out));
        ASSERT_EQ(0, count_differences(next.keys, want.keys));
        ASSERT_EQ(0, count_differences(next.values, want.values));
        EXPECT_NE(want.keys.data, b.keys.data);
        // Room for 32 rows at first.
        if (step < 30) {
            EXPECT_EQ(a.keys.data, next.keys.data);
            EXPECT_EQ(a.values.data, next.values.data);
        }
        a = next, b = want;
    }
}

// Two continuations of one cache do not see each other's rows.
TEST_P(Cache, forks) {
    const CacheNet growing(true, GetParam()), copied(false, GetParam());
    const Step first = growing.run(Step(), 7, 1), same = copied.run(Step(), 7, 1);
    const Mat keys = first.keys.clone();
    const Step left = growing.run(first, 2, 20), right = growing.run(first, 3, 30);
    EXPECT_NE(left.keys.data, right.keys.data);
    EXPECT_EQ(0, count_differences(keys, first.keys));
    const Step want_left = copied.run(same, 2, 20), want_right = copied.run(same, 3, 30);
    EXPECT_EQ(0, count_differences(left.keys, want_left.keys));
    EXPECT_EQ(0, count_differences(right.values, want_right.values));
    EXPECT_EQ(0, count_differences(left.out, want_left.out));
    EXPECT_EQ(0, count_differences(right.out, want_right.out));
}

INSTANTIATE_TEST_SUITE_P(Storage, Cache, testing::Bool(),
                         [](const auto& info) { return info.param ? "bf16" : "fp32"; });
