// What the convolution layers run on: the choice of an algorithm, and weights packed for it.
#ifndef QUOLL_LAYER_CPU_CONV_CONV_RUNNER_H
#define QUOLL_LAYER_CPU_CONV_CONV_RUNNER_H

#include <memory>
#include <mutex>
#include <vector>

#include "layer/cpu/common/few_kernels.h"
#include "layer/cpu/conv/conv_algorithm.h"
#include "layer/cpu/conv/whole_blocks.h"
#include "layer/nn/convolution.h"
#include "runtime/parts.h"

namespace quoll {

struct ConvLiveTaps;

// Other architectures' units have nothing to fill, and their libraries no room.
#if defined(__x86_64__) || defined(__i386__)
typedef std::shared_ptr<const ConvLiveTaps> ConvColumns;
constexpr bool kJoinsGroups = true, kSumsColumns = kHasHalfStorage && kHasTileUnits;
#else
struct ConvColumns {
    explicit operator bool() const { return false; }
};
constexpr bool kJoinsGroups = false, kSumsColumns = false;
#endif

// How many neighbouring groups are one product, as they would fill little of a tile unit's step one
// by one: a block for each group on the diagonal of its weights, zeros beside them. 1: each by
// itself.
int joined_groups(const ConvolutionFields& s, const Option& opt);

// From so many pixels on all tiles have 4 to 6 (KernelSet::f16f32).
enum { kMinHalfPixels = 8 };

// How a convolution runs on inputs of one size.
struct ConvRunPlan {
    ConvAlgorithm algorithm = ConvAlgorithm::kNone;
    Mat weights;          // [group][floats], packed for the algorithm
    bool halves = false;  // the weights are half floats, and so are the input's values
    // The one that the algorithm needs; none for Winograd's, or of a 1-D input.
    std::shared_ptr<const ConvPlan> direct;
    std::shared_ptr<const SplitPlan> split;
    std::shared_ptr<const SlicedPlan> sliced;
    // Instead of all of these: a convolution of the taps alone that read the input.
    std::shared_ptr<const ConvLiveTaps> live;
    // Likewise: a product of the columns of the windows' taps, whose sums are then added up.
    ConvColumns columns;
};

// An f32 convolution in any number of groups. create() once, then plan() and forward() from any
// thread. conv_runner.cpp creates it; conv_runner_*.cpp are its parts.
class ConvRunner {
public:
    ConvRunner();
    ~ConvRunner();
    // Takes the weights of `s`, which must be f32 and loaded. Logs and returns a negative code.
    // Where the layer has hints of its inputs' sizes, these decide the algorithm for all sizes, so
    // that one packing of the weights is all that is kept.
    int create(const Layer& layer, const ConvolutionFields& s, const Option& opt);
    bool created() const { return kernels_ != nullptr; }
    // After create(): from now on inputs may be f16, whose products have sums of fp32 and the bits
    // that they have widened, if there are kernels for that and all weights are half floats. What
    // is added may then be f16 too; outputs are f32.
    void take_halves(const Layer& layer, const ConvolutionFields& s, const Option& opt);
    bool takes_halves() const { return kHasF16F32 && halves_; }
    int in_pack() const { return in_pack_; }
    // Of an output of channels, and of one of a flat input.
    int out_pack() const { return narrows() ? 2 * out_pack_ : out_pack_; }
    int flat_out_pack() const { return out_pack_; }
    // The type of the output of an input of this one by a plan.
    DType made_type(const ConvRunPlan& plan, const ConvolutionFields& s, const ConvGeometry& g,
                    DType dtype, const Option& opt) const;
    // Whether blobs are half floats, and their products and sums too: then inputs are f16 or f32,
    // and outputs f16.
    bool takes_f16() const { return kHasHalfStorage && created() && pair_ == 2; }
    // Whether outputs are f16 though inputs are f32: channels of the input that are no blocks.
    bool makes_f16() const { return takes_f16() || (created() && narrows()); }
    // For an input of this size, which convolution_geometry accepted for `g`, and this dtype, f32
    // or bf16 (or f16). adds: a blob of the output's shape will be added where the sums are made.
    // layer: the one that create() had.
    int plan(const Layer& layer, const ConvolutionFields& s, const ConvGeometry& g, DType dtype,
             bool adds, const Option& opt, ConvRunPlan* plan) const;
    // The same for a batch of so many items, of which forward() then takes all; plan->split stays
    // null where these run one by one.
    int plan_batch(const Layer& layer, const ConvolutionFields& s, const ConvGeometry& g,
                   DType dtype, bool adds, int items, const Option& opt, ConvRunPlan* plan) const;
    // The same for a batch whose input and output lie as these.
    int plan_items(const Layer& layer, const ConvolutionFields& s, const ConvGeometry& g,
                   const Mat& in, const Mat& out, bool adds, const Option& opt,
                   ConvRunPlan* plan) const;
    // For the 1-D input of is_flat_input.
    int plan_flat(ConvRunPlan* plan) const;
    // bottom: as convolution_geometry accepted it for `g`, any elempack, f32 or bf16. added: empty,
    // or of the output's shape and any elempack, f32 or bf16; with add_input and an empty one the
    // activation is left out. top is created, of bottom's dtype (or bf16, which f32 may become
    // where opt has bf16 storage), or is `added`, over which the output is written if its dtype and
    // elempack are right. Of a batch, `g` being that of one item, top is there and has its shape;
    // kOneByOne: the blobs do not lie as planned.
    int forward(const ConvRunPlan& plan, const ConvolutionFields& s, const ConvGeometry& g,
                const Mat& bottom, const Mat& added, Mat& top, const Option& opt) const;
    // The same for blobs of one type each, f32 or bf16.
    int forward_f32(const ConvRunPlan& plan, const ConvolutionFields& s, const ConvGeometry& g,
                    const Mat& bottom, const Mat& added, Mat& top, const Option& opt) const;
    // The same for f16.
    int forward_f16(const ConvRunPlan& plan, const ConvolutionFields& s, const ConvGeometry& g,
                    const Mat& bottom, const Mat& added, Mat& top, const Option& opt) const;
    // The same for bf16 through f32. flat: as forward_flat. `s` does not tell: the taps that are
    // left of a wide kernel may be one, on a 1-D input that is a row.
    int forward_widened(const ConvRunPlan& plan, const ConvolutionFields& s, const ConvGeometry& g,
                        bool flat, const Mat& bottom, const Mat& added, Mat& top,
                        const Option& opt) const;
    // A 1x1 convolution on the 1-D input of is_flat_input, which is f32; nothing is added to it.
    int forward_flat(const ConvRunPlan& plan, const ConvolutionFields& s, const Mat& bottom,
                     Mat& top, const Option& opt) const;

private:
    void choose_blobs(const Layer& layer, const ConvolutionFields& s, const Option& opt);
    int pack_for_all_sizes(const Layer& layer, const ConvolutionFields& s);
    bool can_take_f16(const ConvolutionFields& s, const Option& opt) const;
    bool can_take_planar_f16(const Layer& layer, const ConvolutionFields& s,
                             const Option& opt) const;
    int forward_planar(const ConvRunPlan& plan, const ConvolutionFields& s, const ConvGeometry& g,
                       const Mat& bottom, Mat& top, const Option& opt) const;
    int narrow(const Mat& wide, const ConvolutionFields& s, const ConvGeometry& g, Mat& top,
               const Option& opt) const;
    int make_bias(const Layer& layer, const ConvolutionFields& s);
    int join_weights(const Layer& layer, const ConvolutionFields& s);
    // The layer's first group in one of these: the last one ends where the layer does.
    int first_joined(int group) const {
        if (!kJoinsGroups) return group;
        return group * joined_ - (group + 1 == group_ ? overlap_ : 0);
    }
    // Groups that write channels of their own.
    int groups_apart() const { return group_ - (kJoinsGroups && overlap_ ? 1 : 0); }
    // Of a blob whose groups have so many bytes.
    size_t group_offset(int group, size_t bytes) const {
        if (!kJoinsGroups) return group * bytes;
        return group * bytes - (group + 1 == group_ ? bytes * overlap_ / joined_ : 0);
    }
    // What a run has besides its blobs.
    struct Call {
        ConvShape shape;
        bool reduced_in, reduced_out;  // bf16
        int threads;                   // of a group
        int groups = 1;                // at a time
        int items = 1;
        size_t in_item = 0, out_item = 0;  // values from one item to the next
        TileShape tiles() const;
    };
    double macs(const ConvGeometry& g, int outputs) const;  // of so many channels of the output
    int threads_of(const ConvGeometry& g, const Option& opt, int items = 1) const;
    void set_threads(const ConvGeometry& g, const Option& opt, Call* call) const;
    template <class Run>
    int run_groups(const Call& call, const Run& run) const;

