#include "layer/cpu/int8/int8_conv.h"
#include "layer/cpu/int8/small_values.h"
#include "runtime/thread_pool.h"

#include <limits.h>
#include <string.h>

#include <algorithm>

namespace quoll {

namespace {

// Fewer outputs multiply an input too seldom to repay that it is looked at and made small.
const int kSmallOutputs = 32;

// Of a plan for tile units.
const double kMostOutputs = 1 << 26;

int round_up(int x, int unit) { return (x + unit - 1) / unit * unit; }

// Bytes of an element of A.
int element_bytes(const Int8Kernels& kernels) { return 4 / kernels.k_group; }

// Channels of a block: a cache line of elements at most, whole k-groups and whole source packs.
// Where pixels that are neighbours for the kernel lie beside each other, k-groups or pairs of
// these, of which two pixels of a few channels may be one.
int block_channels(const Int8Kernels& kernels, const ConvolutionFields& s, int channels, int pack,
                   bool neighbours) {
    const int stride = s.kernel_w == 1 ? 1 : s.stride_w;
    const bool few = channels <= kernels.k_group && s.dilation_w == 1;
    if (kernels.pairs && stride == 2 && few) return kernels.k_group;
    const int group = kernels.pairs ? 2 * kernels.k_group : kernels.k_group;
    if (neighbours && (stride == 1 || channels > group) && pack <= group) return group;
    const int unit = std::max(pack, group), most = 64 / element_bytes(kernels);
    const int blocks = (channels + most - 1) / most;
    return round_up((channels + blocks - 1) / blocks, unit);
}

// Whether all panels have tiles of rows that lie beside each other.
bool neighbours_fit(const Int8Kernels& kernels, int outputs) {
    const int rest = outputs % (kernels.lanes * kernels.vectors);
    const bool single = rest > 0 && rest <= kernels.lanes && kernels.tile_single[0];
    return kernels.neighbour_rows > 0 && (kernels.pairs || !single);
}

// The order in which the k-groups of the laid out input meet the weights of an output,
// [channels][taps]: blocks of so many channels, in each the taps, in each of these the channels.
// Kernel rows of `width` taps are completed to `row` values, and these rows to `height`.
std::vector<int> weight_order(int channels, int block, int taps, int width, int row, int height) {
    std::vector<int> order;
    for (int c0 = 0; c0 < channels; c0 += block)
        for (int y = 0; y < height; y++)
            for (int i = 0; i < row; i++) {
                const int x = i / block, c = c0 + i % block;
                const bool exists = c < channels && x < width && y < taps / width;
                order.push_back(exists ? c * taps + y * width + x : -1);
            }
    return order;
}

// What Int8TilePlan::window_rows() and run_values() look at.
TileShape window_shape(const ConvolutionFields& s, int channels) {
    TileShape shape = {};
    shape.x.kernel = s.kernel_w, shape.x.dilation = s.dilation_w, shape.x.stride = s.stride_w;
    shape.y.kernel = s.kernel_h, shape.y.dilation = s.dilation_h;
    shape.in_channels = channels;
    return shape;
}

int input_index(int pack) { return pack == 1 ? 0 : pack == 4 ? 1 : pack == 8 ? 2 : 3; }

void fill(char* to, size_t elements, int value, int bytes) {
    if (bytes == 1) {
        memset(to, value, elements);
    } else {
        std::fill_n((int16_t*)to, elements, (int16_t)value);
    }
}

}  // namespace

Int8Conv::Axis::Axis(const WindowAxis& a) {
    const bool point = a.kernel == 1;
    step = point ? a.stride : 1;
    stride = point ? 1 : a.stride;
    before = a.before;
    const int64_t all = point ? a.out : (int64_t)(a.out - 1) * a.stride + a.extent();
    size = (int)std::min<int64_t>(all, INT_MAX);
}

void Int8Conv::Axis::split() {
    phases = stride;
    size = (int)std::min<int64_t>(((int64_t)size + stride - 1) / stride * stride, INT_MAX);
}

// By the size of the input that the file tells; without one maps are taken to be large enough.
static bool winograd_pays(const Layer& layer, const ConvolutionFields& s,
                          const KernelSet& kernels) {
    const bool bytes_beside = kernels.int8->s16 != nullptr;
    if (bytes_beside && kernels.int8->lanes == 16 && host_cpu_core() != CpuCore::zen) return false;
    ConvGeometry g;
    if (layer.bottom_shapes.empty() || layer.bottom_shapes[0].dims != s.axes + 1 ||
        convolution_geometry(layer, s, shapes_of(layer.bottom_shapes), &g) != kOk)
        return true;
    const int channels = s.weight_data_size / s.maxk() / s.num_output;
    return bytes_beside ? Int8Winograd::beats_bytes(g.x.out, g.y.out, channels, s.num_output)
                        : Int8Winograd::pays(g.x.out, g.y.out);
}

int Int8Conv::create(const Layer& layer, const ConvolutionFields& s, const Option& opt) {
    weights_.clear();
    if (!int8_sums_fit(s.weight_data_int8, s.num_output, s.int8_affine != 0)) return kOk;
    const KernelSet& kernels = host_kernel_set();
    const Int8Kernels& s16 = kernels.int8->s16 ? *kernels.int8->s16 : *kernels.int8;
    const Int8Kernels& product = int8_product_kernels(s.weight_data_int8);
    // Longer vectors of bytes multiply eight times as many values in a time, or more.
    const bool longer = &product == kernels.int8->bytes && product.vectors > s16.vectors;
    const bool winograd = !kernels.int8_units && !longer && Int8Winograd::is_supported(s16, s) &&
                          winograd_pays(layer, s, kernels);
    kernels_ = winograd ? &s16 : &product;
    units_ = usable_int8_units();
    const int taps = s.maxk();
    in_channels_ = s.weight_data_size / taps / s.num_output;
    out_channels_ = s.num_output / s.group;
    in_pack_ = best_elempack(kernels, in_channels_, opt);
    out_pack_ = best_elempack(kernels, out_channels_, opt);
    const int group = (kernels_->pairs ? 2 : 1) * kernels_->k_group;
    neighbours_ = neighbours_fit(*kernels_, out_channels_);
    block_ = block_channels(*kernels_, s, in_channels_, in_pack_, neighbours_);
    const TileShape windows = window_shape(s, in_channels_);
    const bool on_units = units_ && s.axes < 3;
    const int block = on_units ? Int8TilePlan::run_channels(windows, std::max(in_pack_, 4)) : 0;
    if (block) block_ = block;
    blocks_ = (in_channels_ + block_ - 1) / block_;
    runs_ = blocks_ == 1 && s.dilation_w == 1;
    const int stride = s.kernel_w == 1 ? 1 : s.stride_w;
    split_ = neighbours_ && stride > 1 && block_ == group && blocks_ > 1;
    neighbours_ = neighbours_ && block_ * (split_ ? 1 : stride) == group;
    // Pairs are whole.
    row_taps_ =
        block_ < 2 * kernels_->k_group && kernels_->pairs ? round_up(s.kernel_w, 2) : s.kernel_w;
    pad_value_ = s.int8_padding();
    input_scale_ = s.bottom_blob_int8_scales[0];
    top_scale_ = s.int8_output() ? s.top_blob_int8_scales[0] : 0.f;
    affine_ = s.int8_affine != 0, top_zero_ = s.top_zero_point;
    activation_ = FusedActivation(kernels, Activation(s.activation_type, s.activation_params));

    const Mat& weight_scales = s.weight_data_int8_scales;
    std::vector<float> scales(s.num_output);
    for (int p = 0; p < s.num_output; p++)
        scales[p] = dequantize_scale(input_scale_,
                                     weight_scales[(int64_t)p * weight_scales.w / s.num_output]);
    const int rows = taps / s.kernel_w;
    const int together = on_units ? Int8TilePlan::window_rows(windows, block_) : 0;
    const int run = on_units ? Int8TilePlan::run_values(windows, block_) : 0;
    // Lists have whole pairs of k-groups.
    if (units_ && kInt8Lists && block_ % 8 && !together) units_ = nullptr;
    const int row = run ? run : row_taps_ * channels_together();
    row_k_groups_ = (size_t)row / kernels_->k_group;
    std::vector<int> order = weight_order(in_channels_, channels_together(), taps, s.kernel_w, row,
                                          together ? round_up(rows, together) : rows);
    join_rows(s, &order);
    const size_t ld = (size_t)in_channels_ * taps;
    std::vector<Int8Weights> weights(s.group);
    for (int g = 0; g < s.group; g++) {
        const int first = g * out_channels_;
        const float* bias = s.bias_data.empty() ? nullptr : (const float*)s.bias_data + first;
        if (weights[g].create(*kernels_, (const signed char*)s.weight_data_int8.data + first * ld,
                              ld, order, out_channels_, scales.data() + first, bias,
                              s.bottom_zero_point) != kOk) {
            layer.fail("out of memory for %d int8 weights", s.weight_data_size);
            return kOutOfMemory;
        }
    }
    winograd_ = Int8Winograd();
    if (winograd) {
        if (winograd_.create(*kernels_, s, in_channels_, blocks_ * block_) != kOk) {
            layer.fail("out of memory for %d int8 weights", s.weight_data_size);
            return kOutOfMemory;
        }
        weights[0].release_packed();
    }
    weights_.swap(weights);
    return kOk;
}

// Of row `row`, of all slices, of group `group` a phase: all its channel blocks. Several rows where
// positions are those of the input.
void Int8Conv::pack_rows(const Mat& in, const ConvGeometry& g, const Axes& axes, int group, int row,
                         int rows, int phase, char* to) const {
    const Axis &x = axes.x, &y = axes.y, &z = axes.z;
    const int bytes = element_bytes(*kernels_), pad = pad_value_ + kernels_->offset;
    const int64_t line = (int64_t)x.size * block_, sy = (int64_t)(row % y.size) * y.step - y.before;
    const int64_t sz = (int64_t)(row / y.size) * z.step - z.before;
    const int64_t step = line * y.size * z.size;
    // Of the phase's positions [first, last) hold input, the others padding.
    const int64_t size = x.size / x.phases, between = (int64_t)x.step * x.phases;
    const int64_t before = x.before - (int64_t)phase * x.step;
    const int64_t first = std::min(size, before <= 0 ? 0 : (before + between - 1) / between);
    int64_t last = (g.x.in - 1 + before + between) / between;
    const bool inside = g.y.holds(sy) && g.z.holds(sz);
    last = inside ? std::max(first, std::min(last, size)) : first;
    to += (row * line + phase * size * block_) * bytes;
    for (int b = 0; b < blocks_; b++) {
        char* at = to + b * step * bytes;
        fill(at, (size_t)(first * block_), pad, bytes);
        fill(at + last * block_ * bytes, (size_t)((size - last) * block_), pad, bytes);
    }
    if (first == last) return;
    const size_t scalar = dtype_size(in.dtype);
    const int64_t sx = first * between - before;
    Int8Input input = {};
    input.src_block = (ptrdiff_t)(in.dims == 1 ? 1 : in.cstep) * in_pack_;
    input.src =
        (const char*)in.data + ((int64_t)group * (in_channels_ / in_pack_) * input.src_block +
                                ((sz * g.y.in + sy) * g.x.in + sx) * in_pack_) *
                                   (int64_t)scalar;
    input.src_pixel = (ptrdiff_t)between * in_pack_;
    input.channels = in_channels_;
    input.pixels = (size_t)(last - first) * rows;
    input.scale = input_scale_;
    input.dst = to + first * block_ * bytes;
    input.dst_pixel = block_;
    input.dst_block = (ptrdiff_t)step;
    input.dst_pack = block_;
    const Int8InputKernel* kernel =
        in.dtype == DType::s8 ? kernels_->input_s8 : kernels_->input_f32;
    kernel[input_index(in_pack_)](input);
}

void Int8Conv::pack_a(const Mat& in, const ConvGeometry& g, const Axes& axes, char* to,
                      int threads) const {
    const int64_t rows = (int64_t)axes.y.size * axes.z.size;
    const size_t group_bytes =
        (size_t)axes.x.size * rows * block_ * blocks_ * element_bytes(*kernels_);
    const int64_t parts =
        axes.are_inputs(g) ? std::min<int64_t>(rows, threads == 1 ? 1 : 4 * threads) : rows;
    parallel_for(parts * g.group, threads, [&](int64_t i) {
        const int64_t group = i / parts, row = partition_begin(rows, parts, i % parts);
        for (int phase = 0; phase < axes.x.phases; phase++)
            pack_rows(in, g, axes, (int)group, (int)row,
                      (int)partition_length(rows, parts, i % parts), phase,
                      to + group * group_bytes);
    });
}

void Int8Conv::clear_last_blocks(const Axes& axes, int groups, char* to) const {
    if (blocks_ * block_ == in_channels_) return;
    const size_t block = (size_t)axes.positions() * block_ * element_bytes(*kernels_);
    for (int i = 1; i <= groups; i++) memset(to + i * blocks_ * block - block, 0, block);
}

void Int8Conv::join_rows(const ConvolutionFields& s, std::vector<int>* order) {
    joined_ = Int8JoinedRows();
    if (units_ || s.axes != 2 || in_pack_ != 1 || s.dilation_w != 1 || kernels_->k_group != 4 ||
        in_channels_ > 4 || kernels_->offset)
        return;
    const Int8JoinedRows joined(in_channels_, s.kernel_w, s.stride_w);
    const int unit = kernels_->pairs ? 2 : 1, k_groups = round_up(joined.k_groups(), unit);
    if ((size_t)k_groups >= row_k_groups_ * blocks_) return;
    joined_ = joined;
    neighbours_ = neighbours_fit(*kernels_, out_channels_), split_ = false;
    block_ = 4 * (neighbours_ ? unit : k_groups);
    blocks_ = 4 * k_groups / block_;
    runs_ = blocks_ == 1, row_taps_ = 1, row_k_groups_ = (size_t)k_groups;
    order->clear();
    for (int y = 0; y < s.kernel_h; y++)
        for (int i = 0; i < 4 * k_groups; i++) {
            const int tap = joined.tap(i, s.maxk());
            order->push_back(tap < 0 ? -1 : tap + y * s.kernel_w);
        }
}

ConvGeometry Int8Conv::laid_out(const ConvGeometry& g) const {
    ConvGeometry of = g;
    if (joined_.k_groups() > 0) {
        of.x = WindowAxis::none();
        of.x.in = of.x.out = g.x.out;
    }
    return of;
}

void Int8Conv::pack_joined(const Mat& in, const ConvGeometry& g, const Axes& axes, char* to,
                           int8_t* scratch, int threads) const {
    const int64_t rows = axes.y.size, row = (int64_t)axes.x.size * block_, plane = row * rows;
    const size_t size = dtype_size(in.dtype), room = joined_.scratch(g.x);
    parallel_for(rows * g.group, threads, [&](int64_t i, int thread) {
        char* const at = to + i / rows * blocks_ * plane + i % rows * row;
        const int64_t y = i % rows * axes.y.step - axes.y.before;
        if (!g.y.holds(y)) {
            for (int b = 0; b < blocks_; b++) memset(at + b * plane, pad_value_, (size_t)row);
            return;
        }
        const int64_t first = i / rows * in_channels_ * (int64_t)in.cstep + y * g.x.in;
        const Int8JoinedRows::Row from = {(const char*)in.data + first * (int64_t)size,
                                          (ptrdiff_t)in.cstep, in.dtype == DType::s8, input_scale_,
                                          pad_value_};
        joined_.pack(*kernels_, from, g.x, {at, block_, (ptrdiff_t)plane, block_ / 4},
                     scratch + thread * room);
    });
}

// Lines of outputs, cut into tiles.
std::vector<GemmRows> Int8Conv::lines(const ConvGeometry& g, const Axes& axes) const {
    const Axis &x = axes.x, &y = axes.y, &z = axes.z;
    const ptrdiff_t pixel = block_ / kernels_->k_group;  // k-groups
    const bool flat = axes.is_flat(g);
    const int width = flat ? g.x.out * g.y.out : g.x.out, height = flat ? 1 : g.y.out;
    // Kernels of pairs multiply two rows at a time: an odd number is left to the last tile.
    // Of those beside each other a register has four.
    const int unit = kernels_->pairs ? 2 : neighbours_ ? 4 : 1;
    const int units = (width + unit - 1) / unit;
    const int most = (neighbours_ ? kernels_->neighbour_rows : kernels_->max_rows) / unit;
    int partitions = (units + most - 1) / most;
    // Tiles of the most rows are full.
    if (width % unit && partitions * most == units && most * unit > kernels_->max_rows)
        partitions++;
    std::vector<GemmRows> rows;
    rows.reserve((size_t)partitions * height * g.z.out);
    for (int line = 0; line < height * g.z.out; line++) {
        const ptrdiff_t slice = line / height, j = line % height;
        for (int i = 0; i < partitions; i++) {
            const ptrdiff_t at = (ptrdiff_t)partition_begin(units, partitions, i) * unit;
            GemmRows r = {};
            r.a = ((slice * z.stride * y.size + j * y.stride) * x.size + at * x.window_step()) *
                  pixel;
            r.a_row = x.window_step() * pixel;
            r.c = ((slice * g.y.out + j) * g.x.out + at) * out_pack_;
            r.c_row = out_pack_;
            r.rows = std::min((int)partition_length(units, partitions, i) * unit, width - (int)at);
            rows.push_back(r);
        }
    }
    gemm_find_alike(rows.data(), rows.size());
    return rows;
}

std::vector<GemmBlock> Int8Conv::taps(const ConvGeometry& g, const Axes& axes,
                                      size_t* block_k) const {
    const Axis &x = axes.x, &y = axes.y, &z = axes.z;
    const ptrdiff_t pixel = block_ / kernels_->k_group;
    const int columns = runs_ ? 1 : g.x.kernel;
    // All channels of a tap are a block where a kernel reads neighbouring rows.
    const int channel_blocks = neighbours_ ? 1 : blocks_;
    *block_k = (size_t)pixel * (runs_ ? row_taps_ : 1) * (blocks_ / channel_blocks);
    std::vector<GemmBlock> blocks;
    for (ptrdiff_t b = 0; b < channel_blocks; b++)
        for (ptrdiff_t k = 0; k < g.z.kernel * g.y.kernel; k++) {
            const ptrdiff_t slice = b * z.size + k / g.y.kernel * g.z.dilation;
            const ptrdiff_t row = slice * y.size + k % g.y.kernel * g.y.dilation;
            const size_t first_k = (b * g.z.kernel * g.y.kernel + k) * row_k_groups_;
            for (ptrdiff_t kx = 0; kx < columns; kx++)
                blocks.push_back(
                    {(row * x.size + x.place(kx * g.x.dilation)) * pixel, first_k + kx * *block_k});
        }
    return blocks;
}

Int8Result Int8Conv::result(const Blobs& b, int group) const {
    const size_t size = b.to_s8 ? 1 : sizeof(float);
    Int8Result r = {};
    r.weights = &weights_[group];
    r.c = (char*)b.c + group * (out_channels_ / out_pack_) * b.c_block * size;
    r.c_pack = out_pack_;
    r.c_block = (ptrdiff_t)b.c_block;
    r.to_s8 = b.to_s8;
    r.top_scale = top_scale_;
    r.affine = affine_, r.top_zero = top_zero_;
    r.activation = b.activation;
    r.add = b.add ? b.add + group * (out_channels_ / out_pack_) * b.add_block : nullptr;
    r.add_block = (ptrdiff_t)b.add_block;
    return r;
}

Int8Conv::Steps Int8Conv::new_blob(const ConvolutionFields& s, int w, int h, int channels,
                                   DType dtype, int pack) const {
    const size_t size = dtype_size(dtype);
    const size_t block = Mat::channel_step(s.axes + 1, w, h, 1, size * pack) * pack;
    return {dtype, block, align_size(channels / pack * block * size, 16) / size};
}

TileShape Int8Conv::tiles_of(const ConvGeometry& g, int items, const Steps& in,
                             const Steps& out) const {
    const auto axis = [](const WindowAxis& a) {
        return ConvAxis{a.in, a.out, a.kernel, a.stride, a.dilation, a.before};
    };
    ConvShape conv = {};
    conv.x = axis(g.x), conv.y = axis(g.y);
    conv.in_channels = in_channels_, conv.out_channels = out_channels_;
    conv.in_pack = in_pack_, conv.out_pack = out_pack_;
    conv.in_step = in.block, conv.out_step = out.block;
    TileShape shape = tile_shape(conv);
    shape.reduced_in = in.dtype == DType::s8;
    shape.reduced_out = out.dtype == DType::s8;
    shape.items = items;
    if (items > 1) shape.in_item = (ptrdiff_t)in.item, shape.out_item = (ptrdiff_t)out.item;
    return shape;
}

int Int8Conv::threads_of(const ConvGeometry& g, const Option& opt, int items) const {
    const double work =
        (double)items * g.x.out * g.y.out * g.z.out * g.maxk() * in_channels_ * g.num_output;
    return threads_for(opt, work / 4);
}

bool Int8Conv::beats_vectors(const Int8TilePlan& plan, const ConvGeometry& g) const {
    return Axes(g, split_).is_flat(g) ? plan.beats_vectors((size_t)g.x.out * g.y.out, 1)
                                      : plan.beats_vectors(g.x.out, g.y.out);
}

std::shared_ptr<const Int8TilePlan> Int8Conv::plan(const ConvolutionFields& s,
                                                   const ConvGeometry& g, const Shape& bottom,
                                                   const Option& opt) const {
    if (!units_ || s.axes == 3 || (double)g.x.out * g.y.out > kMostOutputs) return nullptr;
    const int items = bottom.n;
    const bool flat = is_flat_input(s, bottom);
    if (items > 1) {
        Shape item = bottom;
        item.n = 1;
        const std::shared_ptr<const Int8TilePlan> one = plan(s, g, item, opt);
        if (!one || flat || !one->extends_to_batch()) return nullptr;
    }
    const DType made = s.int8_output() ? DType::s8 : DType::f32;
    const TileShape shape =
        flat ? tiles_of(g, 1, {bottom.dtype, (size_t)in_pack_, 0}, {made, (size_t)out_pack_, 0})
             : tiles_of(g, items, new_blob(s, g.x.in, g.y.in, g.num_input, bottom.dtype, in_pack_),
                        new_blob(s, g.x.out, g.y.out, g.num_output, made, out_pack_));
    if (!Int8TilePlan::is_supported(shape)) return nullptr;
    const std::shared_ptr<const Int8TilePlan> tiles = std::make_shared<const Int8TilePlan>(
        *units_, shape, channels_together(), threads_of(g, opt, items));
    return items > 1 || beats_vectors(*tiles, g) ? tiles : nullptr;
}

int Int8Conv::run_tiles(const Int8TilePlan& plan, const ConvGeometry& g, const Blobs& b,
                        const Option& opt) const {
    Mat workspace;
    if (plan.workspace() <= INT_MAX)
        workspace.create((int)plan.workspace(), 4u, opt.workspace_allocator);
    if (workspace.empty()) return kOutOfMemory;
    const size_t in_group = (size_t)(in_channels_ / in_pack_) * plan.shape().in_block;
    for (int i = 0; i < g.group; i++)
        plan.run(result(b, i), (const char*)b.in.data + i * in_group * dtype_size(b.in.dtype),
                 input_scale_, pad_value_, workspace);
    return kOk;
}

bool Int8Conv::reads_in_place(const ConvGeometry& g, const Axes& axes, const Mat& in) const {
    return neighbours_ && block_ == in_pack_ && kernels_->offset == 0 && in.dtype == DType::s8 &&
           in.dims > 1 && axes.are_inputs(g);
}

int Int8Conv::run_vectors(const ConvGeometry& windows, const Blobs& b, int threads,
                          const Option& opt) const {
    const ConvGeometry g = laid_out(windows);
    const bool joined = joined_.k_groups() > 0;
    const Axes axes(g, split_);
    const double most = 16. * ((double)g.x.in + g.x.out + 256) * ((double)g.y.in + g.y.out + 256) *
                        ((double)g.z.in + g.z.out + 256) / 256;
    const double bytes = axes.positions() * block_ * blocks_ * g.group * element_bytes(*kernels_);
    const double scratch = joined ? (double)threads * joined_.scratch(windows.x) : 0.;
    if (axes.positions() > most || bytes + scratch > INT_MAX - 4) return kUnsuitable;
    // Completed kernel rows read a pixel beyond the last one.
    Mat k_groups = b.in;
    const bool in_place = reads_in_place(g, axes, b.in);
    if (!in_place) {
        k_groups = Mat((int)(bytes + scratch) + 4, (size_t)1u, opt.workspace_allocator);
        if (k_groups.empty()) return kOutOfMemory;
        char* const to = (char*)k_groups.data;
        if (!joined && kernels_->small_is_faster) clear_last_blocks(axes, g.group, to);
        if (joined)
            pack_joined(b.in, windows, axes, to, (int8_t*)to + (size_t)bytes + 4, threads);
        else
            pack_a(b.in, g, axes, to, threads);
    }
    const ptrdiff_t plane = in_place ? (ptrdiff_t)b.in.cstep : (ptrdiff_t)axes.positions();

    Int8Problem p = {};
    p.small = kernels_->small_is_faster && !in_place && !joined && out_channels_ >= kSmallOutputs &&
              int8_make_small((int8_t*)k_groups.data, (size_t)bytes, threads);
    Mat inits;
    if (p.small) {
        inits.create((int)weights_[0].columns(), g.group, (size_t)4u, opt.workspace_allocator);
        if (inits.empty()) return kOutOfMemory;
    }
    const std::vector<GemmRows> rows = lines(g, axes);
    const std::vector<GemmBlock> blocks = taps(g, axes, &p.block_k);
    const size_t group_k_groups = in_place ? (size_t)plane * blocks_ : (size_t)bytes / 4 / g.group;
    p.rows = rows.data(), p.num_rows = rows.size();
    p.blocks = blocks.data(), p.num_blocks = blocks.size();
    const ptrdiff_t beside = kernels_->pairs ? 2 : 1;
    p.a_pair = !neighbours_ ? 0 : runs_ ? beside : plane * beside;
    p.row_k_groups = group_k_groups / rows.size() + 1;
    for (int i = 0; i < g.group; i++) {
        (Int8Result&)p = result(b, i);
        if (p.small) {
            weights_[i].lowered(kInt8SmallStep, inits.row<int32_t>(i));
            p.init = inits.row<int32_t>(i);
        }
        p.a = (const int32_t*)k_groups.data + i * group_k_groups;
        int8_run(p, threads);
    }
    return kOk;
}

int Int8Conv::run_winograd(const ConvGeometry& g, const Blobs& b, int threads,
                           const Option& opt) const {
    const double positions = ((double)g.x.out + 5) * ((double)g.y.out + 5);
    const double most = 16. * ((double)g.x.in + g.x.out + 256) * ((double)g.y.in + g.y.out + 256);
    if (positions > most || positions * blocks_ * block_ * 32 > INT_MAX) return kUnsuitable;
    Axes axes(g, false);
    axes.x.size = Int8Winograd::positions(g.x.out), axes.y.size = Int8Winograd::positions(g.y.out);
    const size_t laid = (size_t)axes.x.size * axes.y.size * block_ * blocks_ * sizeof(int16_t);
    Mat in((int)laid, (size_t)1u, opt.workspace_allocator);
    Mat room((int)winograd_.bytes(g.x.out, g.y.out, threads), (size_t)1u, opt.workspace_allocator);
    if (in.empty() || room.empty()) return kOutOfMemory;
    pack_a(b.in, g, axes, (char*)in.data, threads);
    winograd_.run(result(b, 0), (const int16_t*)in.data, block_, g.x.out, g.y.out,
                  (int16_t*)room.data, threads);
    return kOk;
}

int Int8Conv::forward(const Int8TilePlan* tiles, const ConvolutionFields& s, const ConvGeometry& g,
                      const Mat& bottom, const Mat& added, Mat& top, const Option& opt) const {
    const bool sums_only = s.add_input && added.empty();
    Blobs b = {};
    b.in = bottom;
    b.to_s8 = s.int8_output() && !sums_only;
    b.activation = sums_only ? &no_activation_ : &activation_;
    const bool flat = is_flat_input(s, bottom.logical_shape());
    if (!flat) {
        QUOLL_RETURN_IF_ERROR(with_elempack(bottom, in_pack_, opt, &b.in));
        b.in = conv_channels(s, b.in);
    }
    const DType dtype = b.to_s8 ? DType::s8 : DType::f32;
    Mat channels, add;
    if (!added.empty()) {
        QUOLL_RETURN_IF_ERROR(with_elempack(added, out_pack_, opt, &add));
        add = conv_channels(s, add);
    }
    if (flat) {
        top.create(Shape(s.num_output, dtype), out_pack_, opt.blob_allocator);
        channels = top;
    } else if (b.in.n > 1) {
        if (top.dtype != dtype || top.elempack != out_pack_ ||
            (!add.empty() && add.nstep != top.nstep))
            return kOneByOne;
        channels = top;
    } else if (!b.to_s8 && !add.empty() && add.data == top.data) {
        channels = conv_channels(s, top);
    } else {
        QUOLL_RETURN_IF_ERROR(create_conv_top(s, g, dtype, out_pack_, opt, &top, &channels));
    }
    if (top.empty()) return kOutOfMemory;
    b.c = top.data;
    b.c_block = flat ? (size_t)out_pack_ : channels.cstep * out_pack_;
    if (!add.empty()) b.add = add, b.add_block = add.cstep * out_pack_;
    const int threads = threads_of(g, opt, b.in.n);
    if (winograd_.created()) return run_winograd(g, b, threads, opt);
    if (!tiles) return run_vectors(g, b, threads, opt);
    // A blob may lie within a larger one.
    const TileShape shape =
        tiles_of(g, b.in.n,
                 {b.in.dtype, (b.in.dims == 1 ? 1 : b.in.cstep) * in_pack_, b.in.nstep * in_pack_},
                 {dtype, b.c_block, top.nstep * out_pack_});
    if (tiles->shape() == shape && tiles->threads() == threads) return run_tiles(*tiles, g, b, opt);
    if (!Int8TilePlan::is_supported(shape))
        return b.in.n > 1 ? (int)kOneByOne : run_vectors(g, b, threads, opt);
    return run_tiles(Int8TilePlan(*units_, shape, channels_together(), threads), g, b, opt);
}

}  // namespace quoll
