#include "layer/cpu/deconv/deconv_layer.h"

#include <limits.h>
#include <stdint.h>

#include <algorithm>

#include "layer/cpu/gemm/gemm_run.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// Outputs i * stride + phase of an axis. Tap k adds input i + shift to them, or misses them all.
struct PhaseAxis {
    explicit PhaseAxis(const WindowAxis& a) : axis(a), phases(std::min(a.stride, a.out)) {
        const int64_t first = ((int64_t)a.before - (a.extent() - 1)) / a.stride;
        const int64_t last = ((int64_t)a.out - 1 + a.before) / a.stride;
        low = std::max<int64_t>(0, -first);
        high = std::max<int64_t>(0, last - (a.in - 1));
    }
    int outputs(int phase) const { return (axis.out - phase - 1) / axis.stride + 1; }
    bool shift(int phase, int k, int64_t* by) const {
        const int64_t reach = (int64_t)phase + axis.before - (int64_t)k * axis.dilation;
        *by = reach / axis.stride;
        return reach % axis.stride == 0;
    }

    const WindowAxis axis;
    const int phases;
    int64_t low, high;  // zeros that the input needs before and after
};

// The shifts reach far beyond an input with wide kernels, most of which the pads cut off: the input
// with its border may take a few times the memory of input and output, or a megabyte.
bool sensible(const ConvGeometry& g) {
    double padded = g.num_input, in = g.num_input, out = g.num_output;
    for (const WindowAxis* axis : {&g.x, &g.y, &g.z}) {
        const PhaseAxis a(*axis);
        if (a.low + a.high >= INT_MAX / 2) return false;
        padded *= (double)(a.low + axis->in + a.high);
        in *= axis->in, out *= axis->out;
    }
    return padded < 8 * (in + out) + (1 << 18);
}

// `count` values of T of temporary memory.
template <class T>
Mat temporary(int64_t count, const Option& opt) {
    return count > INT_MAX
               ? Mat()
               : Mat((int)std::max<int64_t>(1, count), sizeof(T), opt.workspace_allocator);
}

// The lists of a GemmProblem over all phases: a table a phase, in its one section the taps that
// meet it.
class PhaseLists {
public:
    PhaseLists(const PhaseAxis& x, const PhaseAxis& y, const PhaseAxis& z, const Mat& in,
               const Mat& out, int max_rows)
        : x_(x), y_(y), z_(z), in_(in), out_(out), max_rows_(max_rows) {}
    int create(const Option& opt) {
        for (int px = 0; px < x_.phases; px++) row_partitions_ += partitions(px);
        sections_ = temporary<GemmSection>((int64_t)x_.phases * y_.phases * z_.phases, opt);
        // A tap belongs to one phase at most.
        blocks_ = temporary<GemmBlock>(
            (int64_t)x_.axis.kernel * y_.axis.kernel * z_.axis.kernel * (planar() ? 1 : in_.c),
            opt);
        rows_ = temporary<GemmRows>(num_rows(), opt);
        if (sections_.empty() || blocks_.empty() || rows_.empty()) return kOutOfMemory;
        GemmSection* section = (GemmSection*)sections_.data;
        GemmBlock* block = (GemmBlock*)blocks_.data;
        GemmRows* rows = (GemmRows*)rows_.data;
        for (int table = 0; table < x_.phases * y_.phases * z_.phases; table++, section++) {
            const int px = table % x_.phases, plane = table / x_.phases;
            const int py = plane % y_.phases, pz = plane / y_.phases;
            section->blocks = block;
            block = add_blocks(pz, py, px, block);
            section->num_blocks = block - section->blocks;
            section->block_k = planar() ? in_.c : in_.elempack;
            section->block_step = 0;
            rows = add_rows(pz, py, px, table, rows);
        }
        gemm_find_alike((GemmRows*)rows_.data, rows - (GemmRows*)rows_.data);
        return kOk;
    }
    void describe(GemmProblem* problem) const {
        problem->a_k = planar() ? in_.cstep : 1;
        problem->sections = (const GemmSection*)sections_.data;
        problem->num_sections = 1;
        problem->rows = (const GemmRows*)rows_.data;
        problem->num_rows = num_rows();
    }

private:
    bool planar() const { return in_.elempack == 1; }
    int64_t num_rows() const { return row_partitions_ * y_.axis.out * z_.axis.out; }
    int64_t partitions(int px) const { return (x_.outputs(px) + max_rows_ - 1) / max_rows_; }

