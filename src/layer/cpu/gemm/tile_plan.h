// Convolutions, and products of matrices as 1x1 convolutions, on tile units: what does not depend
// on the type of the values.
//
// A thread takes a block of output pixels: it lays out the input that they need in a buffer of its
// own, padding included, and multiplies that with panel after panel of the weights. In the buffer
// the columns and rows of each residue modulo the stride are a plane of their own, so that
// neighbouring outputs always read neighbouring pixels, and the outputs of several rows are one
// run: what lies between two rows' outputs is computed and thrown away. The items of a batch follow
// each other as further rows, so that the weights are read once a block and not once an item. Where
// rows are so wide that those between a block's first and last tap would be most of the buffer,
// each row of a window is a plane of its own, which holds the pixels of the block's outputs alone.
//
// A panel of many channels leaves the second-level cache before the next pair of tiles reads it
// again. Such sums are made in parts, one range of channels after another: of a range the block's
// input and a panel stay in the cache, and the sums of all the block's tiles and panels lie in the
// buffer meanwhile.
//
// Where most taps of the windows lie in the padding (dilations as wide as the map), vectors take
// tiles of outputs whose windows have the same taps inside the input, and these taps alone; the
// buffer is the input as it is.
#ifndef QUOLL_LAYER_CPU_CONV_TILE_PLAN_H
#define QUOLL_LAYER_CPU_CONV_TILE_PLAN_H

#include <algorithm>
#include <vector>

#include "layer/cpu/gemm/conv_plan.h"
#include "layer/cpu/gemm/tile_operands.h"

namespace quoll {

// Input value (x, y, channel c) lies at x * in_pixel + y * in_row + c / in_pack * in_block +
// c % in_pack; likewise the output. All strides in values: floats, or where `narrow` is set those
// of the smaller type that the kernels know.
struct TileShape {
    ConvAxis x, y;
    int in_channels, out_channels;
    int in_pack;
    ptrdiff_t in_pixel, in_row, in_block;
    size_t out_pack;
    ptrdiff_t out_pixel, out_row, out_block;
    bool reduced_in, reduced_out;
    // Of a batch: so many items, and from one to the next.
    int items = 1;
    ptrdiff_t in_item = 0, out_item = 0;
};
bool operator==(const TileShape& a, const TileShape& b);
TileShape tile_shape(const ConvShape& conv);
// Row-major A of m rows and k columns, C of m rows and n columns.
TileShape tile_shape(size_t m, size_t n, size_t k, ptrdiff_t a_row, ptrdiff_t c_row);

// Where few channels leave room in a step, the taps of a kernel row are one together: what a plan
// then has as input are windows, a row of the kernel high, of kernel * pixel values.
bool has_step_windows(const TileShape& shape, int pixel, int step_channels);
// Window x of row y is the input value x + y * x.out.
TileShape shape_of_windows(const TileShape& shape, int pixel);

// Where no kernels read an input where it lies, no code for that is kept.
#if defined(__x86_64__) || defined(__i386__)
constexpr bool kReadsInPlace = true;
#else
constexpr bool kReadsInPlace = false;
#endif

class TilePlan {
public:
    // What one step of the sums is on certain kernels, and what it is expected to cost in cycles.
    struct Unit {
        int step_channels;      // input channels that a step takes of a position
        size_t position_bytes;  // of these in the buffer; without row_steps a multiple of 64
        size_t step_bytes;      // of a full panel's weights for a step
        const CostTable* costs;
        double step_cycles;    // a tile of 16 rows
        double value_cycles;   // laying out one value of the input
        double finish_cycles;  // the way of a tile to C
        double row_cycles;     // and of a row of a panel's columns, besides
        // Where not 0 positions have scales, which are taken of so many neighbours at a time before
        // these are laid out; there is one plane then.
        int scaled_pixels;
        // Not 0: the unit takes so many rows at a time, and reads words of neighbouring positions
        // side by side: word w of a position lies w * word_step() bytes behind its first.
        int row_lanes = 0;
        int word_bytes = 4;
        bool on_vectors = false;  // a tile of fewer rows takes less time in proportion
        bool clips = false;       // kernels know Pair::b_steps
        bool adds_parts = false;  // kernels know Pair::sums
        // Not 0: the input of a 1x1 kernel is not laid out but read where it lies, pixels so many
        // bytes apart; so are the channels of a step and those of the next.
        ptrdiff_t pixel_bytes = 0, channels_bytes = 0;
        // Not 0, for neighbouring windows of neighbouring pixels: a kernel row's positions, which
        // lie one after another, are so many steps of row_step_bytes each, whatever tap that is.
        int row_steps = 0;
        size_t row_step_bytes = 0;
        bool in_place() const { return kReadsInPlace && pixel_bytes != 0; }
    };
    // A part of the channels of a block, whose input lies at `a`, by the panels first <= p < last.
    struct Task {
        const char* a;
        size_t block, part, first, last;
    };
    // What is done for one run. Offsets count positions and values, not bytes.
    class Work {
    public:
        // Before the first tile in a thread, and after the last.
        virtual void begin(int tile_rows) const = 0;
        virtual void end() const = 0;
        // So many positions of padding.
        virtual void pad(char* to, size_t positions) const = 0;
        // The scales of `pixels` pixels, from the input's value `at` on.
        virtual void scale(ptrdiff_t at, size_t pixels, float* scales) const;
        // Channels from `channel` on of `pixels` pixels, from the input's value `at` on, and the
        // pixels' scales, where there are some.
        virtual void pack_a(ptrdiff_t at, int channel, size_t pixels, const float* scales,
                            char* to) const = 0;
        // The input, where it is not laid out.
        virtual const char* input() const { return nullptr; }
        // All tiles of the block.
        virtual void multiply(const Task& task) const = 0;

