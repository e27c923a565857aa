// Memory plans: nothing that is alive at the same time overlaps, and little is lost.
#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "plan/memory_plan.h"

namespace quoll {
namespace {

const size_t kAlignment = 64;

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// By looking at each step.
size_t most_alive(const std::vector<MemoryRequest>& requests, int steps) {
    size_t most = 0;
    for (int step = 0; step < steps; step++) {
        size_t alive = 0;
        for (const MemoryRequest& r : requests)
            if (r.first <= step && step <= r.last) alive += aligned(r.bytes);
        most = std::max(most, alive);
    }
    return most;
}

void check(const std::vector<MemoryRequest>& requests, int steps) {
    const MemoryPlan plan = plan_memory(requests, kAlignment);
    ASSERT_EQ(requests.size(), plan.offsets.size());
    size_t end = 0, sum = 0;
    for (size_t i = 0; i < requests.size(); i++) {
        const MemoryRequest& a = requests[i];
        ASSERT_EQ(0u, plan.offsets[i] % kAlignment);
        end = std::max(end, plan.offsets[i] + aligned(a.bytes));
        sum += aligned(a.bytes);
        for (size_t k = 0; k < i; k++) {
            const MemoryRequest& b = requests[k];
            const bool together = a.first <= b.last && b.first <= a.last;
            const bool apart = plan.offsets[i] + a.bytes <= plan.offsets[k] ||
                               plan.offsets[k] + b.bytes <= plan.offsets[i];
            ASSERT_TRUE(apart || !together) << i << " and " << k;
        }
    }
    EXPECT_EQ(end, plan.bytes);
    EXPECT_EQ(sum, plan.sum);
    EXPECT_EQ(most_alive(requests, steps), plan.most_alive);
    EXPECT_GE(plan.bytes, plan.most_alive);
    EXPECT_LE(plan.bytes, plan.sum);
}

TEST(MemoryPlan, nothing_alive_overlaps) {
    std::mt19937 rng(7);
    const auto below = [&](int n) { return (int)(rng() % (unsigned)n); };
    for (int round = 0; round < 300; round++) {
        const int steps = 1 + below(40), count = below(80);
        std::vector<MemoryRequest> requests;
        for (int i = 0; i < count; i++) {
            const int first = below(steps);
            // Most blobs are short-lived; sizes are often the same.
            const int last = std::min(steps - 1, first + (below(4) ? below(3) : below(steps)));
            const size_t bytes = below(3) ? (size_t)1 << below(16) : (size_t)1 + below(50000);
            requests.push_back({bytes, first, last});
        }
        check(requests, steps);
        if (HasFatalFailure()) return;
    }
}

// A chain in which two blobs are alive at a time needs what its two largest neighbours do.
TEST(MemoryPlan, chains_need_what_is_alive) {
    std::vector<MemoryRequest> chain;
    for (int i = 0; i < 50; i++) chain.push_back({(size_t)64 * (1 + i * 37 % 50), i, i + 1});
    const MemoryPlan plan = plan_memory(chain, kAlignment);
    EXPECT_EQ(plan.most_alive, plan.bytes);
    EXPECT_LT(plan.bytes * 10, plan.sum);
}

TEST(MemoryPlan, of_nothing) {
    const MemoryPlan plan = plan_memory({}, kAlignment);
    EXPECT_TRUE(plan.offsets.empty());
    EXPECT_EQ(0u, plan.bytes + plan.sum + plan.most_alive);
}

}  // namespace
}  // namespace quoll