    GemmBlock* add_blocks(int pz, int py, int px, GemmBlock* block) const {
        const int taps = x_.axis.kernel * y_.axis.kernel * z_.axis.kernel;
        for (int tap = 0; tap < taps; tap++) {
            const int kx = tap % x_.axis.kernel, plane = tap / x_.axis.kernel;
            const int ky = plane % y_.axis.kernel, kz = plane / y_.axis.kernel;
            int64_t sx, sy, sz;
            if (z_.shift(pz, kz, &sz) && y_.shift(py, ky, &sy) && x_.shift(px, kx, &sx))
                block = add_tap(sz + z_.low, sy + y_.low, sx + x_.low, tap, block);
        }
        return block;
    }

    GemmBlock* add_tap(int64_t z, int64_t y, int64_t x, int tap, GemmBlock* block) const {
        const int64_t at = (z * in_.h + y) * in_.w + x;
        const size_t k = (size_t)tap * in_.c * in_.elempack;
        for (int q = 0; q < (planar() ? 1 : in_.c); q++, block++) {
            block->a = (ptrdiff_t)((at + (int64_t)q * in_.cstep) * in_.elempack);
            block->k = k + (size_t)q * in_.elempack;
        }
        return block;
    }

    GemmRows* add_rows(int pz, int py, int px, int table, GemmRows* rows) const {
        const int64_t count = partitions(px), outputs = x_.outputs(px), lines = y_.outputs(py);
        for (int64_t i = 0; i < lines * z_.outputs(pz); i++) {
            const int64_t y = i % lines, z = i / lines;
            const int64_t out_line = (z * z_.axis.stride + pz) * out_.h + y * y_.axis.stride + py;
            for (int64_t p = 0; p < count; p++, rows++) {
                const int64_t first = (int64_t)partition_begin(outputs, count, p);
                rows->a = (ptrdiff_t)(((z * in_.h + y) * in_.w + first) * in_.elempack);
                rows->c =
                    (ptrdiff_t)((out_line * out_.w + px + first * x_.axis.stride) * out_.elempack);
                rows->a_row = in_.elempack;
                rows->c_row = (ptrdiff_t)x_.axis.stride * out_.elempack;
                rows->rows = (int)partition_length(outputs, count, p);
                rows->table = table;
            }
        }
        return rows;
    }

    const PhaseAxis &x_, &y_, &z_;
    const Mat &in_, &out_;  // the padded input
    const int max_rows_;
    int64_t row_partitions_ = 0;  // of an output row, over all phases along x
    Mat sections_, blocks_, rows_;
};

// Floats that forward_few_channels's products may take: a typical second-level cache.
const int64_t kFewChannelFloats = 1 << 18;

// B of forward_few_channels, as gemm_pack makes it: `count` pixels of all channels, from row y0 on.
void pack_pixels(const GemmKernels& gemm, const Mat& in, int y0, size_t count, int threads,
                 float* packed) {
    const size_t pack = in.elempack, columns = (size_t)gemm.lanes * gemm.vectors;
    parallel_for((int64_t)((count + columns - 1) / columns), threads, [&](int64_t p) {
        const size_t n = p * columns, left = count - n;
        float* panel = packed + n * in.c * pack;
        if (pack == 1)
            return gemm_pack(gemm, in.row(y0) + n, in.cstep, true, std::min(left, columns), in.c,
                             panel);
        const size_t width = gemm_panel_width(gemm, left);
        for (int q = 0; q < in.c; q++, panel += pack * width)
            gemm.pack_column_major(in.channel(q).row(y0) + n * pack, pack, pack,
                                   std::min(left, columns), width, panel);
    });
}

// Adds the products of all taps with input rows y0 to y0 + rows, [kernel_h][kernel_w][rows][in.w],
// to rows begin <= y < end of an output channel.
void add_taps(const ConvGeometry& g, const float* from, int y0, int rows, int begin, int end,
              Mat& channel) {
    const int64_t stride = g.x.stride;
    for (int tap = 0; tap < g.maxk(); tap++) {
        const int ky = tap / g.x.kernel, kx = tap % g.x.kernel;
        const int64_t x0 = (int64_t)kx * g.x.dilation - g.x.before;
        const int64_t first = x0 < 0 ? (-x0 + stride - 1) / stride : 0;
        const int64_t last =
            x0 < g.x.out ? std::min<int64_t>(g.x.in, (g.x.out - 1 - x0) / stride + 1) : 0;
        for (int i = 0; i < rows; i++, from += g.x.in) {
            const int64_t y =
                (int64_t)(y0 + i) * g.y.stride + (int64_t)ky * g.y.dilation - g.y.before;
            if (y < begin || y >= end) continue;
            float* out = channel.row((int)y);
            for (int64_t x = first; x < last; x++) out[x * stride + x0] += from[x];
        }
    }
}

}  // namespace