    protected:
        ~Work() = default;
    };

    // Whether offsets fit the plan's integers and the lists are of sensible length.
    static bool is_supported(const TileShape& shape);
    TilePlan(const Unit& unit, const TileShape& shape, int threads);
    ~TilePlan();  // not in every caller: it frees several lists

    const TileShape& shape() const { return shape_; }
    int threads() const { return wanted_threads_; }
    // Whether tiles have taps of their own; not so in a batch.
    bool clipped() const { return pair_tiles_ == 1; }
    double cycles() const { return cycles_; }  // from begin to end, as expected
    // Of these those for reading so many bytes of weights once.
    double weight_cycles(double bytes, int threads) const;
    // Floats of run()'s workspace, which must be aligned to 64 bytes.
    size_t workspace() const { return threads_ * (share_ / sizeof(float)); }
    void run(const Work& work, float* workspace) const;
    // From a word of a position to the next, bytes; 0 where Unit::row_lanes is.
    ptrdiff_t word_step() const {
        return unit_.row_lanes ? (ptrdiff_t)plane_length_ * unit_.word_bytes : 0;
    }
    // Of the positions of a block whose input lies at `a`.
    float* scales(const char* a) const { return (float*)(a + scales_at_); }

    // For Work::multiply. Pair i of a block: its tiles (or last single one), and where their rows
    // of C lie, negative: nowhere. weights: all panels. Of an input that is not laid out they are
    // one tile, with no more rows than there are.
    struct Pair {
        TileOperands operands;
        int tiles, rows;
        const int32_t* places;
        const int32_t* b_steps;  // which steps of the panel; null: all, in order
        // Null: the operands have all channels. Else they have those of a part, and this is where
        // the sums of the parts before it are and those with it go.
        float* sums;
    };
    // Of a task and of one panel.
    class Pairs {
    public:
        Pairs(const TilePlan& plan, const Task& task, const char* weights, size_t panel);
        size_t size() const { return size_; }
        Pair operator[](size_t i) const;

    private:
        const TilePlan& plan_;
        const char *a_, *b_, *next_;
        float* sums_;
        size_t first_, last_, size_, bytes_, num_steps_, fetched_;
    };
    bool is_last(const Task& task) const { return task.part + 1 == parts_; }

private:
    // How an axis' positions form planes: position q of the plane of phase p is the input's
    // q * stride + phase - before.
    struct Axis {
        ConvAxis axis;
        std::vector<int> phases;  // those that taps use
        int shift;                // the largest distance from an output to its tap's position
        int length;               // positions that outputs read
        explicit Axis(const ConvAxis& axis);
        // Each tap has a plane of its own.
        static Axis of_taps(const ConvAxis& axis);
        int plane(int tap) const;
        int position(int tap) const;  // of an output's tap in its plane, from the output's on
        // The positions of a plane that lie in the input.
        void inside(int phase, int* begin, int* end) const;
    };

