#include "plan/places.h"

#include "layer/common/elempack.h"

namespace quoll {

void Places::begin(const std::shared_ptr<const PlacePlan>& plan, const std::vector<Layer*>& layers,
                   const std::vector<int>& order, const Option& opt) {
    end();
    if (!plan || plan->roots.empty()) return;
    plan_ = plan;
    layers_ = &layers;
    allocator_ = opt.blob_allocator;
    stored_ = opt.use_fp16_storage ? DType::f16 : opt.use_bf16_storage ? DType::bf16 : DType::f32;
    blocks_.resize(plan->roots.size());
    open_.assign(layers.size(), 0);
    taken_.assign(plan->places.size(), 0);
    // A Concat comes after those whose outputs it joins.
    for (size_t i = order.size(); i-- > 0;) {
        const std::vector<int>& tops = layers[order[i]]->tops;
        if (tops.size() != 1 || plan->places[tops[0]].root < 0) continue;
        const PlacePlan::Place& place = plan->places[tops[0]];
        open_[order[i]] = place.has_parts && (place.concat == order[i] || open_[place.concat]);
    }
}

void Places::end() {
    plan_.reset();
    for (Block& block : blocks_) block = Block();
}

void Places::fastFree(void* ptr) {
    if (ptr != &count_) allocator_->fastFree(ptr);
}

// Null if the layer's output has none in this run.
const PlacePlan::Place* Places::place_of(int index) const {
    if (!plan_ || (*layers_)[index]->tops.size() != 1) return nullptr;
    const PlacePlan::Place& place = plan_->places[(*layers_)[index]->tops[0]];
    const bool there = place.root >= 0 && open_[place.concat] && !blocks_[place.root].lost;
    return there ? &place : nullptr;
}

bool Places::at(const PlacePlan::Place& place, const Mat& m) const {
    Mat there;
    return share_channels(blocks_[place.root].mat, place.first, place.count, &there) &&
           m.data == there.data && m.elempack == there.elempack && m.cstep == there.cstep &&
           m.logical_shape() == there.logical_shape();
}

// Whether a Concat finds all that lies in its part of the block where it expects it.
bool Places::inputs_at_place(int index, const std::vector<Mat>& inputs) const {
    const std::vector<int>& ids = (*layers_)[index]->bottoms;
    int first = plan_->places[(*layers_)[index]->tops[0]].first;
    for (size_t i = 0; i < ids.size() && i < inputs.size(); i++) {
        const PlacePlan::Place& place = plan_->places[ids[i]];
        if (place.root >= 0 && place.concat == index) {
            const bool there = taken(ids[i]) && place.first == first && at(place, inputs[i]);
            if (!there && (taken(ids[i]) || place.has_parts)) return false;
        }
        if (inputs[i].dims > 0) first += inputs[i].logical_shape().size(0);
    }
    return true;
}

bool Places::taken(int blob) const {
    const int source = plan_->places[blob].source;
    return taken_[source < 0 ? blob : source];
}

// Whether every Mat that shares the block of this layer's output is known to lie in a place of its
// own.
bool Places::read_in_places_only(int index, const std::vector<Mat>& inputs,
                                 const std::vector<Mat>& blobs) const {
    const Layer& layer = *(*layers_)[index];
    const int root = plan_->places[layer.tops[0]].root;
    const Mat& whole = blocks_[root].mat;
    int known = 1;
    const auto count = [&](int id, const Mat& m) {
        const PlacePlan::Place& place = plan_->places[id];
        known += m.refcount == whole.refcount && place.root == root && !place.overlaps &&
                 taken(id) && at(place, m);
    };
    for (size_t i = 0; i < blobs.size(); i++) count((int)i, blobs[i]);
    for (size_t i = 0; i < inputs.size(); i++) count(layer.bottoms[i], inputs[i]);
    return whole.refcount->load() == known;
}

void Places::lose(Block* block) {
    block->mat.release();
    block->lost = true;
}

bool Places::offer(int index, const std::vector<Mat>& inputs, const std::vector<Mat>& blobs,
                   Mat* top, Option* opt) {
    const PlacePlan::Place* place = place_of(index);
    if (!place) return false;
    Block& block = blocks_[place->root];
    if (!block.mat.empty()) {
        if (place->overlaps) return false;  // the others may have been filled
        if (!inputs_at_place(index, inputs) ||
            (block.overlapped && !read_in_places_only(index, inputs, blobs)))
            lose(&block);
        block.overlapped = false;
    }
    if (block.lost) return false;
    if (block.mat.empty()) {
        const PlacePlan::Root& root = plan_->roots[place->root];
        Shape shape = root.shape;
        if (shape.dtype == DType::f32) shape.dtype = stored_;
        block.mat.create(shape, root.elempack, allocator_);
    }
    if (block.mat.empty() || !share_channels(block.mat, place->first, place->count, top)) {
        lose(&block);
        return false;
    }
    top->refcount->fetch_sub(1);
    top->refcount = &count_;
    top->allocator = opt->blob_allocator = this;
    count_ = 1;
    return true;
}

void Places::settle(int index, Mat* top) {
    const PlacePlan::Place& place = *place_of(index);
    Block& block = blocks_[place.root];
    bool taken = false;
    if (top->refcount == &count_) {
        top->refcount = block.mat.refcount;
        top->addref();
        taken = at(place, *top);
        if (!taken) lose(&block);
    }
    if (top->allocator == this) top->allocator = allocator_;
    taken_[(*layers_)[index]->tops[0]] = taken;
    block.overlapped |= taken && place.overlaps;
    if (place.concat == index) lose(&block);
}

}  // namespace quoll
