#include "plan/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace quoll {

namespace {

struct Placed {
    size_t begin, end;
    int first, last;
};

// The offset of the smallest gap of at least `bytes` between blocks that live at the same time, or
// the end of the last of them. placed: ascending by begin.
size_t find_gap(const std::vector<Placed>& placed, const MemoryRequest& request, size_t bytes) {
    size_t end = 0, best = 0, smallest = (size_t)-1;
    for (const Placed& p : placed) {
        if (p.last < request.first || p.first > request.last) continue;
        if (p.begin >= end + bytes && p.begin - end < smallest) {
            smallest = p.begin - end;
            best = end;
        }
        end = std::max(end, p.end);
    }
    return smallest == (size_t)-1 ? end : best;
}

size_t most_alive(const std::vector<MemoryRequest>& requests, const std::vector<size_t>& sizes) {
    int steps = 0;
    for (const MemoryRequest& r : requests) steps = std::max(steps, r.last + 1);
    std::vector<size_t> begun(steps + 1, 0), ended(steps + 1, 0);
    for (size_t i = 0; i < requests.size(); i++) {
        begun[requests[i].first] += sizes[i];
        ended[requests[i].last + 1] += sizes[i];
    }
    size_t alive = 0, most = 0;
    for (int step = 0; step <= steps; step++) {
        alive += begun[step] - ended[step];
        most = std::max(most, alive);
    }
    return most;
}

}  // namespace

MemoryPlan plan_memory(const std::vector<MemoryRequest>& requests, size_t alignment) {
    MemoryPlan plan;
    plan.offsets.assign(requests.size(), 0);
    std::vector<size_t> sizes;
    for (const MemoryRequest& r : requests) {
        sizes.push_back((r.bytes + alignment - 1) & ~(alignment - 1));
        plan.sum += sizes.back();
    }
    std::vector<size_t> order(requests.size());
    std::iota(order.begin(), order.end(), (size_t)0);
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return sizes[a] != sizes[b] ? sizes[a] > sizes[b] : a < b;
    });
    std::vector<Placed> placed;
    for (size_t i : order) {
        const MemoryRequest& r = requests[i];
        const size_t begin = find_gap(placed, r, sizes[i]);
        const Placed at = {begin, begin + sizes[i], r.first, r.last};
        placed.insert(
            std::upper_bound(placed.begin(), placed.end(), at,
                             [](const Placed& a, const Placed& b) { return a.begin < b.begin; }),
            at);
        plan.offsets[i] = begin;
        plan.bytes = std::max(plan.bytes, at.end);
    }
    plan.most_alive = most_alive(requests, sizes);
    return plan;
}

}  // namespace quoll
