// 3 x 3 convolutions of strides 1 or 2 by Winograd's algorithm. A convolution of dilation d is d x
// d convolutions without dilation: those of every d-th row and column, from each of the first d
// rows and columns. They share the weights, so all their tiles are rows of the same products;
// likewise for all slices of a blob with depth. A window of several slices is one of as many times
// the input channels.
#ifndef QUOLL_LAYER_CPU_WINOGRAD_WINOGRAD_PLAN_H
#define QUOLL_LAYER_CPU_WINOGRAD_WINOGRAD_PLAN_H

#include "layer/cpu/gemm/conv_plan.h"
#include "layer/cpu/winograd/winograd.h"

namespace quoll {

// Whether the library has it: one without has neither this nor its kernels.
#if defined(QUOLL_NO_WINOGRAD)
constexpr bool kHasWinograd = false;
#else
constexpr bool kHasWinograd = true;
#endif

// How the outputs along an axis are divided: first `bigs` tiles of size `big`, then `smalls` of
// size `small`.
struct WinogradAxis {
    // most: the largest size. sizes: whether there may be sizes other than kWinogradOut.
    WinogradAxis(int out, int most, bool sizes, int stride = 1);
    int tiles() const { return bigs + smalls; }
    // Of all tiles; at steps of 2 with the odd inputs of outputs that are there.
    int points() const;
    // Whether tiles of this size have the point of this id (winograd.h).
    static bool has(int size, int point);
    int begin(int tile) const;  // its first output
    // At steps of 2: the points of each id, those of odd inputs included, of all tiles before one.
    void points_before(int tile, int* counts) const;
    int length, stride, big, small, bigs, smalls;
};

class WinogradPlan {
public:
    // Whether the algorithm can compute it: 3 x 3 with stride 1, or 2 without dilation, any number
    // of slices with any stride; channels in blocks of one register.
    static bool is_supported(const KernelSet& kernels, const ConvShape& shape);
    // The cycles that one core is expected to need, for shapes that are supported.
    static double cycles(const KernelSet& kernels, const ConvShape& shape,
                         const CostTable& costs = host_costs());

    // The points along each axis for which weights are made, 6 or 8, if a tile has at most this
    // many outputs: 4; or 6, which multiply up to a fifth less often and lose 4 times as much
    // precision (more than half floats have).
    static int axis_points(const KernelSet& kernels, const ConvShape& shape, int most);
    // The size of transformed weights in floats; they are made from
    // [out_channels][in_channels][slices][3][3]. points: of windows at steps of 2 kWinogradIn.
    static size_t packed_size(const GemmKernels& kernels, size_t in_channels, size_t slices,
                              size_t out_channels, int points);
    static void pack(const KernelSet& kernels, const float* weights, size_t in_channels,
                     size_t slices, size_t out_channels, int points, int stride, float* packed,
                     float* scratch);
    // Floats of pack()'s scratch.
    static size_t pack_scratch(const GemmKernels& kernels, size_t in_channels, size_t slices);

