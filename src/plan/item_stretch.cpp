#include "plan/item_stretch.h"

#include <algorithm>
#include <unordered_set>

#include "layer/common/traits.h"
#include "layer/control/split.h"
#include "layer/nn/pooling.h"
#include "plan/execution_plan.h"
#include "quoll/cpu.h"

namespace quoll {

namespace {

std::vector<Shape> item_shapes(const std::vector<BlobLayout>& blobs) {
    std::vector<Shape> shapes;
    for (const BlobLayout& blob : blobs) {
        shapes.push_back(blob.shape);
        shapes.back().n = 1;
    }
    return shapes;
}

int64_t bytes_of(const std::vector<Shape>& shapes) {
    int64_t bytes = 0;
    for (const Shape& s : shapes) bytes += (int64_t)(s.total() * dtype_size(s.dtype));
    return bytes;
}

// The items of the batch that the step would compute one by one; 1: it is no such step.
int items_of(const ExecutionPlan& plan, const Layer& layer, const PlanSegment::Step& step) {
    const StepLayout& layout = step.layout;
    if (layer.typeindex < 0 || !layout.known || layout.outputs.empty() || layout.arrives.empty())
        return 1;
    const auto is_given = [&](int blob) { return plan.is_given(blob); };
    if (std::any_of(layer.tops.begin(), layer.tops.end(), is_given)) return 1;
    const int n = layout.outputs[0].shape.n;
    for (const BlobLayout& blob : layout.outputs)
        if (blob.shape.n != n || blob.shape.dims == 0) return 1;
    for (const BlobLayout& blob : layout.arrives)
        if (blob.shape.n != n && blob.shape.n != 1) return 1;
    if (!layer.support_batch) return layout.batch;
    const bool by_item = keeps_shape(layer) || as<Split>(&layer) || as<Pooling>(&layer);
    return by_item && layout.arrives[0].shape.n == n ? n : 1;
}

// What the step gains: the bytes that it reads and writes for an item, less those of its weights.
int64_t gain_of(Layer& layer, const StepLayout& layout) {
    const std::vector<Shape> in = item_shapes(layout.arrives), out = item_shapes(layout.outputs);
    const int64_t values = bytes_of(in) + bytes_of(out);
    return 2 * values - cost_of(layer, in, out).bytes;
}

// Convolutions of all items are one product. It fills the rows of tile units where items have few
// pixels, and by measurement takes as long as the items where caches of the next level hold the
// batch.
bool is_faster_whole(const Layer& layer, const PlanSegment::Step& step, int64_t cache) {
    enum { kFewPixels = 128, kNextLevel = 8 };
    if (!step.whole_batch || as<Pooling>(&layer)) return false;
    const StepLayout& layout = step.layout;
    const Shape& out = layout.outputs[0].shape;
    const int64_t item =
        std::max(bytes_of(item_shapes(layout.arrives)), bytes_of(item_shapes(layout.outputs)));
    return (int64_t)out.w * out.h * out.d < kFewPixels || item * out.n <= kNextLevel * cache;
}

void find_blobs(const ExecutionPlan& plan, const NetGraph& graph, ItemStretch* stretch) {
    std::unordered_set<int> seen;
    for (size_t at = stretch->first; at < stretch->end; at++) {
        const Layer& layer = *graph.layers[plan.order()[at]];
        for (int id : layer.bottoms)
            if (seen.insert(id).second) stretch->reads.push_back(id);
        for (int id : layer.tops) {
            seen.insert(id);
            const auto is_outside = [&](int r) { return !stretch->contains(plan.position(r)); };
            const std::vector<int>& readers = graph.consumers[id];
            if (plan.wants(id) || readers.empty() ||
                std::any_of(readers.begin(), readers.end(), is_outside))
                stretch->makes.push_back(id);
        }
    }
}

}  // namespace

// The consecutive steps that gain most in all, where a batch is too large for the caches.
ItemStretch find_item_stretch(const ExecutionPlan& plan, const NetGraph& graph,
                              const PlanSegment& segment) {
    const int64_t cache = get_cpu_level2_cache_size();
    ItemStretch best, now;
    int64_t best_gain = 0, gain = 0, largest = 0;
    int items = 1;
    for (size_t at = segment.first; at < segment.end; at++) {
        Layer& layer = *graph.layers[plan.order()[at]];
        const PlanSegment::Step& step = segment.step(at);
        const int n = items_of(plan, layer, step);
        if (n != items || n == 1 || gain <= 0) {
            now.first = at;
            gain = largest = 0, items = n;
        }
        if (n == 1) continue;
        if (is_faster_whole(layer, step, cache)) {
            items = 1;
            continue;
        }
        gain += gain_of(layer, step.layout);
        largest = std::max(largest, n * bytes_of(item_shapes(step.layout.outputs)));
        if (gain > best_gain && largest > cache && at > now.first) {
            best = now, best.end = at + 1;
            best_gain = gain;
        }
    }
    find_blobs(plan, graph, &best);
    return best;
}

}  // namespace quoll
