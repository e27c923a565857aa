#include "layer/cpu/dwconv/dwdeconv_layer.h"

#include <string.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "layer/cpu/dwconv/window_taps.h"
#include "runtime/thread_pool.h"

namespace quoll {

DeconvolutionDepthWiseCpu::DeconvolutionDepthWiseCpu(int axes)
    : Deconvolution(axes, true), kernels_(nullptr), pack_(0) {
    support_packing = true;
}

const DeconvolutionDepthWiseCpu::TapClass* DeconvolutionDepthWiseCpu::AxisClasses::find(
    int residue) const {
    const auto at =
        std::lower_bound(classes.begin(), classes.end(), residue,
                         [](const TapClass& c, int wanted) { return c.residue < wanted; });
    return at != classes.end() && at->residue == residue ? &*at : nullptr;
}

DeconvolutionDepthWiseCpu::AxisClasses DeconvolutionDepthWiseCpu::classes_of(int kernel,
                                                                             int dilation,
                                                                             int stride) {
    AxisClasses axis;
    axis.step = stride / std::gcd(stride, dilation);
    for (int k = 0; k < std::min(axis.step, kernel); k++)
        axis.classes.push_back(TapClass{(int)((int64_t)k * dilation % stride), k,
                                        (kernel - 1 - k) / axis.step + 1, 0});
    std::sort(axis.classes.begin(), axis.classes.end(),
              [](const TapClass& a, const TapClass& b) { return a.residue < b.residue; });
    int before = 0;
    for (TapClass& c : axis.classes) {
        c.before = before;
        before += c.count;
    }
    return axis;
}

DeconvolutionDepthWiseCpu::Phase DeconvolutionDepthWiseCpu::phase_of(const AxisClasses& classes,
                                                                     const WindowAxis& axis,
                                                                     int first) {
    const int64_t position = (int64_t)first + axis.before;
    Phase phase = {WindowAxis{axis.in, (axis.out - 1 - first) / axis.stride + 1, 1, 1, 1, 0, 0},
                   classes.find((int)(position % axis.stride)), first};
    if (!phase.taps) return phase;
    phase.axis.kernel = phase.taps->count;
    phase.axis.dilation =
        std::max<int>(1, (int)((int64_t)classes.step * axis.dilation / axis.stride));
    // The last tap of the class reads the leftmost input.
    const int64_t last = phase.taps->first_tap + (int64_t)(phase.taps->count - 1) * classes.step;
    phase.axis.before = (int)((last * axis.dilation - position) / axis.stride);
    return phase;
}

int DeconvolutionDepthWiseCpu::create_pipeline(const Option& opt) {
    QUOLL_RETURN_IF_ERROR(Deconvolution::create_pipeline(opt));
    kernels_ = &host_kernel_set();
    pack_ = 0;
    groups_.clear();
    if (dynamic_weight) return kOk;
    if (!depthwise()) return make_groups(opt);
    if (axes == 3) return kOk;
    const int pack = best_elempack(*kernels_, num_output, opt);
    if (pack == 1) return kOk;
    pack_ = pack;
    activation_ = FusedActivation(*kernels_, Activation(activation_type, activation_params),
                                  opt.use_bf16_storage);
    x_ = classes_of(kernel_w, dilation_w, stride_w);
    y_ = classes_of(kernel_h, dilation_h, stride_h);
    return repack_weights();
}

int DeconvolutionDepthWiseCpu::make_groups(const Option& opt) {
    const int outputs = num_output / group, weights = weight_data_size / group;
    for (int i = 0; i < group; i++) {
        std::unique_ptr<DeconvolutionCpu> part(new DeconvolutionCpu(axes));
        static_cast<DeconvolutionFields&>(*part) = *this;
        part->name = name;
        part->group = 1;
        part->num_output = outputs;
        part->weight_data_size = weights;
        part->weight_data = weight_data.range(i * weights, weights);
        if (bias_term) part->bias_data = bias_data.range(i * outputs, outputs);
        QUOLL_RETURN_IF_ERROR(part->create_pipeline(opt));
        groups_.push_back(std::move(part));
    }
    return kOk;
}

int DeconvolutionDepthWiseCpu::repack_weights() {
    packed_weight_.create(weight_data_size);
    packed_bias_.create(num_output);
    if (packed_weight_.empty() || packed_bias_.empty()) {
        fail("out of memory for %d weights", weight_data_size);
        return kOutOfMemory;
    }
    const int maxk = kernel_w * kernel_h;
    for (int p = 0; p < num_output; p++) {
        const float* from = (const float*)weight_data + (size_t)p * maxk;
        float* to = (float*)packed_weight_ + (size_t)(p / pack_) * pack_ * maxk + p % pack_;
        for (const TapClass& cy : y_.classes) {
            for (const TapClass& cx : x_.classes) {
                for (int i = cy.count - 1; i >= 0; i--) {
                    const float* row = from + (size_t)(cy.first_tap + i * y_.step) * kernel_w;
                    for (int k = cx.count - 1; k >= 0; k--, to += pack_)
                        *to = row[cx.first_tap + k * x_.step];
                }
            }
        }
        packed_bias_[p] = bias_term ? bias_data[p] : 0.f;
    }
    return kOk;
}

int DeconvolutionDepthWiseCpu::forward(const std::vector<Mat>& bottom_blobs,
                                       std::vector<Mat>& top_blobs, const Option& opt) const {
    if (bottom_blobs.size() == 1 && !dynamic_weight) {
        top_blobs.resize(1);
        return forward(bottom_blobs[0], top_blobs[0], opt);
    }
    std::vector<Mat> planar;
    QUOLL_RETURN_IF_ERROR(all_planar(bottom_blobs, opt, &planar));
    return Deconvolution::forward(planar, top_blobs, opt);
}

void DeconvolutionDepthWiseCpu::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in,
                                             const Option& opt,
                                             std::vector<BlobLayout>* out) const {
    if (pack_ != 0 && in.size() == 1) (*out)[0].elempack = pack_;
    if (groups_.empty() || in.size() != 1) return;
    std::vector<BlobLayout> part(1);  // all groups make the same layout
    BlobLayout some = in[0];
    (some.shape.dims == 2 ? some.shape.h : some.shape.c) /= group;
    groups_[0]->plan_layouts(nullptr, {some}, opt, &part);
    (*out)[0].elempack = part[0].elempack;
    (*out)[0].shape.dtype = part[0].shape.dtype;
}

