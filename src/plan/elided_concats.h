// Gives layers their alias in a Concat's output while a run goes on.
#ifndef QUOLL_PLAN_ELIDED_CONCATS_H
#define QUOLL_PLAN_ELIDED_CONCATS_H

#include <memory>
#include <vector>

#include "plan/concat_elision.h"

namespace quoll {

// The block that will be a Concat's output is made when the first layer with an alias in it runs.
// The layer finds a Mat there as its output, which Mat::create keeps if it asks for the same size,
// elempack and allocator: it seems to have an owner of its own, a count and an allocator here. When
// the layer has run, it becomes a Mat that shares the block's count, so that nothing works in place
// on one part while others hold another, and the block goes with the last of them.
//
// What an alias holds, and the Concat does not find there, would be overwritten by what it copies:
// it then gets no block, and makes its output elsewhere, as without a plan.
class ElidedConcats : private Allocator {
public:
    ElidedConcats() : count_(0) {}
    // Between runs there is nothing to copy.
    ElidedConcats(const ElidedConcats&) : Allocator(), count_(0) {}
    ElidedConcats& operator=(const ElidedConcats&) { return *this; }

    // A run of these layers of a net. opt: of the run; its blob_allocator makes the blocks.
    void begin(const std::shared_ptr<const ConcatElision>& plan, const std::vector<Layer*>& layers,
               const std::vector<int>& order, const Option& opt);
    void end();

    // Before a layer runs on `inputs`, while `blobs` are those of the run: if its output has a
    // alias, *top is made a Mat there, and opt->blob_allocator the one that keeps it. settle() must
    // follow when the layer has run.
    bool offer(int index, const std::vector<Mat>& inputs, const std::vector<Mat>& blobs, Mat* top,
               Option* opt);
    // What the layer has made becomes a Mat as others.
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
