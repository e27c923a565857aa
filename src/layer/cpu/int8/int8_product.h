// The driver of the int8 kernels: packed weights with the scaling and bias of their sums, cache
// blocking, threads.
#ifndef QUOLL_LAYER_CPU_INT8_INT8_PRODUCT_H
#define QUOLL_LAYER_CPU_INT8_INT8_PRODUCT_H

#include "layer/cpu/gemm/gemm_run.h"
#include "layer/cpu/int8/int8.h"

namespace quoll {

// The kernels for products by these s8 weights on this machine.
const Int8Kernels& int8_product_kernels(const Mat& weights);

// Whether each output's sum over its equal share of the s8 weights fits an int32 whatever the s8
// inputs are (less their zero point if `affine`).
bool int8_sums_fit(const Mat& weights, int outputs, bool affine = false);

// The s8 weights of one product, n columns, and for each column the factor and the bias that turn
// its sums into values.
class Int8Weights {
public:
    Int8Weights() : kernels_(nullptr), n_(0), k_groups_(0) {}
    // Value (k, n) at weights[n * ld + order[k]]; where order[k] is negative it is zero. k is a
    // multiple of k_group, with pairs of 2 k_group. scales: of column n; bias may be null. zero:
    // zero point of the inputs. Returns kOk or kOutOfMemory.
    int create(const Int8Kernels& kernels, const signed char* weights, size_t ld,
               const std::vector<int>& order, int n, const float* scales, const float* bias,
               int zero = 0);
    // For weights made for zero point 0: what is needed to multiply them by inputs with that zero
    // point whose step is `scale` times as large. columns() values each.
    void rescale(int zero, float scale, int32_t* init, float* scales) const;
    // What sums begin from where A's values have been made so much lower. columns() values.
    void lowered(int by, int32_t* init) const;
    size_t columns() const { return (size_t)sums_.w; }
    // Of a full panel.
    size_t panel() const { return (size_t)kernels_->lanes * kernels_->vectors; }
    const Int8Kernels& kernels() const { return *kernels_; }
    size_t n() const { return n_; }
    size_t k_groups() const { return k_groups_; }
    // Frees the packed weights, for callers that have them in another form: only the scaling of
    // sums stays.
    void release_packed() { packed_.release(); }
    const int32_t* packed() const { return (const int32_t*)packed_.data; }

private:
    friend class Int8Panel;
    const Int8Kernels* kernels_;
    size_t n_, k_groups_;
    Mat packed_;               // k-groups: panels as those of gemm_pack
    Mat init_, scale_, bias_;  // of n rounded up to whole panels
    Mat sums_;                 // of the weights of a column, s32
};

// C as in GemmProblem, of f32, or of s8 if `to_s8`. add: null, or a blob of f32 that is added
// before the activation, in the layout of C, apart from the step between blocks; C may be it.
struct Int8Result {
    const Int8Weights* weights;
    void* c;
    size_t c_pack;
    ptrdiff_t c_block;
    bool to_s8;
    float top_scale;
    // Null, or those of the weights for another scale and zero point of A (Int8Weights::rescale).
    const int32_t* init;
    const float* scale;
    bool affine;  // of to_s8: int8 as affine8.h has it, with top_zero
    int top_zero;
    const FusedActivation* activation;
    const float* add;
    ptrdiff_t add_block;
};

struct Int8Problem;

// A panel of the weights, and how its sums are scaled and stored.
class Int8Panel {
public:
    // The panel from column n0 on; or several neighbouring ones, with at most `most` columns, of
    // which only the scaling of sums is known.
    Int8Panel(const Int8Result& result, size_t n0, size_t most);
    const int32_t* b() const { return b_; }
    const int32_t* init() const { return init_; }
    size_t width() const { return store_.width; }
    // The tile kernel for this many rows.
    Int8TileKernel tile(int rows) const { return tiles_[rows - 1]; }
    // A tile's results leave its registers as int8, where such rows lie one after another: into the
    // tile. Null where they do not.
    const Int8TileBytes* bytes(const GemmRows& rows);
    // Scales and stores sums [rows][width], which are overwritten. Of `rows` only the place in C
    // matters.
    void finish(const GemmRows& rows, int32_t* sums);
    // A single row of f32 that lies together: panels first to last - 1, without what others need.
    static bool is_plain_row(const Int8Problem& g);
    static void run_row(const Int8Problem& g, size_t first, size_t last);

private:
    void columns_of(size_t n0, ptrdiff_t block, ptrdiff_t* columns) const;
    void activate(const GemmRows& rows, int32_t* sums);
    bool leaves_registers() const;
    // 0: none.
    float stored_slope() const;
    void set_bytes();

    const Int8Result& result_;
    const int32_t *b_, *init_;
    const Int8TileKernel* tiles_;
    Int8Store store_;
    bool to_bytes_;  // those of bytes_
    Int8TileBytes bytes_;
    float byte_scale_[kGemmMaxRows * 4], byte_bias_[kGemmMaxRows * 4];
    ptrdiff_t columns_[kGemmMaxRows * 4], add_columns_[kGemmMaxRows * 4];
};

// A's offsets count k-groups.
struct Int8Problem : Int8Result {
    const int32_t* a;
    const GemmRows* rows;
    size_t num_rows;
    const GemmBlock* blocks;
    size_t num_blocks, block_k;
    ptrdiff_t a_pair;     // as of Int8Tile
    size_t row_k_groups;  // k-groups of A behind an entry of `rows`
    bool small;           // as of Int8Tile
};
void int8_run(const Int8Problem& problem, int threads);

}  // namespace quoll

#endif
