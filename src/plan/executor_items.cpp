// Stretches of steps for one item of a batch after the other (plan/item_stretch.h).
#include <string.h>

#include <algorithm>

#include "plan/executor.h"

namespace quoll {

// The blobs that are read have to be there, of one item or of all.
bool Executor::runs_items(const ItemStretch& items) const {
    if (items.first == items.end || !opt.lightmode || depth_ > 0) return false;
    int n = 1;
    for (int id : items.reads) n = std::max(n, blobs[id].n);
    for (int id : items.reads)
        if (blobs[id].empty() || (blobs[id].n != 1 && blobs[id].n != n)) return false;
    for (int id : items.makes)
        if (blobs[id].dims != 0) return false;
    return n > 1;
}

int Executor::run_items(const ExecutionPlan& plan, const ItemStretch& items) {
    int n = 1;
    for (int id : items.reads) n = std::max(n, blobs[id].n);
    Option with = opt;
    if (arena_) with.blob_allocator = &buffers_->pool;
    if (arena_ && opt.workspace_allocator == arena_->workspace())
        with.workspace_allocator = &buffers_->pool;
    if (!item_run_) item_run_ = std::make_shared<Executor>(*graph_, *plans_, buffers_, with);
    item_run_->opt = with;
    for (int b = 0; b < n; b++) {
        QUOLL_RETURN_IF_ERROR(run_item(items, b));
        QUOLL_RETURN_IF_ERROR(keep_item(items, b, n));
    }
    item_run_->reset();
    leave_items(plan, items);
    return kOk;
}

int Executor::run_item(const ItemStretch& items, int b) {
    Executor& run = *item_run_;
    run.reset();
    for (int id : items.reads) run.blobs[id] = blobs[id].n == 1 ? blobs[id] : blobs[id].batch(b);
    const int status = run.run_for(items.makes);
    run.end_run();
    return status;
}

// Copies what was made for the item to its place.
int Executor::keep_item(const ItemStretch& items, int b, int n) {
    for (int id : items.makes) {
        const Mat& m = item_run_->blobs[id];
        Mat& all = blobs[id];
        if (b == 0) {
            Shape shape = m.logical_shape();
            shape.n = n;
            all.create(shape, m.elempack, opt.blob_allocator);
            if (all.empty()) return kOutOfMemory;
        }
        Mat place = all.batch(b);
        const bool alike = m.logical_shape() == place.logical_shape() && m.elempack == all.elempack;
        if (!alike || m.empty())
            return graph_->layers[graph_->blobs[id].producer]->fail(
                "the output has another shape for batch item %d", b);
        for (int q = 0; q < m.c; q++) {
            const Mat from = m.channel(q);
            memcpy(place.channel(q).data, from.data, (size_t)m.w * m.h * m.d * m.elemsize);
        }
    }
    return kOk;
}

// Frees what nobody reads any more.
void Executor::leave_items(const ExecutionPlan& plan, const ItemStretch& items) {
    for (size_t at = items.first; at < items.end; at++) has_run[plan.order()[at]] = 1;
    const PlanSegment::Step none;
    for (size_t at = items.first; at < items.end; at++) {
        const int index = plan.order()[at];
        const std::vector<int>& bottoms = graph_->layers[index]->bottoms;
        for (size_t i = 0; i < bottoms.size(); i++)
            if (is_read_no_more({plan, at, none, false, index, nullptr}, i))
                blobs[bottoms[i]].release();
    }
}

}  // namespace quoll