DeconvolutionCpu::DeconvolutionCpu(int axes)
    : Deconvolution(axes, false), kernels_(nullptr), in_pack_(1), out_pack_(1), narrow_(false) {
    support_packing = true;
}

int DeconvolutionCpu::create_pipeline(const Option& opt) {
    QUOLL_RETURN_IF_ERROR(Deconvolution::create_pipeline(opt));
    if (dynamic_weight) return kOk;
    QUOLL_RETURN_IF_ERROR(patches_.create(*this, *this, opt));
    support_bf16_storage = patches_.created();
    if (patches_.created()) {
        weight_data.release();
        return kOk;
    }
    kernels_ = &host_kernel_set();
    activation_ = FusedActivation(*kernels_, Activation(activation_type, activation_params),
                                  opt.use_bf16_storage);
    const int inputs = weight_data_size / num_output / maxk();
    in_pack_ = best_elempack(*kernels_, inputs, opt);
    narrow_ = num_output * 2 <= kernels_->lanes && axes < 3;
    const int status = narrow_ ? pack_few_channels() : pack_phases(opt);
    if (status != kOk) fail("out of memory for %d weights", weight_data_size);
    return status;
}

int DeconvolutionCpu::pack_phases(const Option& opt) {
    const GemmKernels& gemm = *kernels_->gemm;
    const int taps = maxk();
    const int k = weight_data_size / num_output, inputs = k / taps;
    // Rows of one vector: a panel is a whole number of them, and its floats may exceed an int.
    packed_weight_.create(gemm.lanes, (int)(gemm_packed_size(gemm, num_output, k) / gemm.lanes));
    packed_bias_.create((int)gemm_bias_size(gemm, num_output));
    Mat order(k);
    if (packed_weight_.empty() || packed_bias_.empty() || order.empty()) return kOutOfMemory;
    int* from = order;
    for (int i = 0; i < k; i++) from[i] = i % inputs * taps + i / inputs;
    gemm_pack_ordered(gemm, weight_data, k, from, num_output, k, packed_weight_);
    packed_bias_.fill(0.f);
    if (bias_term) std::copy_n((const float*)bias_data, num_output, (float*)packed_bias_);
    out_pack_ = best_elempack(*kernels_, num_output, opt);
    return kOk;
}

int DeconvolutionCpu::pack_few_channels() {
    const int maxk = kernel_w * kernel_h, inputs = weight_data_size / num_output / maxk;
    few_channel_weight_.create(weight_data_size);
    if (few_channel_weight_.empty()) return kOutOfMemory;
    float* to = few_channel_weight_;
    for (int p = 0; p < num_output; p++) {
        const float* from = (const float*)weight_data + (size_t)p * inputs * maxk;
        for (int tap = 0; tap < maxk; tap++)
            for (int q = 0; q < inputs; q++) *to++ = from[(size_t)q * maxk + tap];
    }
    return kOk;
}

void DeconvolutionCpu::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in,
                                    const Option& opt, std::vector<BlobLayout>* out) const {
    if (patches_.created()) return patches_.plan_layout(in[0], opt, &(*out)[0]);
    ConvGeometry g;
    if (!kernels_ || in.size() != 1 || narrow_ ||
        deconvolution_geometry(*this, *this, {in[0].shape}, &g) != kOk)
        return;
    if (sensible(g)) (*out)[0].elempack = out_pack_;
}

int DeconvolutionCpu::forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                              const Option& opt) const {
    if (bottom_blobs.size() == 1 && !dynamic_weight) {
        top_blobs.resize(1);
        return forward(bottom_blobs[0], top_blobs[0], opt);
    }
    std::vector<Mat> planar;
    QUOLL_RETURN_IF_ERROR(all_planar(bottom_blobs, opt, &planar));
    return Deconvolution::forward(planar, top_blobs, opt);
}

int DeconvolutionCpu::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    ConvGeometry g;
    const std::vector<Shape> shapes(1, bottom_blob.logical_shape());
    QUOLL_RETURN_IF_ERROR(deconvolution_geometry(*this, *this, shapes, &g));
    if (patches_.created())
        return patches_.forward(conv_channels(*this, bottom_blob), &top_blob, opt);
    const bool fast = kernels_ && sensible(g);
    const int pack = fast ? in_pack_ : 1;
    Mat in;
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom_blob, pack, opt, &in));
    if (!fast) return Deconvolution::forward(in, top_blob, opt);
    in = conv_channels(*this, in);
    if (axes < 3) in.dims = 3;  // fewer axes mean one channel
    return narrow_ ? forward_few_channels(in, g, top_blob, opt)
                   : forward_phases(in, g, top_blob, opt);
}