    bool winograd_candidate(const ConvolutionFields& s, const Option& opt) const;
    // As Winograd's algorithm takes it.
    ConvShape winograd_shape(const ConvShape& shape) const {
        return whole_blocks() ? with_whole_blocks(*kernels_, shape) : shape;
    }
    bool whole_blocks() const { return kCopiesToWholeBlocks && whole_blocks_; }
    ConvShape shape_of(const ConvGeometry& g) const;
    static ConvShape shape_of_halves(ConvShape shape);
    ConvAlgorithm choose(const ConvShape& shape) const;
    int pack_weights(ConvAlgorithm algorithm, const ConvShape& shape, Mat* weights) const;
    void pack_direct(const float* from, float* to) const;
    int pack_winograd(const ConvShape& shape, Mat* weights) const;
    int fill_weights(const ConvShape& shape, Mat* weights) const;
    int weights_for(const ConvShape& shape, ConvRunPlan* plan) const;
    int widen_weights(Mat* wide) const;
    bool drops_taps(const ConvolutionFields& s, const ConvGeometry& g) const;
    int live_taps(const Layer& layer, const ConvolutionFields& s, const ConvGeometry& g,
                  const Option& opt, ConvLiveTaps* live) const;
    // Of bf16 inputs.
    int create_columns(const Layer& layer, const ConvolutionFields& s, const Option& opt);
    int plan_columns(const Layer& layer, const ConvGeometry& g, const Option& opt,
                     ConvRunPlan* plan) const;
    int forward_columns(const ConvRunPlan& plan, const ConvolutionFields& s, const ConvGeometry& g,
                        const Mat& bottom, Mat& top, const Option& opt) const;
    bool weights_support_slices(const TileShape& shape) const;
    bool multiplies_bf16(const ConvRunPlan& plan, const ConvolutionFields& s,
                         const ConvGeometry& g) const;
    bool fits(const ConvRunPlan& plan, const Call& call) const;
    bool takes_items(const ConvolutionFields& s, const ConvGeometry& g, ConvRunPlan* plan) const;
    void make_plan(const Call& call, ConvRunPlan* plan) const;
    // One call of forward: blobs with in_pack_ and out_pack_. added: null, or like out but for its
    // step. Groups are so many bytes apart.
    struct Blobs {
        const void *in, *added;
        void* out;
        size_t in_group, added_group, out_group;
        size_t added_step;  // values from one channel block to the next
        FusedActivation activation;
    };
    Call planned_call(const ConvRunPlan& plan, const ConvolutionFields& s, ConvGeometry g,
                      DType dtype, bool adds, int items, const Option& opt) const;
    // in, added, out: with channels in c. g: of the input, which is padded where it must be.
    Call call_of(const ConvGeometry& g, const Mat& in, const Mat& out, const Option& opt) const;
    Blobs blobs_of(const ConvolutionFields& s, const Call& call, const Mat& in, const Mat& added,
                   const Mat& out) const;
    int run(const ConvRunPlan& plan, const Call& call, const Blobs& blobs, const Option& opt) const;
    int run_direct(const ConvRunPlan& plan, const Call& call, const Blobs& blobs) const;
    int run_winograd(const ConvRunPlan& plan, const Call& call, const Blobs& blobs,
                     const Option& opt) const;
    int run_whole_blocks(const ConvRunPlan& plan, const Call& call, const Blobs& blobs,
                         const Option& opt) const;
    int run_split(const ConvRunPlan& plan, const Call& call, const Blobs& blobs,
                  const Option& opt) const;
    int run_sliced(const ConvRunPlan& plan, const Call& call, const Blobs& blobs,
                   const Option& opt) const;
    void run_group(const ConvPlan& plan, int group, const float* weights, const Blobs& blobs,
                   int threads) const;
    int run_unpacked(const Mat& weights, int group, const Call& call, const Blobs& blobs,
                     const Option& opt) const;
    Mat group_memory(const Option& opt) const;

