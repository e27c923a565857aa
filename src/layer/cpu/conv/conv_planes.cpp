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

int inputs_of(const ConvFields& s) {
    return s.weight_data_size / s.num_output / (s.kernel_w * s.kernel_h * s.kernel_d);
}

// Whether the rows of the slices alternate in a plane, instead of the slices being further
// channels: tile units multiply whole rows of windows of few channels.
bool alternates(const ConvFields& s) {
    const bool dense = s.dilation_w == 1 && s.dilation_h == 1 && s.dilation_d == 1;
    return !takes_rows(s) && dense && s.kernel_w > 1 && s.kernel_d > 1 &&
           inputs_of(s) < kSplitPixel;
}

// Reorders weights from [output][input][d][h][w] to [output][d][input][h][w], or to
// [output][input][h][d][w] where rows alternate; empty if memory runs out.
Mat weights_by_slice(const ConvFields& s) {
    const size_t width = s.kernel_w, height = s.kernel_h, depth = s.kernel_d;
    const size_t inputs = inputs_of(s);
    const bool rows = alternates(s);
    Mat to(s.weight_data_size);
    if (to.empty()) return to;
    const float* from = s.weight_data;
    for (size_t n = 0; n < (size_t)s.num_output; n++) {
        for (size_t i = 0; i < inputs; i++) {
            for (size_t z = 0; z < depth; z++)
                for (size_t y = 0; y < height; y++, from += width) {
                    const size_t row = rows ? ((n * inputs + i) * height + y) * depth + z
                                            : ((n * depth + z) * inputs + i) * height + y;
                    memcpy((float*)to + row * width, from, width * 4);
                }
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

// `count` planar slices from `first` on, whose rows alternate: row y of slice z is number y * count
// + z. Zeros where there is none. Empty if memory runs out.
Mat alternating_slices(const Mat& in, int64_t first, int count, const Option& opt) {
    const size_t row = in.w * in.elemsize;
    Mat all(Shape(in.w, in.h * count, in.c, in.dtype), 1, opt.workspace_allocator);
    if (all.empty()) return all;
    const int threads = threads_for(opt, (double)row * in.h * in.c * count);
    parallel_for((int64_t)in.c * in.h, threads, [&](int64_t i) {
        const int64_t q = i / in.h, y = i % in.h;
        char* to = (char*)all.data + q * all.cstep * in.elemsize + y * count * row;
        for (int64_t z = first; z < first + count; z++, to += row) {
            if (z >= 0 && z < in.d)
                memcpy(to, (char*)in.data + q * in.cstep * in.elemsize + (z * in.h + y) * row, row);
            else
                memset(to, 0, row);
        }
    });
    return all;
}

// The slices of a 3-D blob as the items of a batch, every `step` of them.
Mat slices_as_items(const Mat& m, int count, int step) {
    Mat items = slice_of(m, 0);
    items.n = count, items.nstep = (size_t)step * m.w * m.h;
    return items;
}

bool overlaps(const WindowAxis& axis) { return axis.dilation == 1 && axis.stride < axis.kernel; }

// How many slices windows that overlap read.
int slices_read(const WindowAxis& axis) { return (axis.out - 1) * axis.stride + axis.kernel; }

// Whether the windows lie at equal distances, in the input or in one copy of its slices.
bool are_items(const WindowAxis& axis) {
    const bool inside =
        axis.holds(axis.position(0, 0)) && axis.holds(axis.position(axis.out - 1, 0));
    return axis.out > 1 && (overlaps(axis) || (axis.kernel == 1 && axis.before == 0 && inside));
}

// These windows as the items of a batch. `slices`: where they overlap the copy, else the input,
// which has so many channel blocks.
Mat windows_as_items(const Mat& slices, const WindowAxis& axis, int blocks) {
    if (!overlaps(axis)) return slices_as_items(slices, axis.out, axis.stride);
    Mat items = slices.channel_range(0, axis.kernel * blocks);
    items.n = axis.out, items.nstep = (size_t)axis.stride * blocks * slices.cstep;
    return items;
}

// The input of 2-D convolutions, for one window of slices after another.
class SliceWindows {
public:
    SliceWindows(const Mat& in, const WindowAxis& axis, bool alternate, const Option& opt)
        : in_(in),
          axis_(axis),
          opt_(opt),
          alternate_(alternate),
          overlap_(!alternate && overlaps(axis)) {
        // Windows that share slices are parts of one copy.
        if (overlap_) all_ = gathered_slices(in, axis.position(0, 0), 1, slices_read(axis), opt);
    }
    // All of them, which are_items() has found to be such; empty if memory runs out.
    Mat all() const {
        if (overlap_ && all_.empty()) return all_;
        return windows_as_items(overlap_ ? all_ : in_, axis_, in_.c);
    }
    // Window z; empty if memory runs out.
    Mat window(int z) const {
        const int64_t at = axis_.position(z, 0);
        if (alternate_) return alternating_slices(in_, at, axis_.kernel, opt_);
        if (axis_.kernel == 1 && axis_.holds(at)) return slice_of(in_, (int)at);
        if (!overlap_) return gathered_slices(in_, at, axis_.dilation, axis_.kernel, opt_);
        if (all_.empty()) return Mat();
        return all_.channel_range(z * axis_.stride * in_.c, axis_.kernel * in_.c);
    }

private:
    const Mat in_;
    const WindowAxis axis_;
    const Option& opt_;
    const bool alternate_, overlap_;
    Mat all_;
};

// Of an output, or of an input, whose planes have all slices of a window.
Shape plane_shape(const ConvFields& f, const Shape& s, bool of_input) {
    if (takes_rows(f)) return Shape(s.w * s.h, s.d, s.c, s.dtype);
    const int slices = of_input ? f.kernel_d : 1;
    return alternates(f) ? Shape(s.w, s.h * slices, s.c, s.dtype)
                         : Shape(s.w, s.h, s.c * slices, s.dtype);
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

// A blob that has no memory.
Mat blob_without_memory(const Shape& s, int pack) {
    Mat m(s.w, s.h, s.d, s.c / pack, (void*)nullptr, dtype_size(s.dtype) * pack, pack);
    m.dims = s.dims, m.dtype = s.dtype;
    return m;
}

}  // namespace

struct PlaneConv::Plan : public LayerPlan {
    const char* algorithm() const override { return conv->algorithm(); }

    std::shared_ptr<const LayerPlan> conv;  // of the rows, of all slices, or of each
    bool all = false;                       // of all slices, which are items of a batch
    BlobLayout out;                         // of a slice
};

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
    if (alternates(s)) {
        conv->kernel_h *= s.kernel_d, conv->stride_h *= s.kernel_d;
        conv->pad_top *= s.kernel_d, conv->pad_bottom *= s.kernel_d;
    }
    conv->kernel_d = conv->stride_d = conv->dilation_d = 1;
    conv->pad_front = conv->pad_behind = 0;
    conv->bottom_shapes.clear();
    const bool hinted = !hints.empty() && hints[0].dims >= 3;
    for (size_t i = 0; hinted && i < hints.size(); i++) {
        const Shape hint = with_depth(hints[i].logical_shape());
        conv->bottom_shapes.push_back(Mat::of_shape(plane_shape(s, hint, i == 0)));
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
    std::vector<BlobLayout> planes = in, out(1);
    planes[0].shape = plane_shape(s, with_depth(in[0].shape), true);
    const Shape sums = conv_output_shape(s, g, in[0].shape.dtype);
    if (in.size() > 1) planes[1].shape = plane_shape(s, sums, false);
    shapes.clear();
    for (const BlobLayout& b : planes) shapes.push_back(b.shape);
    std::shared_ptr<const LayerPlan> plan;
    if (conv_->plan(shapes, opt, &plan) != kOk) return;
    out[0].shape = plane_shape(s, sums, false);
    conv_->plan_layouts(plan.get(), planes, opt, &out);
    top->elempack = out[0].elempack;
    top->shape.dtype = out[0].shape.dtype;
}

// Here, since libraries without PlaneConv have no use for it.
int ConvolutionCpu::plan_items(const Mat& in, const Mat& out, const Option& opt,
                               std::shared_ptr<const LayerPlan>* plan) const {
    std::vector<Shape> items = {in.logical_shape()};
    if (add_input) items.push_back(out.logical_shape());
    Shape sums;
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(batch_geometry(&items, &g, &sums));
    const std::shared_ptr<ConvolutionPlan> made = std::make_shared<ConvolutionPlan>();
    made->batch = true;
    QUOLL_RETURN_IF_ERROR(
        runner_.plan_items(*this, *this, g, in, out, add_input != 0, opt, &made->f32));
    made->name = algorithm_name(made->f32.algorithm);
    if (made->f32.split) *plan = made;
    return kOk;
}

int PlaneConv::plan(const Layer& layer, const ConvolutionFields& s,
                    const std::vector<Shape>& bottoms, const Option& opt,
                    std::shared_ptr<const LayerPlan>* plan) const {
    for (const Shape& b : bottoms)
        if (b.n > 1) return kOk;
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(convolution_geometry(layer, s, bottoms, &g));
    const bool rows = takes_rows(s);
    std::vector<Shape> planes = {plane_shape(s, with_depth(bottoms[0]), true)};
    if (s.add_input)
        planes.push_back(plane_shape(s, conv_output_shape(s, g, bottoms[0].dtype), false));
    const std::shared_ptr<Plan> made = std::make_shared<Plan>();
    QUOLL_RETURN_IF_ERROR(conv_->plan(planes, opt, &made->conv));
    if (!made->conv) return kOk;
    if (!rows && !alternates(s)) plan_slices(s, g, bottoms, planes, opt, made.get());
    *plan = made;
    return kOk;
}

// All slices at once, where they lie at equal distances.
void PlaneConv::plan_slices(const ConvolutionFields& s, const ConvGeometry& g,
                            const std::vector<Shape>& bottoms, const std::vector<Shape>& planes,
                            const Option& opt, Plan* plan) const {
    const Shape in = with_depth(bottoms[0]), sums = conv_output_shape(s, g, in.dtype);
    std::vector<BlobLayout> layouts(planes.size()), out(1);
    for (size_t i = 0; i < planes.size(); i++) layouts[i].shape = planes[i];
    out[0].shape = plane_shape(s, sums, false);
    conv_->plan_layouts(plan->conv.get(), layouts, opt, &out);
    plan->out = out[0];
    const int pack = conv_->in_pack();
    if (in.c % pack != 0 || !are_items(g.z) || (s.add_input && bottoms[1] != sums)) return;
    const Mat slices = blob_without_memory(
        overlaps(g.z) ? Shape(in.w, in.h, in.c * slices_read(g.z), in.dtype) : in, pack);
    const Mat top =
        blob_without_memory(conv_output_shape(s, g, out[0].shape.dtype), out[0].elempack);
    const Mat windows = windows_as_items(slices, g.z, in.c / pack);
    std::shared_ptr<const LayerPlan> all;
    if (conv_->plan_items(windows, slices_as_items(top, g.z.out, 1), opt, &all) == kOk && all)
        plan->conv = all, plan->all = true;
}

// `top` is left as it is created where that returns kOneByOne.
int PlaneConv::forward_all(const Plan& plan, const ConvolutionFields& s, const ConvGeometry& g,
                           const Mat& windows, const Mat& added, Mat* top,
                           const Option& opt) const {
    if (windows.empty()) return kOutOfMemory;
    std::vector<Mat> planes = {windows}, out(1);
    if (s.add_input) planes.push_back(slices_as_items(added, g.z.out, 1));
    const Shape shape = conv_output_shape(s, g, plan.out.shape.dtype);
    top->create(shape, plan.out.elempack, opt.blob_allocator);
    if (top->empty()) return kOutOfMemory;
    out[0] = slices_as_items(*top, g.z.out, 1);
    return conv_->forward_planned(*plan.conv, planes, out, false, opt);
}

int PlaneConv::forward(const Layer& layer, const ConvolutionFields& s, const LayerPlan* plan,
                       const std::vector<Mat>& bottoms, Mat* top, const Option& opt) const {
    const Plan* const p = static_cast<const Plan*>(plan);
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
        QUOLL_RETURN_IF_ERROR(p ? conv_->forward_planned(*p->conv, planes, out, false, opt)
                                : conv_->forward(planes, out, opt));
        *top = out[0];
        top->dims = 4;
        top->w = g.x.out, top->h = g.y.out, top->d = g.z.out;
        return kOk;
    }
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    const SliceWindows windows(in, g.z, alternates(s), opt);
    if (p && p->all) {
        const int status = forward_all(*p, s, g, windows.all(), added, top, opt);
        if (status != kOneByOne) return status;
    }
    std::shared_ptr<const LayerPlan> slice;
    if (p && !p->all) slice = p->conv;
    for (int z = 0; z < g.z.out; z++) {
        planes[0] = windows.window(z);
        if (planes[0].empty()) return kOutOfMemory;
        if (s.add_input) planes[1] = slice_of(added, z);
        if (!slice) QUOLL_RETURN_IF_ERROR(conv_->plan(*ShapeList(planes), temporary, &slice));
        QUOLL_RETURN_IF_ERROR(slice ? conv_->forward_planned(*slice, planes, out, false, temporary)
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