    // points: those of the weights along an axis.
    WinogradPlan(const KernelSet& kernels, const ConvShape& shape, int points, int threads);
    // Floats of run()'s workspace.
    size_t workspace() const;
    // As ConvPlan::run. zeros: gemm_bias_size floats of zero. The weights must be finite.
    void run(const float* in, const float* weights, const float* bias, const float* zeros,
             float* out, const float* residual, size_t residual_step,
             const FusedActivation& activation, float* workspace) const;

private:
    struct Blobs {
        const float *in, *weights, *bias, *zeros;
        float* out;
        const float* residual;
        size_t residual_step;
        const FusedActivation& activation;
    };
    struct Windows;
    // What a thread does at a time: some tiles, and some channels of their outputs.
    struct Part {
        int first, tiles;
        size_t n0, columns;
    };
    size_t panel_columns() const;
    Part part(int index) const;
    double part_cycles(int tiles, size_t columns, double bytes) const;
    double choose_chunks();
    void choose_parts(double most);
    // A tile of outputs: the position of the first one, the next ones being a dilation further; w
    // and h: its size, of which there_w x there_h are inside the output.
    struct Tile {
        int x, y, z, w, h, there_w, there_h;
    };
    Tile tile(int i) const;
    Tile tile_of_grid(int i) const;
    bool is_plain(const Tile& t) const;
    bool is_dilated() const { return shape_.x.dilation > 1 || shape_.y.dilation > 1; }
    void tiles_with(int point_y, int point_x, int* first, int* last) const;
    bool is_strided() const { return x_.stride == 2; }
    // Of windows at steps of 2: where the rows of products are that tiles [first, first + tiles)
    // have. Rows of a set of weights follow each other, tile by tile, then come the next set's.
    struct StridedRows {
        StridedRows(const WinogradPlan& plan, int first, int tiles);
        void find(const WinogradPlan& plan, int tile, int* rows) const;
        int before[kWinogradPoints];  // rows of the set that earlier tiles have
        int begin[kWinogradPoints + 1];
    };
    void strided_rows_before(int tile, int* rows) const;
    Tile strided_tile(int i) const;
    static WinogradStridedTile strided_tile(const Tile& t, const int* rows, size_t step);
    // Transformed inputs of tiles [first, first + tiles) are at [point][tile][channel], or at
    // [point][channel block][tile][lane] if the gemm kernels prefer blocks; points are step()
    // floats apart. rows: null at steps of 1; else [row][channel] or [channel block][row][lane].
    struct Inputs {
        float* points;
        int first, tiles;
        const StridedRows* rows;
    };
    size_t step(const Inputs& inputs) const { return inputs.tiles * inputs_; }
    // The steps from tile (or row) to tile, and from channel block to channel block:
    size_t tile_step() const;
    size_t block_step(const Inputs& inputs) const;
    void transform_inputs(const float* in, const Inputs& to, int partition, int partitions) const;
    void transform_tile(const float* in, int number, size_t k0, size_t k1, const Inputs& to) const;
    const float* input_slice(const float* in, int z, size_t k) const;
    void multiply_part(const Blobs& blobs, const Inputs& inputs, const Part& part,
                       float* sums) const;
    void multiply(const Blobs& blobs, const Inputs& inputs, const Part& part, float* sums) const;
    void multiply_strided(const Blobs& blobs, const Inputs& inputs, const Part& part,
                          float* sums) const;
    GemmMatrix product(const Blobs& blobs, const Inputs& inputs, const Part& part) const;
    void multiply_set(const Blobs& blobs, const Part& part, int set, GemmMatrix* g) const;
    // Of a tile: at [point], step floats apart; at steps of 2 so are rows, of which those are the
    // first ones of the sets.
    struct Sums {
        const float* from;
        size_t step;
        const int* rows;
    };
    void transform_output(const Blobs& blobs, const Sums& sums, int number, const Part& part) const;
    // Whether infinities and NaN reach the outputs whose windows contain them, and no others. Half
    // floats overflow too early for that to be useful.
    bool is_exact() const { return kernels_.gemm->halves == 2; }
    bool is_finite(const Sums& sums, const Tile& t) const;
    static bool is_finite_strided(const Sums& sums, const Tile& t);
    bool is_all_nan(const Blobs& blobs, const Tile& t) const;
    const float* input_of(const Tile& t, const float* in, int output, int tap) const;
    void direct_tile(const Blobs& blobs, const Tile& t, const Part& part) const;
    void add_window(const Tile& t, const float* in, const float* taps, float* sums) const;
    void finish_tile(const Blobs& blobs, const Tile& t, size_t c, float* sums) const;
    void run_chunk(const Blobs& blobs, float* workspace, const Part& part) const;

    const KernelSet& kernels_;
    const ConvShape shape_;
    bool blocks_;             // tiles of several sizes, in blocks
    int axis_points_, sets_;  // of weights: a point each, or as winograd.h says
    int points_;              // of a tile, at most
    size_t inputs_;  // channels of all slices of a window: the length of the products' sums
    int grids_x_, grids_y_, grids_;  // planes without dilation: of a slice, and of all
    WinogradAxis x_, y_;             // of one of them, the largest
    int threads_;
    int workers_;  // threads that have a part
    int tiles_;
    int chunks_;  // of tiles
    // Groups of output channels. One: a thread transforms the inputs of a chunk, and does
    // everything with them. More: first all threads transform all inputs, then each takes chunks
    // and groups.
    int groups_;
    size_t columns_;  // output channels whose sums stay in cache until they are transformed
};

}  // namespace quoll

#endif
