// int8 convolution in any number of groups: the input rounded and laid out once, with its padding,
// then one matrix product a group that reads it through a list of taps, or by Winograd's algorithm.
#ifndef QUOLL_LAYER_CPU_INT8_INT8_CONV_H
#define QUOLL_LAYER_CPU_INT8_INT8_CONV_H

#if defined(QUOLL_NO_INT8)
#include "layer/cpu/common/no_int8.h"
#else

#include <memory>

#include "layer/cpu/int8/int8_joined_rows.h"
#include "layer/cpu/int8/int8_tiles.h"
#include "layer/cpu/int8/int8_winograd.h"
#include "layer/nn/convolution.h"

namespace quoll {

class Int8Conv {
public:
    // Takes the int8 weights and scales of `s`. Leaves created() false when a sum might exceed an
    // int32. Logs and returns a negative code.
    int create(const Layer& layer, const ConvolutionFields& s, const Option& opt);
    bool created() const { return !weights_.empty(); }
    int out_pack() const { return out_pack_; }
    // On tile units, for an input of this size, which convolution_geometry accepted for `g`, and
    // this dtype, f32 or s8; null where these are missing or slower than vectors. Of a batch, `g`
    // being that of one item: for all items; null also where these run one by one.
    std::shared_ptr<const Int8TilePlan> plan(const ConvolutionFields& s, const ConvGeometry& g,
                                             const Shape& bottom, const Option& opt) const;
    // bottom: as convolution_geometry accepted it for `g`, any elempack, f32 or s8. added: f32 of
    // the output's shape and any elempack, or empty; with add_input and an empty one the output is
    // f32 sums without activation. top is created, over what is added where it can be if it comes
    // as the same Mat. kUnsuitable, and top is of no use: the padded input would dwarf what is in
    // it. Of a batch top is there and has its shape; kOneByOne: blobs do not lie as planned.
    enum { kUnsuitable = 1 };
    int forward(const Int8TilePlan* tiles, const ConvolutionFields& s, const ConvGeometry& g,
                const Mat& bottom, const Mat& added, Mat& top, const Option& opt) const;
    // The name of what multiplies by such a plan.
    const char* kernels(const Int8TilePlan* tiles) const {
        return tiles ? units_->name : kernels_->name;
    }

private:
    // An axis of the laid out input: position i holds input i * step - before. With `phases` above
    // 1, the stride of the windows, positions of the same remainder lie beside each other.
    struct Axis {
        int size, step, before, stride;  // stride: of the windows on it
        int phases = 1;
        explicit Axis(const WindowAxis& axis);
        void split();
        // Where position i lies, and how far apart windows do.
        ptrdiff_t place(ptrdiff_t i) const { return i % phases * (size / phases) + i / phases; }
        ptrdiff_t window_step() const { return stride / phases; }
    };
    struct Axes {
        Axis x, y, z;
        Axes(const ConvGeometry& g, bool split) : x(g.x), y(g.y), z(g.z) {
            if (split) x.split();
        }
        // Whether the outputs of a slice are one line.
        bool is_flat(const ConvGeometry& g) const {
            return x.size == g.x.out && x.stride == 1 && y.stride == 1;
        }
        // Whether positions are those of the input.
        bool are_inputs(const ConvGeometry& g) const {
            return is_flat(g) && x.size == g.x.in && y.size == g.y.in && z.size == 1 &&
                   x.step * y.step == 1 && x.before == 0 && y.before == 0 && z.before == 0;
        }
        double positions() const { return (double)x.size * y.size * z.size; }
    };
    // The blobs of one run: in with in_pack_, c of the output's channels or values.
    struct Blobs {
        Mat in;
        void* c;
        size_t c_block;  // values
        bool to_s8;
        const float* add;  // null, or in the layout of c, apart from the step between blocks
        size_t add_block;
        const FusedActivation* activation;
    };
    Int8Result result(const Blobs& b, int group) const;
    // Values from one block of channels to the next, and from one item to the next.
    struct Steps {
        DType dtype;
        size_t block, item;
    };
    Steps new_blob(const ConvolutionFields& s, int w, int h, int channels, DType dtype,
                   int pack) const;
    TileShape tiles_of(const ConvGeometry& g, int items, const Steps& in, const Steps& out) const;
    int threads_of(const ConvGeometry& g, const Option& opt, int items = 1) const;
    // Channels that come together in the order of the weights.
    int channels_together() const { return neighbours_ ? blocks_ * block_ : block_; }
    bool beats_vectors(const Int8TilePlan& plan, const ConvGeometry& g) const;
    int run_tiles(const Int8TilePlan& plan, const ConvGeometry& g, const Blobs& b,
                  const Option& opt) const;
    int run_vectors(const ConvGeometry& g, const Blobs& b, int threads, const Option& opt) const;
    // Whether int8 input lies as kernels read it.
    bool reads_in_place(const ConvGeometry& g, const Axes& axes, const Mat& in) const;
    int run_winograd(const ConvGeometry& g, const Blobs& b, int threads, const Option& opt) const;
    void pack_a(const Mat& in, const ConvGeometry& g, const Axes& axes, char* to,
                int threads) const;
    // pack_a() leaves out channels that only fill the last block, but int8_make_small() reads them.
    void clear_last_blocks(const Axes& axes, int groups, char* to) const;
    void pack_rows(const Mat& in, const ConvGeometry& g, const Axes& axes, int group, int row,
                   int rows, int phase, char* to) const;
    // Joins the taps of kernel rows where that takes fewer k-groups than pixels do, in whose order
    // of the weights `order` is.
    void join_rows(const ConvolutionFields& s, std::vector<int>* order);
    // The windows on the laid out input: joined rows have the outputs' columns.
    ConvGeometry laid_out(const ConvGeometry& g) const;
    void pack_joined(const Mat& in, const ConvGeometry& g, const Axes& axes, char* to,
                     int8_t* scratch, int threads) const;
    std::vector<GemmRows> lines(const ConvGeometry& g, const Axes& axes) const;
    std::vector<GemmBlock> taps(const ConvGeometry& g, const Axes& axes, size_t* block_k) const;

    std::vector<Int8Weights> weights_;  // of each group
    Int8Winograd winograd_;             // if created, weights_ are not packed
    Int8JoinedRows joined_;             // none, or instead of pixels
    const Int8Kernels* kernels_ = nullptr;
    int in_channels_ = 0, out_channels_ = 0;  // of a group
    int in_pack_ = 1, out_pack_ = 1;
    int blocks_ = 0, block_ = 0;  // of channels in the laid out input
    bool runs_ = false;           // the taps of a kernel row are one run
    int row_taps_ = 0;            // of such a run, of which some may be zero
    size_t row_k_groups_ = 0;     // of a kernel row of a block, in the order of the weights
    // Inputs of neighbouring outputs lie beside each other, if `split_` once a row is split by
    // column modulo stride.
    bool neighbours_ = false, split_ = false;
    signed char pad_value_ = 0;
    float input_scale_ = 1.f, top_scale_ = 0.f;
    bool affine_ = false;
    int top_zero_ = 0;
    FusedActivation activation_, no_activation_;
    const Int8UnitKernels* units_ = nullptr;
};

}  // namespace quoll

#endif

#endif
