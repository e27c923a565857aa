#include "layer/cpu/conv/conv_planes.h"

#if defined(__x86_64__) || defined(__i386__)

#include <string.h>

#include <algorithm>

#include "layer/common/scratch.h"
#include "layer/common/sublayer.h"
#include "layer/cpu/cast/storage.h"
#include "layer/cpu/conv/conv_layer.h"
#include "layer/cpu/gemm/split_plan.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

// Whether the slices can be taken as rows of w * h columns: nothing is copied then.
bool takes_rows(const ConvFields& s) {
    const bool pads = s.pad_left || s.pad_right || s.pad_top || s.pad_bottom;
    return s.kernel_w * s.kernel_h * s.stride_w * s.stride_h == 1 && !pads;
}

// Reorders weights from [output][input][d][h][w] to [output][d][input][h][w]; empty if memory runs
// out.
Mat weights_by_slice(const ConvFields& s) {
    const size_t taps = (size_t)s.kernel_w * s.kernel_h, depth = s.kernel_d;
    const size_t inputs = s.weight_data_size / s.num_output / (taps * depth);
    Mat to(s.weight_data_size);
    if (to.empty()) return to;
    const float* from = s.weight_data;
    for (size_t n = 0; n < (size_t)s.num_output; n++) {
        for (size_t i = 0; i < inputs; i++) {
            for (size_t z = 0; z < depth; z++, from += taps)
                memcpy((float*)to + ((n * depth + z) * inputs + i) * taps, from, taps * 4);
        }
    }
    return to;
}

// Slice z as a 3-D blob.
Mat slice_of(const Mat& m, int z) {
    Mat slice(m.w, m.h, m.c, (char*)m.data + (size_t)z * m.w * m.h * m.elemsize, m.elemsize,
              m.elempack);
    slice.cstep = m.cstep;
    slice.dtype = m.dtype;
    return slice;
}

// `count` slices at position `first` and every `step` further on, one after another as channels;
// zeros where there is none. Empty if memory runs out.
Mat gathered_slices(const Mat& in, int64_t first, int step, int count, const Option& opt) {
    const size_t bytes = (size_t)in.w * in.h * in.elemsize;
    Mat all(Shape(in.w, in.h, in.c * in.elempack * count, in.dtype), in.elempack,
            opt.workspace_allocator);
    if (all.empty()) return all;
    const int threads = threads_for(opt, (double)bytes * in.c * count);
    parallel_for((int64_t)count * in.c, threads, [&](int64_t i) {
        const int64_t at = first + i / in.c * step, q = i % in.c;
        char* to = (char*)all.data + (size_t)i * all.cstep * in.elemsize;
        if (at >= 0 && at < in.d)
            memcpy(to, (char*)in.data + in.cstep * q * in.elemsize + at * bytes, bytes);
        else
            memset(to, 0, bytes);
    });
    return all;
}

// The input of 2-D convolutions, for one window of slices after another.
class SliceWindows {
public:
    SliceWindows(const Mat& in, const WindowAxis& axis, const Option& opt)
        : in_(in),
          axis_(axis),
          opt_(opt),
          overlap_(axis.dilation == 1 && axis.stride < axis.kernel) {
        // Windows that share slices are parts of one copy.
        if (overlap_)
            all_ = gathered_slices(in, axis.position(0, 0), 1,
                                   (axis.out - 1) * axis.stride + axis.kernel, opt);
    }
    // Window z; empty if memory runs out.
    Mat window(int z) const {
        const int64_t at = axis_.position(z, 0);
        if (axis_.kernel == 1 && axis_.holds(at)) return slice_of(in_, (int)at);
        if (!overlap_) return gathered_slices(in_, at, axis_.dilation, axis_.kernel, opt_);
        if (all_.empty()) return Mat();
        return all_.channel_range(z * axis_.stride * in_.c, axis_.kernel * in_.c);
    }

private:
    const Mat in_;
    const WindowAxis axis_;
    const Option& opt_;
    const bool overlap_;
    Mat all_;
};

Shape plane_shape(const Shape& s, bool rows, int slices) {
    return rows ? Shape(s.w * s.h, s.d, s.c, s.dtype) : Shape(s.w, s.h, s.c * slices, s.dtype);
}

// As conv_channels.
Shape with_depth(const Shape& s) { return Shape(s.w, s.h, s.d, s.c, s.dtype); }

// A view of an input or output whose rows are the slices.
Mat as_rows(const Mat& m) {
    Mat rows = m;
    rows.dims = 3;
    rows.w = m.w * m.h, rows.h = m.d, rows.d = 1;
    return rows;
}

// The residual, with the output's shape.
int spread_added(const Layer& layer, const ConvolutionFields& s, const ConvGeometry& g,
                 const Mat& added, const Option& opt, Mat* full) {
    *full = added;
    const Shape shape = conv_output_shape(s, g, added.dtype);
    if (added.logical_shape() == shape) return kOk;
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    const std::unique_ptr<Layer> sum = make_binaryop(layer, "add_input (29)", 0, true);
    if (!sum) return kError;
    QUOLL_RETURN_IF_ERROR(sum->create_pipeline(temporary));
    Mat zeros(conv_output_shape(s, g, DType::f32), 1, opt.workspace_allocator), wide;
    if (zeros.empty()) return kOutOfMemory;
    zeros.fill(0.f);
    QUOLL_RETURN_IF_ERROR(widened(added, temporary, &wide));
    std::vector<Mat> tops(1);
    QUOLL_RETURN_IF_ERROR(sum->forward(std::vector<Mat>{zeros, wide}, tops, temporary));
    *full = tops[0];
    return kOk;
}

}  // namespace

