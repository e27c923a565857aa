// Convolution as a matrix product that reads its input in place.
//
// Rows of C are output pixels, columns output channels. A row of A is never gathered: for each tap
// of the window and each block of input channels, the gemm kernels get the distance to the first
// pixel's value. All outputs whose window is inside the input share one list of taps; outputs at
// the borders have lists without the taps outside, which are zero padding. So no padded copy is
// made.
#ifndef QUOLL_LAYER_CPU_CONV_CONV_PLAN_H
#define QUOLL_LAYER_CPU_CONV_CONV_PLAN_H

#include <vector>

#include "layer/cpu/common/cost_table.h"
#include "layer/cpu/gemm/gemm_run.h"

namespace quoll {

// One axis of a convolution with zero padding.
struct ConvAxis {
    int in, out, kernel, stride, dilation;
    int before;  // padding before the first value
};

// A convolution of one group on one f32 blob. Input value (x, y, z, channel c) is at c / in_pack *
// in_step + ((z * h + y) * w + x) * in_pack + c % in_pack; likewise the output.
struct ConvShape {
    ConvAxis x, y;
    int in_channels, out_channels;
    int in_pack, out_pack;
    size_t in_step, out_step;  // floats
    ConvAxis z = {1, 1, 1, 1, 1, 0};
};
bool operator==(const ConvShape& a, const ConvShape& b);

// The order in which a plan for this in_pack walks through the weights of one output channel,
// [in_channels][kernel_d][kernel_h][kernel_w]. rows: those of the kernel, kernel_d * kernel_h.
std::vector<int> conv_weight_order(int in_channels, int in_pack, int kernel_w, int rows);

// Packs weights, [out_channels][in_channels][kernel_d][kernel_h][kernel_w], as a plan of a shape
// with these channels, elempacks and kernel reads them: gemm_packed_size floats.
void conv_pack_weights(const GemmKernels& kernels, const float* weights, const ConvShape& shape,
                       float* packed);

// All that follows from the shape of a convolution alone; run() gets the blobs.
class ConvPlan {
public:
    // Whether the lists of taps have a sensible length: not for windows of hundreds of taps that
    // reach far into the padding. The input must then be padded first.
    static bool is_supported(const ConvShape& shape);
    // Cycles that one core is expected to need.
    static double cycles(const KernelSet& kernels, const ConvShape& shape,
                         const CostTable& costs = host_costs());
    // in_channels must be a multiple of in_pack, out_channels of out_pack.
    ConvPlan(const KernelSet& kernels, const ConvShape& shape);

    // weights: packed by conv_pack_weights. bias: see GemmProblem. residual: null, a blob like the
    // output but for its step, or the output, which is then written over it.
    void run(const float* in, const float* weights, const float* bias, float* out,
             const float* residual, size_t residual_step, const FusedActivation& activation,
             int threads) const;
    const ConvShape& shape() const { return shape_; }

    // Outputs first <= i < last of an axis, whose windows have the taps tap_first <= t < tap_last
    // inside the input.
    struct Range {
        int first, last, tap_first, tap_last;
    };
    static std::vector<Range> split_axis(const ConvAxis& axis);

private:
    struct Table {
        int x_first, x_last, y_first, y_last, z_first, z_last;  // taps
    };

    void run_narrow(const float* in, const float* weights, const float* bias, float* out,
                    const float* residual, size_t residual_step, const FusedActivation& activation,
                    int threads) const;
    static double share_inside(const ConvAxis& axis);
    static void taps_inside(const ConvAxis& axis, int i, int* first, int* last);
    // Whether each pixel of the output depends only on the input pixel at the same place.
    bool is_pointwise() const;
    // Whether it is a product of planar blobs, with kernels for these.
    bool is_planar() const;
    static int count_ranges(const ConvAxis& axis);
    int table(const Range& x, const Range& y, const Range& z);
    int tile_rows() const;
    ptrdiff_t block_step(size_t begin, size_t block_k) const;
    void add_blocks(const Table& taps, int outer);
    void add_rectangle(const Range& x, const Range& y, int z, int table);
    void add_slice(const std::vector<Range>& xs, const std::vector<Range>& ys, const Range& zs,
                   int z);
    void add_line(int x, int y, int z, int length, bool along_x, int table);
    void add_all();

    const KernelSet& kernels_;
    ConvShape shape_;
    bool narrow_;      // runs on GemmKernels::narrow
    bool taps_outer_;  // planar input of many channels: k runs over the channels of a tap
    std::vector<Table> tables_;
    std::vector<GemmRows> rows_;
    std::vector<GemmBlock> blocks_;
    std::vector<GemmSection> sections_;  // [table][num_sections_]
    size_t num_sections_, chunk_;
    ptrdiff_t a_k_;
};

}  // namespace quoll

#endif