    // The steps of a tile: where A lies, and which they are in the panel; the latter is empty where
    // that is all of them in order.
    struct Steps {
        std::vector<ptrdiff_t> a;
        std::vector<int32_t> b;
    };
    typedef std::vector<ConvPlan::Range> Ranges;

    double row_cost(int rows) const;
    // Of a kernel row.
    int steps_across() const { return unit_.row_steps ? unit_.row_steps : shape_.x.kernel; }
    void choose_parts();
    // Channel blocks of a part, all of which the buffer holds at a time.
    size_t part_begin(size_t part) const { return part * part_blocks_; }
    size_t part_length(size_t part) const {
        return std::min(part_blocks_, channel_blocks_ - part_begin(part));
    }
    size_t part_panel_bytes() const { return panel_bytes_ / channel_blocks_ * part_blocks_; }
    const char* part_panel(const char* weights, size_t panel, size_t part) const;
    size_t buffer_budget() const;
    bool rows_are_far() const;
    void clip(double usual);
    double clipped_cost(int rows) const;
    void add_clipped_tiles();
    void add_clipped_steps();
    // Whether a pixel's channels follow each other, and are many.
    bool has_rows() const { return shape_.in_block == shape_.in_pack && part_blocks_ >= 16; }
    // From a position of a plane to the next, bytes.
    size_t position_step() const {
        if (unit_.in_place()) return (size_t)unit_.pixel_bytes;
        return unit_.row_lanes ? (size_t)unit_.word_bytes : unit_.position_bytes;
    }
    // How far tiles run on before they begin anew: through a row of the output, an item, the batch.
    enum class Run { kRow, kItem, kBatch };
    size_t item_positions() const { return (size_t)item_rows_ * pitch_; }
    size_t row_run() const { return shape_.x.out; }
    // Of an item's outputs, with what lies between its rows.
    size_t item_run() const { return (size_t)(shape_.y.out - 1) * pitch_ + shape_.x.out; }
    void choose_tiles();
    void add_tiles(Run run);
    void add_run(size_t first, size_t length);
    ptrdiff_t place(size_t position) const;
    void add_steps();
    void choose_blocks();
    size_t pairs_of(size_t tiles) const { return clipped() ? tiles : (tiles + 1) / kUnitTiles; }
    size_t block_positions(size_t pairs) const;
    double task_cycles(size_t pairs, size_t positions, size_t panels) const;
    void block_tiles(size_t block, size_t* first, size_t* last) const;
    void pack_block(const Work& work, size_t block, size_t part, char* to) const;
    void pack_clipped(const Work& work, char* to) const;
    void pack_line(const Work& work, size_t part, int line, int plane_y, int plane_x, int q0,
                   int q1, char* to, float* scales) const;
    void pack_pixels(const Work& work, size_t part, ptrdiff_t at, size_t pixels, char* to,
                     float* scales) const;

    const Unit unit_;
    const TileShape shape_;
    const Axis x_;
    Axis y_;
    Ranges xs_, ys_;  // empty unless clipped
    int wanted_threads_, threads_;
    int pitch_;                    // positions from one row of a plane to the next
    int item_rows_;                // of a plane
    int tile_rows_;                // rows of C in a tile
    std::vector<int32_t> starts_;  // a tile's first position
    std::vector<int32_t> places_;  // [tile][tile_rows_]: where a row of C lies, negative: nowhere
    size_t pair_tiles_;            // of a pair: kUnitTiles, or 1 where tiles have taps of their own
    double taps_;                  // of a tile, on the average
    std::vector<Steps> steps_;     // one, or [range of y][range of x]
    std::vector<int32_t> step_of_;  // a tile's index into these, where there are several
    size_t channel_blocks_, planes_, panels_;
    size_t parts_, part_blocks_;  // of the channel blocks; those of a part, but perhaps the last
    size_t panel_bytes_;          // of weights
    size_t blocks_, groups_;      // of tiles and of panels: a task is one of each
    size_t plane_length_;         // positions in the buffer
    size_t scales_at_;            // bytes from a buffer's begin
    size_t sums_at_;              // likewise, where there are several parts
    size_t share_;                // bytes of a thread's buffer
    double cycles_;
};

}  // namespace quoll

#endif
