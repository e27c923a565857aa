#ifndef QUOLL_LAYER_CPU_DWCONV_STORED_ROWS_H
#define QUOLL_LAYER_CPU_DWCONV_STORED_ROWS_H

#include <algorithm>

#include "layer/cpu/cast/storage.h"
#include "layer/cpu/common/packing.h"
#include "layer/cpu/dwconv/dwconv_layer.h"

namespace quoll {

// Rows of a channel of some storage type as f32, and back, in memory that stays in cache: as many
// rows at a time as fit are widened, of which those that later windows reach move to the front when
// it is full, and narrowed.
class StoredRows {
public:
    StoredRows(const StorageKernels* storage, const ConvGeometry& g, int pack, float* memory)
        : storage_(storage),
          in_floats_((size_t)g.x.in * pack),
          out_floats_((size_t)g.x.out * pack),
          room_(in_rows(g, pack)),
          out_room_(out_rows(g, pack)),
          in_(memory),
          out_(memory ? memory + room_ * in_floats_ : nullptr) {}
    static int memory(const ConvGeometry& g, int pack, int threads, const Option& opt, Mat* m) {
        m->create(std::max(g.x.in, g.x.out) * pack, in_rows(g, pack) + out_rows(g, pack), threads,
                  4u, opt.workspace_allocator);
        return m->empty() ? (int)kOutOfMemory : (int)kOk;
    }
    // A band of outputs that needs the input's rows before `end`, and begins at `out`.
    void begin(const uint16_t* channel, int64_t end, uint16_t* out) {
        channel_ = channel, end_ = end, first_ = ready_ = 0;
        top_ = out, waiting_ = 0;
    }
    // Row `first` of the input, behind which those up to `last` lie, for a window that begins at
    // row `start`. No later window begins above that; its rows may: dilated taps of which those
    // above the input are left out.
    const float* in(int64_t start, int64_t first, int64_t last) {
        if (last >= ready_) fill(std::max<int64_t>(0, start), last);
        return in_ + (first - first_) * in_floats_;
    }
    // Room for the next row, or for two after an even number of them.
    float* out() const { return out_ + waiting_ * out_floats_; }
    // The row at out() is done.
    void finish_row() {
        if (++waiting_ == out_room_) flush();
    }
    void flush() {
        storage_->narrow(out_, top_, waiting_ * out_floats_);
        top_ += waiting_ * out_floats_;
        waiting_ = 0;
    }

private:
    // Half of a small first-level cache for both.
    enum { kInBytes = 12 << 10, kOutBytes = 4 << 10 };
    static int in_rows(const ConvGeometry& g, int pack) {
        const int64_t fit = kInBytes / ((int64_t)g.x.in * pack * 4);
        return (int)std::min<int64_t>(g.y.in, std::max<int64_t>(fit, 2 * (int64_t)g.y.extent()));
    }
    static int out_rows(const ConvGeometry& g, int pack) {
        const int64_t fit = kOutBytes / ((int64_t)g.x.out * pack * 4);
        return (int)std::max<int64_t>(2, std::min<int64_t>(g.y.out, fit) / 2 * 2);
    }
    // The rows from `keep` on stay, or come.
    void fill(int64_t keep, int64_t last) {
        if (keep >= ready_) {
            first_ = ready_ = keep;
        } else if (last >= first_ + room_) {
            const float* from = in_ + (keep - first_) * in_floats_;
            std::copy(from, from + (ready_ - keep) * in_floats_, in_);
            first_ = keep;
        }
        const int64_t until = std::min(end_, first_ + room_);
        storage_->widen(channel_ + ready_ * in_floats_, in_ + (ready_ - first_) * in_floats_,
                        (until - ready_) * in_floats_);
        ready_ = until;
    }

    const StorageKernels* storage_;
    const size_t in_floats_, out_floats_;
    const int64_t room_, out_room_;
    float *const in_, *const out_;
    const uint16_t* channel_ = nullptr;
    int64_t end_ = 0, first_ = 0, ready_ = 0;  // rows first_ <= y < ready_ are there
    uint16_t* top_ = nullptr;
    int64_t waiting_ = 0;
};

}  // namespace quoll

#endif