int DeconvolutionCpu::forward_phases(const Mat& bottom, const ConvGeometry& g, Mat& top,
                                     const Option& opt) const {
    const PhaseAxis x(g.x), y(g.y), z(g.z);
    Mat in = bottom;
    if (x.low || x.high || y.low || y.high || z.low || z.high) {
        Option temporary = opt;
        temporary.blob_allocator = opt.workspace_allocator;
        copy_make_border_3d(bottom, in, (int)y.low, (int)y.high, (int)x.low, (int)x.high,
                            (int)z.low, (int)z.high, BORDER_CONSTANT, 0.f, temporary);
    }
    Mat channels;
    QUOLL_RETURN_IF_ERROR(create_conv_top(*this, g, DType::f32, out_pack_, opt, &top, &channels));
    PhaseLists lists(x, y, z, in, channels, kernels_->gemm->max_rows);
    if (in.empty()) return kOutOfMemory;
    QUOLL_RETURN_IF_ERROR(lists.create(opt));

    GemmProblem problem = {};
    problem.kernels = kernels_;
    problem.a = in;
    lists.describe(&problem);
    problem.b = packed_weight_;
    problem.n = g.num_output, problem.k = (size_t)g.num_input * g.maxk();
    problem.bias = packed_bias_;
    problem.c = channels;
    problem.c_pack = out_pack_;
    problem.c_block = (ptrdiff_t)(channels.cstep * out_pack_);
    problem.activation = activation_;
    problem.chunk = gemm_chunk(*kernels_->gemm, g.num_input, 0, problem.n * problem.k);
    gemm_run(problem, threads_for(opt, (double)weight_data_size * g.x.in * g.y.in * g.z.in));
    return kOk;
}

int DeconvolutionCpu::forward_few_channels(const Mat& in, const ConvGeometry& g, Mat& top,
                                           const Option& opt) const {
    const GemmKernels& gemm = *kernels_->gemm;
    const int taps = g.maxk(), products = taps * num_output;
    const int threads = threads_for(opt, (double)weight_data_size * g.x.in * g.y.in * g.z.in);
    // As many rows of the input at a time as keep the products in the cache.
    const int64_t fitting = kFewChannelFloats / ((int64_t)products * in.w);
    const int band = (int)std::max<int64_t>(1, std::min<int64_t>(fitting, in.h));
    const size_t most = (size_t)band * in.w;
    Mat pixels(gemm.lanes, (int)(gemm_packed_size(gemm, most, g.num_input) / gemm.lanes), 4u,
               opt.workspace_allocator);
    Mat zeros((int)gemm_bias_size(gemm, most), 4u, opt.workspace_allocator);
    Mat sums((int)most, products, 4u, opt.workspace_allocator);
    Mat channels;
    QUOLL_RETURN_IF_ERROR(create_conv_top(*this, g, DType::f32, 1, opt, &top, &channels));
    if (pixels.empty() || zeros.empty() || sums.empty()) return kOutOfMemory;
    zeros.fill(0.f);
    const Bands lines(num_output, g.y.out, threads);
    const float limits[] = {activation_.low, activation_.high};

    for (int y0 = 0; y0 < in.h; y0 += band) {
        const int rows = std::min(band, in.h - y0);
        GemmMatrix product = {};
        product.kernels = kernels_;
        product.a = few_channel_weight_;
        product.a_row = g.num_input, product.a_k = 1;
        product.m = products, product.n = (size_t)rows * in.w, product.k = g.num_input;
        pack_pixels(gemm, in, y0, product.n, threads, pixels);
        product.b = pixels;
        product.bias = zeros;
        product.c = sums;
        product.c_row = (ptrdiff_t)product.n;
        product.c_pack = product.n;
        gemm_matrix(product, threads);
        run_tasks(lines.count(), threads, [&](int64_t task, int) {
            const int p = lines.item(task), begin = lines.begin(task), end = lines.end(task);
            const size_t count = (size_t)(end - begin) * g.x.out;
            Mat channel = channels.channel(p);
            float* const values = channel.row(begin);
            if (y0 == 0) std::fill_n(values, count, bias_term ? bias_data[p] : 0.f);
            add_taps(g, (const float*)sums + (size_t)p * taps * product.n, y0, rows, begin, end,
                     channel);
            if (y0 + rows < in.h) return;
            kernels_->unary->clip(values, values, count, limits);
            activation_.finish(values, count);
        });
    }
    return kOk;
}

}  // namespace quoll