int PlaneConv::create(const Layer& layer, const ConvolutionFields& s, const Option& opt) {
    conv_.reset();
    const std::vector<Mat>& hints = layer.bottom_shapes;
    const bool same = std::min({s.pad_left, s.pad_right, s.pad_top, s.pad_bottom, s.pad_front}) < 0;
    if (s.axes != 3 || !opt.use_bf16_storage || !split_kernels_for(opt) || s.group != 1 || same ||
        s.dynamic_weight || s.pad_value != 0.f)
        return kOk;
    std::unique_ptr<ConvolutionCpu> conv(new ConvolutionCpu(2));
    static_cast<ConvolutionFields&>(*conv) = s;
    conv->axes = 2;
    conv->type = layer.type, conv->name = layer.name;
    const bool rows = takes_rows(s);
    if (rows) {
        conv->kernel_h = s.kernel_d, conv->stride_h = s.stride_d;
        conv->dilation_h = s.dilation_d;
        conv->pad_top = s.pad_front, conv->pad_bottom = s.pad_behind;
    } else {
        conv->weight_data = weights_by_slice(s);
        if (conv->weight_data.empty()) return kOutOfMemory;
    }
    conv->kernel_d = conv->stride_d = conv->dilation_d = 1;
    conv->pad_front = conv->pad_behind = 0;
    conv->bottom_shapes.clear();
    const bool hinted = !hints.empty() && hints[0].dims >= 3;
    for (size_t i = 0; hinted && i < hints.size(); i++) {
        const Shape hint = with_depth(hints[i].logical_shape());
        conv->bottom_shapes.push_back(
            Mat::of_shape(plane_shape(hint, rows, i || rows ? 1 : s.kernel_d)));
    }
    QUOLL_RETURN_IF_ERROR(conv->check_inputs());
    QUOLL_RETURN_IF_ERROR(conv->create_pipeline(opt));
    conv_ = std::move(conv);
    return kOk;
}

void PlaneConv::plan_layout(const Layer& layer, const ConvolutionFields& s,
                            const std::vector<BlobLayout>& in, const Option& opt,
                            BlobLayout* top) const {
    std::vector<Shape> shapes;
    for (const BlobLayout& b : in) shapes.push_back(b.shape);
    ConvGeometry g;
    if (convolution_geometry(layer, s, shapes, &g) != kOk) return;
    const bool rows = takes_rows(s);
    std::vector<BlobLayout> planes = in, out(1);
    planes[0].shape = plane_shape(with_depth(in[0].shape), rows, rows ? 1 : s.kernel_d);
    const Shape sums = conv_output_shape(s, g, in[0].shape.dtype);
    if (in.size() > 1) planes[1].shape = plane_shape(sums, rows, 1);
    shapes.clear();
    for (const BlobLayout& b : planes) shapes.push_back(b.shape);
    std::shared_ptr<const LayerPlan> plan;
    if (conv_->plan(shapes, opt, &plan) != kOk) return;
    out[0].shape = plane_shape(sums, rows, 1);
    conv_->plan_layouts(plan.get(), planes, opt, &out);
    top->elempack = out[0].elempack;
    top->shape.dtype = out[0].shape.dtype;
}

int PlaneConv::forward(const Layer& layer, const ConvolutionFields& s,
                       const std::vector<Mat>& bottoms, Mat* top, const Option& opt) const {
    const ShapeList shapes(bottoms);
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(convolution_geometry(layer, s, *shapes, &g));
    const Mat in = conv_channels(s, bottoms[0]);
    std::vector<Mat> planes(bottoms.size()), out(1);
    Mat added;
    if (s.add_input) QUOLL_RETURN_IF_ERROR(spread_added(layer, s, g, bottoms[1], opt, &added));
    if (takes_rows(s)) {
        planes[0] = as_rows(in);
        if (s.add_input) planes[1] = as_rows(added);
        QUOLL_RETURN_IF_ERROR(conv_->forward(planes, out, opt));
        *top = out[0];
        top->dims = 4;
        top->w = g.x.out, top->h = g.y.out, top->d = g.z.out;
        return kOk;
    }
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    const SliceWindows windows(in, g.z, opt);
    std::shared_ptr<const LayerPlan> plan;
    for (int z = 0; z < g.z.out; z++) {
        planes[0] = windows.window(z);
        if (planes[0].empty()) return kOutOfMemory;
        if (s.add_input) planes[1] = slice_of(added, z);
        if (z == 0) QUOLL_RETURN_IF_ERROR(conv_->plan(*ShapeList(planes), temporary, &plan));
        QUOLL_RETURN_IF_ERROR(plan ? conv_->forward_planned(*plan, planes, out, false, temporary)
                                   : conv_->forward(planes, out, temporary));
        const Mat& made = out[0];
        if (z == 0)
            top->create(conv_output_shape(s, g, made.dtype), made.elempack, opt.blob_allocator);
        if (top->empty()) return kOutOfMemory;
        const size_t bytes = (size_t)made.w * made.h * made.elemsize;
        parallel_for(made.c, threads_for(opt, (double)bytes * made.c), [&](int64_t q) {
            memcpy((char*)top->data + top->cstep * q * made.elemsize + z * bytes,
                   (const char*)made.data + made.cstep * q * made.elemsize, bytes);
        });
    }
    return kOk;
}

}  // namespace quoll

#endif
