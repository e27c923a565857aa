// Batches for layers that take one item at a time.
#include <string.h>

#include <atomic>

#include "layer/common/tensor.h"
#include "plan/batch_slot.h"
#include "plan/executor.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// Makes a batch of n items of this layout; empty if these have no values.
void create_batch(const BlobLayout& item, int n, const Option& opt, Mat* all) {
    Shape shape = item.shape;
    shape.n = n;
    if (shape.dims && shape.total() > 0) all->create(shape, item.elempack, opt.blob_allocator);
}

bool has_items_like(const Mat& all, const Mat& m) {
    return all.dims == m.dims && all.w == m.w && all.h == m.h && all.d == m.d && all.c == m.c &&
           all.elempack == m.elempack && all.dtype == m.dtype;
}

char* item_of(const Mat& all, int b) { return (char*)all.data + b * all.nstep * all.elemsize; }

bool is_in_place(const Mat& m, const Mat& all, int b) {
    return m.data == item_of(all, b) && m.cstep == all.cstep && has_items_like(all, m);
}

void copy_item(const Mat& m, int b, Mat* all) {
    for (int q = 0; q < m.c; q++)
        memcpy(item_of(*all, b) + q * all->cstep * all->elemsize,
               (const char*)m.data + q * m.cstep * m.elemsize,
               (size_t)m.w * m.h * m.d * m.elemsize);
}

}  // namespace

// Makes the outputs for a batch of no items: the sizes of one item, with n 0.
int Executor::forward_no_items(const Layer& layer) {
    std::vector<Shape> in = shapes_of(layer_inputs_), out;
    for (Shape& s : in) s.n = 1;
    QUOLL_RETURN_IF_ERROR(layer.infer_empty_shapes(in, out));
    layer_outputs_.resize(out.size());
    for (size_t i = 0; i < out.size(); i++) {
        if (out[i].dims == 0) return layer.fail("an input has no values");
        out[i].n = 0;
        QUOLL_RETURN_IF_ERROR(create_tensor(out[i], &layer_outputs_[i], opt));
    }
    return kOk;
}

// Sets layer_outputs_[0] where what the layer makes of the batch is known. True if that is an
// input, in whose memory the layer may work.
bool Executor::begin_batch(const Step& step, int n) {
    const StepLayout& layout = step.sized.layout;
    if (!layout.known || layout.batch != n) return false;
    const int over = layout.overwritten;
    if (over >= 0 && owned_alone(layer_inputs_) &&
        lies_as(layer_inputs_[over], layout.outputs[0])) {
        layer_outputs_[0] = layer_inputs_[over];
        return true;
    }
    create_batch(layout.makes[0], n, opt, &layer_outputs_[0]);
    return false;
}

// Runs the layer for each item, and has the results in one Mat; inputs with n = 1 serve every item.
int Executor::forward_batch(const Step& step, int n) {
    const Layer& layer = *graph_->layers[step.layer];
    for (const Mat& m : layer_inputs_)
        if (m.n != 1 && m.n != n) return layer.fail("inputs with batch counts %d and %d", m.n, n);
    layer_outputs_.assign(layer.tops.size(), Mat());
    BatchSlot slot(opt.blob_allocator);
    Option with = opt;
    const bool into_batch = writes_into_batch(layer);
    if (into_batch) with.blob_allocator = slot.allocator();
    const bool inplace = into_batch && begin_batch(step, n);
    if (plans_batch(layer) && step.sized.whole_batch &&
        (!into_batch || !layer_outputs_[0].empty())) {
        const int status = forward_whole(step);
        if (status != kOneByOne) return status;
    }
    if (QUOLL_THREADS && step.sized.items.pieces > 1 && !layer_outputs_[0].empty()) {
        bool as_planned;
        QUOLL_RETURN_IF_ERROR(forward_items(step, n, &as_planned));
        if (as_planned) return kOk;
    }
    for (int b = 0; b < n; b++) {
        std::vector<Mat> bottoms, tops(layer.tops.size());
        for (const Mat& m : layer_inputs_) bottoms.push_back(m.n == 1 ? m : m.batch(b));
        if (into_batch && !inplace) slot.offer(layer_outputs_[0], b, &tops[0]);
        QUOLL_RETURN_IF_ERROR(forward(layer, &step.sized, &bottoms, &tops, inplace, with));
        layer_outputs_.resize(tops.size());
        for (size_t i = 0; i < tops.size(); i++) {
            if (slot.holds(tops[i]) && !is_in_place(tops[i], layer_outputs_[i], b))
                tops[i] = tops[i].clone(opt.workspace_allocator);
            QUOLL_RETURN_IF_ERROR(stack_item(layer, tops[i], b, n, i));
        }
    }
    return kOk;
}

// All items at once; or kOneByOne.
int Executor::forward_whole(const Step& step) {
    const Layer& layer = *graph_->layers[step.layer];
    // Blobs may have other sizes than the shape rules of the layers before said.
    if (shapes_of(layer_inputs_) != step.sized.inputs) return kOneByOne;
    const Option with = layer.featmask ? masked_options(layer, opt) : opt;
    return layer.forward_planned(*step.sized.plan, layer_inputs_, layer_outputs_, false, with);
}

// Side by side. *as_planned: all items' output is what was expected; else it is lost.
int Executor::forward_items(const Step& step, int n, bool* as_planned) {
    const Layer& layer = *graph_->layers[step.layer];
    Mat& all = layer_outputs_[0];
    SharedAllocator blob_allocator(opt.blob_allocator);
    const SideBySide items = step.sized.items;
    const bool pooled = arena_ && opt.workspace_allocator == arena_->workspace() &&
                        arena_->make_item_pools(items.pieces);
    std::atomic<int> status(kOk);
    std::atomic<bool> alike(true);
    run_tasks_in_teams(n, items.pieces, items.threads, [&](int64_t b, int team) {
        if (status != kOk || !alike) return;
        BatchSlot slot(&blob_allocator);
        Option with = opt;
        with.num_threads = items.threads;
        with.blob_allocator = slot.allocator();
        if (pooled) with.workspace_allocator = arena_->item_pool(team);
        std::vector<Mat> bottoms, tops(1);
        for (const Mat& m : layer_inputs_) bottoms.push_back(m.n == 1 ? m : m.batch((int)b));
        slot.offer(all, (int)b, &tops[0]);
        const int result = forward(layer, &step.sized, &bottoms, &tops, false, with);
        if (result != kOk)
            status = result;
        else if (tops.size() != 1 || !has_items_like(all, tops[0]))
            alike = false;
        else if (!is_in_place(tops[0], all, (int)b))
            copy_item(tops[0], (int)b, &all);
    });
    *as_planned = alike;
    return status;
}

// Puts output i of item b of n into its place in layer_outputs_, unless it is there already.
int Executor::stack_item(const Layer& layer, const Mat& m, int b, int n, size_t i) {
    Mat& all = layer_outputs_[i];
    if (is_in_place(m, all, b)) return kOk;
    if (b == 0 && !has_items_like(all, m)) {
        Shape shape = m.logical_shape();
        shape.n = n;
        if (m.dims > 0 && shape.total() == 0) return create_tensor(shape, &all, opt);
        all.release();
        create_batch(layout_of(m), n, opt, &all);
        if (all.empty()) return kOutOfMemory;
    }
    if (!has_items_like(all, m))
        return layer.fail("output %zu has another shape for batch item %d", i, b);
    copy_item(m, b, &all);
    return kOk;
}

}  // namespace quoll
