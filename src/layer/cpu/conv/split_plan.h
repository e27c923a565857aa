// Convolutions, and products of matrices as 1x1 convolutions, on the kernels of split_gemm.h.
//
// A thread takes a block of output pixels: it splits the input that they need into bf16 terms in a
// buffer of its own, zero padding included, and multiplies that with panel after panel of the
// weights. In the buffer the columns and rows of each residue modulo the stride are a plane of
// their own, so that neighbouring outputs always read neighbouring pixels, and the outputs of
// several rows are one run: what lies between two rows' outputs is computed and thrown away.
#ifndef QUOLL_LAYER_CPU_CONV_SPLIT_PLAN_H
#define QUOLL_LAYER_CPU_CONV_SPLIT_PLAN_H

#include <vector>

#include "layer/cpu/conv/conv_plan.h"
#include "layer/cpu/gemm/split_gemm.h"

namespace quoll {

// Input value (x, y, channel c) lies at x * in_pixel + y * in_row + c / in_pack * in_block +
// c % in_pack; likewise the output. All strides in values: floats, or bf16 values where `narrow` is
// set, which kernels of one product alone take.
struct SplitShape {
    ConvAxis x, y;
    int in_channels, out_channels;
    int in_pack;
    ptrdiff_t in_pixel, in_row, in_block;
    size_t out_pack;
    ptrdiff_t out_pixel, out_row, out_block;
    bool narrow_in, narrow_out;
};
bool operator==(const SplitShape& a, const SplitShape& b);
SplitShape split_shape(const ConvShape& conv);
// Row-major A of m rows and k columns, C of m rows and n columns.
SplitShape split_shape(size_t m, size_t n, size_t k, ptrdiff_t a_row, ptrdiff_t c_row);

// The kernels for what `opt` asks for and this machine has; or null.
const SplitGemmKernels* split_kernels_for(const Option& opt);

class SplitPlan {
public:
    // Whether offsets fit the plan's integers and the lists are of sensible length.
    static bool takes(const SplitShape& shape);
    // Cycles from begin to end that so many cores are expected to need.
    static double cycles(const SplitGemmKernels& kernels, const SplitShape& shape, int threads);

    // Packed weights: bf16 values, and from [out_channels][in_channels][kernel_h][kernel_w].
    static size_t packed_size(const SplitGemmKernels& kernels, int in_channels, int taps,
                              int out_channels);
    static void pack(const SplitGemmKernels& kernels, const float* weights, int in_channels,
                     int taps, int out_channels, uint16_t* packed);
    // Floats that the bias must have: zeros beyond the columns.
    static size_t bias_size(size_t n) {
        return (n + kSplitColumns - 1) / kSplitColumns * kSplitColumns;
    }

    SplitPlan(const SplitGemmKernels& kernels, const SplitShape& shape, int threads);
    // Floats of run()'s workspace, which must be aligned to 64 bytes.
    size_t workspace() const { return threads_ * (share_ / 2); }
    // As ConvPlan::run; the residual is of the output's type.
    void run(const void* in, const uint16_t* weights, const float* bias, void* out,
             const void* residual, ptrdiff_t residual_block, const FusedActivation& activation,
             float* workspace) const;
    const SplitShape& shape() const { return shape_; }
    int threads() const { return wanted_threads_; }
    int products() const { return kernels_.products; }

private:
    // How an axis' positions form planes: position q of the plane of phase p is the input's
    // q * stride + phase - before.
    struct Axis {
        ConvAxis axis;
        std::vector<int> phases;  // those that taps use
        int shift;                // the largest distance from an output to its tap's position
        int length;               // positions that outputs read
        explicit Axis(const ConvAxis& axis);
        int plane(int tap) const;
        // The positions of a plane that lie in the input.
        void inside(int phase, int* begin, int* end) const;
    };
    struct Panel;
    struct Pointers;

    void choose_tiles();
    void add_tiles(int rows, bool by_line);
    void add_steps();
    void choose_blocks();
    size_t block_positions(size_t pairs) const;
    double task_cycles(size_t pairs, size_t positions, size_t panels) const;
    size_t panel_bytes() const;
    void block_tiles(size_t block, size_t* first, size_t* last) const;
    void split_block(const void* in, size_t block, uint16_t* to) const;
    void split_line(const void* in, int y, int plane_y, int plane_x, int q0, int q1,
                    uint16_t* to) const;
    Panel make_panel(const Pointers& p, size_t index) const;
    void run_panel(const Pointers& p, const uint16_t* a, size_t block, size_t index) const;
    void run_tiles(const Pointers& p, const Panel& panel, SplitTile* tile) const;
    void run_with_pass(const Pointers& p, const Panel& panel, SplitTile* tile) const;
    void run_through_buffer(const Pointers& p, const Panel& panel, SplitTile* tile) const;
    float residual_at(const Pointers& p, size_t column, int32_t place) const;
    void store_row(const Pointers& p, const Panel& panel, const float* from, int32_t place) const;

    const SplitGemmKernels& kernels_;
    const SplitShape shape_;
    const Axis x_, y_;
    int wanted_threads_, threads_;
    int pitch_;                    // positions from one row of a plane to the next
    int tile_rows_;                // rows of C in a tile
    std::vector<int32_t> starts_;  // a tile's first position
    std::vector<int32_t> places_;  // [tile][tile_rows_]: where a row of C lies, negative: nowhere
    std::vector<ptrdiff_t> steps_;
    size_t channel_blocks_, planes_, panels_;
    size_t blocks_, groups_;  // of tiles and of panels: a task is one of each
    size_t plane_length_;     // positions in the buffer
    size_t share_;            // bf16 values of a thread's buffer
    double cycles_;           // expected
};

}  // namespace quoll

#endif
