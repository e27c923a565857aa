// Convolutions, and products of matrices as 1x1 convolutions, on the kernels of int8_units.h.
#ifndef QUOLL_LAYER_CPU_INT8_INT8_TILES_H
#define QUOLL_LAYER_CPU_INT8_INT8_TILES_H

#include "layer/cpu/gemm/tile_plan.h"
#include "layer/cpu/int8/int8_product.h"
#include "layer/cpu/int8/int8_units.h"

namespace quoll {

// The machine's, or null: it has none, or some that the kernel is of no use on.
const Int8UnitKernels* usable_int8_units();

// Of one group.
class Int8TilePlan {
public:
    // The narrow values of the shape are s8. step_channels: of the weights' order, which is blocks
    // of so many input channels, in each the taps, in each of these the channels; a multiple of 4
    // and of in_pack, 64 at most or run_channels(). With lists (Int8UnitKernels) in_pack is 1 or 4,
    // and it is any multiple of 8; or 4, where taps of a kernel row fit in a step, and these are an
    // even number in the order.
    Int8TilePlan(const Int8UnitKernels& kernels, const TileShape& shape, int step_channels,
                 int threads);
    // Rows of the kernel that one step takes, all taps of each: where the channels of these fit in
    // it; else 0.
    static int window_rows(const TileShape& shape, int step_channels);
    // Where steps go through the taps of a kernel row as through one run of values, since they are
    // fewer then, or pixels need no copies: the values of these steps, which the row has in the
    // order of the weights, zeros behind it; else 0.
    static int run_values(const TileShape& shape, int step_channels);
    // The channels of a block, a multiple of `unit`, with which such steps are fewest, if these are
    // fewer than those of blocks of 64 channels at most; else 0.
    static int run_channels(const TileShape& shape, int unit);
    // Whether a plan for a batch of such items does as this one item by item: not of windows.
    bool extends_to_batch() const { return rows_ == 0; }
    static bool is_supported(const TileShape& shape) { return TilePlan::is_supported(shape); }
    const TileShape& shape() const { return shape_; }
    int threads() const { return plan_.threads(); }
    // Whether it is expected to take less time than int8_run(), whose tiles have the lines of
    // `line` rows of C each.
    bool beats_vectors(size_t line, size_t lines) const;
    // Floats of run()'s workspace, which must be aligned to 64 bytes.
    size_t workspace() const { return plan_.workspace(); }
    // in: f32, which input_scale makes s8, or s8; pad: the s8 value around it.
    void run(const Int8Result& result, const void* in, float input_scale, int pad,
             float* workspace) const;

private:
    class Work;
    const Int8UnitKernels& kernels_;
    const TileShape shape_;
    const int channels_;  // of a position
    // window_rows(): what the plan has as input are then windows of so many rows of the kernel.
    const int rows_;
    const int run_;       // run_values()
    const int step_;      // bytes of k
    const int position_;  // bytes of a position
    const TilePlan plan_;
};

}  // namespace quoll

#endif
