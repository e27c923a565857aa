#include "plan/elided_concats.h"

#include "layer/common/built_layers.h"
#include "layer/common/elempack.h"
#include "layer/common/stored.h"
#include "runtime/ref_count.h"

namespace quoll {

void ElidedConcats::begin(const std::shared_ptr<const ConcatElision>& plan,
                          const std::vector<Layer*>& layers, const std::vector<int>& order,
                          const Option& opt) {
    end();
    if (!kIsBuilt<Concat> || !plan || plan->roots.empty()) return;
    plan_ = plan;
    layers_ = &layers;
    allocator_ = opt.blob_allocator;
    stored_ = storage_type(opt);
    blocks_.resize(plan->roots.size());
    open_.assign(layers.size(), 0);
    taken_.assign(plan->aliases.size(), 0);
    // A Concat comes after those whose outputs it joins.
    for (size_t i = order.size(); i-- > 0;) {
        const std::vector<int>& tops = layers[order[i]]->tops;
        if (tops.size() != 1 || plan->aliases[tops[0]].root < 0) continue;
        const ConcatElision::Alias& alias = plan->aliases[tops[0]];
        open_[order[i]] = alias.has_parts && (alias.concat == order[i] || open_[alias.concat]);
    }
}

void ElidedConcats::end() {
    plan_.reset();
    for (Block& block : blocks_) block = Block();
}

void ElidedConcats::fastFree(void* ptr) {
    if (ptr != &count_) allocator_->fastFree(ptr);
}

// Null if the layer's output has no alias in this run.
const ConcatElision::Alias* ElidedConcats::alias_of(int index) const {
    if (!kIsBuilt<Concat> || !plan_ || (*layers_)[index]->tops.size() != 1) return nullptr;
    const ConcatElision::Alias& alias = plan_->aliases[(*layers_)[index]->tops[0]];
    const bool there = alias.root >= 0 && open_[alias.concat] && !blocks_[alias.root].lost;
    return there ? &alias : nullptr;
}

bool ElidedConcats::at(const ConcatElision::Alias& alias, const Mat& m) const {
    Mat there;
    return share_channels(blocks_[alias.root].mat, alias.first, alias.count, &there) &&
           m.data == there.data && m.elempack == there.elempack && m.cstep == there.cstep &&
           m.logical_shape() == there.logical_shape();
}

// Whether all that is in a Concat's part of the block is where the Concat expects it.
bool ElidedConcats::inputs_are_aliased(int index, const std::vector<Mat>& inputs) const {
    const std::vector<int>& ids = (*layers_)[index]->bottoms;
    int first = plan_->aliases[(*layers_)[index]->tops[0]].first;
    for (size_t i = 0; i < ids.size() && i < inputs.size(); i++) {
        const ConcatElision::Alias& alias = plan_->aliases[ids[i]];
        if (alias.root >= 0 && alias.concat == index) {
            const bool there = taken(ids[i]) && alias.first == first && at(alias, inputs[i]);
            if (!there && (taken(ids[i]) || alias.has_parts)) return false;
        }
        if (inputs[i].dims > 0) first += inputs[i].logical_shape().size(0);
    }
    return true;
}

bool ElidedConcats::taken(int blob) const {
    const int source = plan_->aliases[blob].source;
    return taken_[source < 0 ? blob : source];
}

// Whether every Mat that shares the block of this layer's output is known to be in an alias of its
// own.
bool ElidedConcats::read_in_aliases_only(int index, const std::vector<Mat>& inputs,
                                         const std::vector<Mat>& blobs) const {
    const Layer& layer = *(*layers_)[index];
    const int root = plan_->aliases[layer.tops[0]].root;
    const Mat& whole = blocks_[root].mat;
    int known = 1;
    const auto count = [&](int id, const Mat& m) {
        const ConcatElision::Alias& alias = plan_->aliases[id];
        known += m.refcount == whole.refcount && alias.root == root && !alias.overlaps &&
                 taken(id) && at(alias, m);
    };
    for (size_t i = 0; i < blobs.size(); i++) count((int)i, blobs[i]);
    for (size_t i = 0; i < inputs.size(); i++) count(layer.bottoms[i], inputs[i]);
    return references(whole.refcount) == known;
}

void ElidedConcats::lose(Block* block) {
    block->mat.release();
    block->lost = true;
}

bool ElidedConcats::offer(int index, const std::vector<Mat>& inputs, const std::vector<Mat>& blobs,
                          Mat* top, Option* opt) {
    const ConcatElision::Alias* alias = alias_of(index);
    if (!alias) return false;
    Block& block = blocks_[alias->root];
    if (!block.mat.empty()) {
        if (alias->overlaps) return false;  // the others may have been filled
        if (!inputs_are_aliased(index, inputs) ||
            (block.overlapped && !read_in_aliases_only(index, inputs, blobs)))
            lose(&block);
        block.overlapped = false;
    }
    if (block.lost) return false;
    if (block.mat.empty()) {
        const ConcatElision::Root& root = plan_->roots[alias->root];
        Shape shape = root.shape;
        if (shape.dtype == DType::f32) shape.dtype = stored_;
        block.mat.create(shape, root.elempack, allocator_);
    }
    if (block.mat.empty() || !share_channels(block.mat, alias->first, alias->count, top)) {
        lose(&block);
        return false;
    }
    drop_reference(top->refcount);
    top->refcount = &count_;
    top->allocator = opt->blob_allocator = this;
    count_ = 1;
    return true;
}

void ElidedConcats::settle(int index, Mat* top) {
    const ConcatElision::Alias& alias = *alias_of(index);
    Block& block = blocks_[alias.root];
    bool taken = false;
    if (top->refcount == &count_) {
        top->refcount = block.mat.refcount;
        top->addref();
        taken = at(alias, *top);
        if (!taken) lose(&block);
    }
    if (top->allocator == this) top->allocator = allocator_;
    taken_[(*layers_)[index]->tops[0]] = taken;
    block.overlapped |= taken && alias.overlaps;
    if (alias.concat == index) lose(&block);
}

}  // namespace quoll
