// Concat elision during a run: hands out places in the outputs of Concats.
#ifndef QUOLL_PLAN_ELIDED_CONCATS_H
#define QUOLL_PLAN_ELIDED_CONCATS_H

#include <memory>
#include <vector>

#include "plan/concat_elision.h"

namespace quoll {

// The block for a Concat's output is allocated when the first layer with an alias in it runs. That
// layer's output is preset to a Mat in the block, which seems to have its own reference count and
// allocator (both are of this class); Mat::create keeps that memory if it is asked for the same
// size, elempack and allocator. After the layer has run, its output becomes a Mat that shares the
// block's reference count, so that nothing works in place on one part while others hold another,
// and the block is freed with the last of them.
//
// If something is in an alias where the Concat does not expect it, the copies of the Concat would
// overwrite it: such a Concat gets no block and makes its output elsewhere, as without elision.
class ElidedConcats : private Allocator {
public:
    ElidedConcats() : count_(0) {}
    // Copying is only possible between runs, when there is nothing to copy.
    ElidedConcats(const ElidedConcats&) : Allocator(), count_(0) {}
    ElidedConcats& operator=(const ElidedConcats&) { return *this; }

    // Starts a run of these layers. opt: that of the run; its blob_allocator makes the blocks.
    void begin(const std::shared_ptr<const ConcatElision>& plan, const std::vector<Layer*>& layers,
               const std::vector<int>& order, const Option& opt);
    void end();

    // To be called before a layer runs on `inputs`, where `blobs` are those of the run. If its
    // output has an alias, *top becomes a Mat there, and opt->blob_allocator the allocator that
    // keeps it. settle() must follow when the layer has run.
    bool offer(int index, const std::vector<Mat>& inputs, const std::vector<Mat>& blobs, Mat* top,
               Option* opt);
    // Turns what the layer has made into an ordinary Mat.
    void settle(int index, Mat* top);

private:
    struct Block {
        Mat mat;  // empty before the first alias is given, and after the Concat has it
        bool lost = false;
        bool overlapped = false;  // what overlaps other aliases may still be read
    };
    void* fastMalloc(size_t size) override { return allocator_->fastMalloc(size); }
    void fastFree(void* ptr) override;

    const ConcatElision::Alias* alias_of(int index) const;
    bool at(const ConcatElision::Alias& alias, const Mat& m) const;
    bool inputs_are_aliased(int index, const std::vector<Mat>& inputs) const;
    bool taken(int blob) const;
    bool read_in_aliases_only(int index, const std::vector<Mat>& inputs,
                              const std::vector<Mat>& blobs) const;
    void lose(Block* block);

    std::shared_ptr<const ConcatElision> plan_;
    const std::vector<Layer*>* layers_ = nullptr;
    Allocator* allocator_ = nullptr;
    DType stored_ = DType::f32;  // what f32 becomes between layers
    std::vector<Block> blocks_;  // of each root
    std::vector<char> open_;     // Concats that will run, and will have what lies in their aliases
    std::vector<char> taken_;    // blobs that lie in their alias
    int count_;                  // owners of the Mat that is being filled
};

}  // namespace quoll

#endif