    const KernelSet* kernels_ = nullptr;
    const KernelSet* packing_ = nullptr;  // packs the weights
    int pair_ = 1;                        // channels that are one to the kernels: 2 of f16, else 1
    bool planar_ = false;                 // blobs are planar half floats, of 1x1 convolutions
    bool halves_ = false;                 // weights_ are half floats
    bool planar() const { return kHasHalfStorage && planar_; }
    bool narrows() const { return kHasHalfStorage && narrows_; }
    bool narrows_ = false;  // outputs, of f32 and elempack 4, become f16 of elempack 8
    ConvCandidates candidates_ = {};
    bool bf16_ = false;          // blobs will be bf16
    bool whole_blocks_ = false;  // Winograd's algorithm reads or writes copies
    int kernel_w_ = 1, kernel_h_ = 1, kernel_d_ = 1;
    int joined_ = 1,
        overlap_ = 0;  // groups of the layer in one of these, and of the last two in both
    int group_ = 1, in_channels_ = 0, out_channels_ = 0;  // channels of one group
    int in_pack_ = 1, out_pack_ = 1;
    Mat bias_;   // [group][gemm_bias_size]
    Mat zeros_;  // [gemm_bias_size]
    FusedActivation activation_;
    ConvAlgorithm algorithm_ = ConvAlgorithm::kNone;  // for all sizes; kNone: by size
    Mat weights_;                                     // for algorithm_
    Mat raw_weights_;                                 // where the size decides

    mutable std::mutex lock_;  // of what follows, which planning alone looks at
    mutable Mat packed_[5];    // of raw_weights_ by algorithm, from the first plan on
    struct Live {
        int at[4];  // first taps and numbers of them along x and y
        std::shared_ptr<const ConvRunner> runner;
    };
    mutable std::vector<Live> live_;
    ConvColumns columns_;  // without geometry and plan; or null
};

struct ConvLiveTaps {
    std::shared_ptr<const ConvRunner> runner;
    ConvolutionFields fields;
    ConvGeometry geometry;
    ConvRunPlan plan;
};

}  // namespace quoll

#endif