int DeconvolutionDepthWiseCpu::forward(const Mat& bottom_blob, Mat& top_blob,
                                       const Option& opt) const {
    Mat in;
    if (!groups_.empty()) return forward_groups(bottom_blob, top_blob, opt);
    if (pack_ == 0) {
        QUOLL_RETURN_IF_ERROR(with_elempack(bottom_blob, 1, opt, &in));
        return Deconvolution::forward(in, top_blob, opt);
    }
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(deconvolution_geometry(
        *this, *this, std::vector<Shape>(1, bottom_blob.logical_shape()), &g));
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom_blob, pack_, opt, &in));
    Mat channels;
    QUOLL_RETURN_IF_ERROR(create_conv_top(*this, g, DType::f32, pack_, opt, &top_blob, &channels));
    run(conv_channels(*this, in), g, channels,
        threads_for(opt, (double)g.x.in * g.y.in * g.maxk() * g.num_output));
    return kOk;
}

namespace {

// `count` channels (rows of a deconvolution of one axis) from `first` on, in numbers of blocks.
Mat some_channels(const Mat& blob, int first, int count) {
    return blob.dims == 2 ? blob.row_range(first, count) : blob.channel_range(first, count);
}

}  // namespace

int DeconvolutionDepthWiseCpu::forward_groups(const Mat& bottom, Mat& top,
                                              const Option& opt) const {
    ConvGeometry g;
    const std::vector<Shape> shapes(1, bottom.logical_shape());
    QUOLL_RETURN_IF_ERROR(deconvolution_geometry(*this, *this, shapes, &g));
    const int inputs = weight_data_size / num_output / g.maxk(), outputs = num_output / group;
    const int in_pack = best_elempack(*kernels_, inputs, opt);
    Mat in, channels;
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom, in_pack, opt, &in));
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    for (int i = 0; i < group; i++) {
        // A blob of fewer axes is one channel.
        const Mat input =
            group == 1 ? in : some_channels(in, i * inputs / in_pack, inputs / in_pack);
        Mat made;
        QUOLL_RETURN_IF_ERROR(groups_[i]->forward(input, made, temporary));
        const int pack = made.elempack, blocks = outputs / pack;
        if (i == 0)  // bf16 where windows lie side by side (PatchDeconv)
            QUOLL_RETURN_IF_ERROR(
                create_conv_top(*this, g, made.dtype, pack, opt, &top, &channels));
        const Mat part = conv_channels(*this, made);
        for (int q = 0; q < blocks; q++)
            memcpy(channels.channel(i * blocks + q).data, part.channel(q).data,
                   (size_t)part.w * part.h * part.d * part.elemsize);
    }
    return kOk;
}

void DeconvolutionDepthWiseCpu::run(const Mat& in, const ConvGeometry& g, Mat& top,
                                    int threads) const {
    std::vector<Phase> phases;
    for (int x = 0; x < std::min(g.x.stride, g.x.out); x++) phases.push_back(phase_of(x_, g.x, x));
    const Bands bands(top.c, g.y.out, threads);
    run_tasks(bands.count(), threads, [&](int64_t task, int) {
        const int q = bands.item(task);
        const float* channel = (const float*)in.data + q * in.cstep * pack_;
        const float* weights = (const float*)packed_weight_ + (size_t)q * g.maxk() * pack_;
        for (int y = bands.begin(task), end = bands.end(task); y < end; y++) {
            const Phase down = phase_of(y_, g.y, y % g.y.stride);
            float* out = (float*)top.data + (q * top.cstep + (size_t)y * g.x.out) * pack_;
            for (const Phase& along : phases) {
                const bool reached = down.taps && along.taps;
                DwconvRow row = {};
                row.bias = (const float*)packed_bias_ + (size_t)q * pack_;
                row.out = out + (size_t)along.first_output * pack_;
                row.out_step = (size_t)g.x.stride;
                row.in_w = g.x.in, row.out_w = along.axis.out;
                row.kernel_w = along.axis.kernel, row.kernel_h = down.axis.kernel;
                row.dilation_w = along.axis.dilation, row.stride_w = 1;
                row.pad_left = along.axis.before;
                row.low = activation_.low, row.high = activation_.high;
                row.row_step = (size_t)down.axis.dilation * g.x.in * pack_;
                inner_outputs(along.axis, &row.x_first, &row.x_last);
                row.in = channel;
                if (reached) {
                    const int64_t start =
                        taps_inside(down.axis, y / g.y.stride, &row.ky_first, &row.ky_last);
                    const int64_t first = start + (int64_t)row.ky_first * down.axis.dilation;
                    if (row.ky_first < row.ky_last) row.in = channel + first * g.x.in * pack_;
                    row.weight = weights + ((size_t)down.taps->before * kernel_w +
                                            (size_t)down.taps->count * along.taps->before) *
                                               pack_;
                }
                select_dwconv_row(*kernels_->dwconv, pack_, row.kernel_w, 1, row.dilation_w)(row);
            }
            activation_.finish(out, (size_t)g.x.out * pack_);
        }
    });
}

}  // namespace quoll
