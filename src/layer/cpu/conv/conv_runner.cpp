#include "layer/cpu/conv/conv_runner.h"

#include <limits.h>
#include <string.h>

#include <algorithm>

namespace quoll {

namespace {

ConvAxis conv_axis(const WindowAxis& axis) {
    return {axis.in, axis.out, axis.kernel, axis.stride, axis.dilation, axis.before};
}

// `in` with its padding around it, for the cases that a plan does not take; afterwards the axes
// have none.
int pad_input(const Mat& in, float value, const Option& opt, ConvGeometry* g, Mat* padded) {
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    copy_make_border_3d(in, *padded, g->y.before, g->y.after, g->x.before, g->x.after, g->z.before,
                        g->z.after, BORDER_CONSTANT, value, temporary);
    if (padded->empty()) return kOutOfMemory;
    g->x.in = padded->w, g->y.in = padded->h, g->z.in = padded->d;
    for (WindowAxis* axis : {&g->x, &g->y, &g->z}) axis->before = axis->after = 0;
    return kOk;
}

bool has_padding(const ConvGeometry& g) {
    return g.x.before > 0 || g.x.after > 0 || g.y.before > 0 || g.y.after > 0 || g.z.before > 0 ||
           g.z.after > 0;
}

}  // namespace

ConvRunner::ConvRunner()
    : kernels_(nullptr),
      means_(),
      narrow_(false),
      kernel_w_(1),
      kernel_h_(1),
      kernel_d_(1),
      group_(1),
      in_channels_(0),
      out_channels_(0),
      in_pack_(1),
      out_pack_(1),
      form_(Form::kUndecided) {}

bool ConvRunner::winograd_candidate(const ConvolutionFields& s, const Option& opt) const {
    ConvShape shape = {};
    shape.x.kernel = kernel_w_;
    shape.x.stride = s.stride_w;
    shape.x.dilation = s.dilation_w;
    shape.y.kernel = kernel_h_;
    shape.y.stride = s.stride_h;
    shape.y.dilation = s.dilation_h;
    shape.in_pack = in_pack_;
    shape.out_pack = out_pack_;
    return opt.use_winograd_convolution && group_ == 1 && s.axes == 2 &&
           WinogradPlan::takes(*kernels_, shape);
}

int ConvRunner::create(const Layer& layer, const ConvolutionFields& s, const Option& opt) {
    const KernelSet& kernels = host_kernel_set();
    kernels_ = nullptr;
    form_ = Form::kUndecided;
    plans_ = Plans();
    weights_.release();
    kernel_w_ = s.kernel_w;
    kernel_h_ = s.kernel_h;
    kernel_d_ = s.kernel_d;
    group_ = s.group;
    out_channels_ = s.num_output / group_;
    in_channels_ = s.weight_data_size / s.maxk() / s.num_output;
    in_pack_ = best_elempack(kernels, in_channels_, opt);
    out_pack_ = best_elempack(kernels, out_channels_, opt);
    activation_ = FusedActivation(kernels, Activation(s.activation_type, s.activation_params));
    raw_weights_ = s.weight_data;
    const size_t bias_floats =
        std::max(gemm_bias_size(*kernels.gemm, out_channels_), SplitPlan::bias_size(out_channels_));
    bias_.create((int)bias_floats, group_);
    zeros_.create((int)bias_floats);
    if (bias_.empty() || zeros_.empty()) {
        layer.fail("out of memory for %zu floats of bias", bias_floats);
        return kOutOfMemory;
    }
    bias_.fill(0.f);
    zeros_.fill(0.f);
    for (int g = 0; g < group_ && s.bias_term; g++)
        memcpy(bias_.row(g), (const float*)s.bias_data + (size_t)g * out_channels_,
               out_channels_ * sizeof(float));
    kernels_ = &kernels;

    int status = kOk;
    ConvGeometry g;
    means_ = ConvMeans();
    means_.winograd = winograd_candidate(s, opt);
    if (s.axes < 3) {
        means_.split = split_kernels_for(opt);
        means_.fixed = fixed_kernels_for(opt);
    }
    narrow_ = opt.use_bf16_storage;
    const bool hinted = layer.bottom_shapes.size() == (s.add_input ? 2u : 1u);
    if ((!means_.winograd && !means_.split && !means_.fixed) ||
        (hinted && layer.bottom_shapes[0].dims == 1)) {
        status = pack_direct();
    } else if (hinted && layer.bottom_shapes[0].dims == 3) {
        QUOLL_RETURN_IF_ERROR(convolution_geometry(layer, s, layer.bottom_shapes, &g));
        status = decide(shape_of(g));
    }
    if (status != kOk) {
        kernels_ = nullptr;
        layer.fail("out of memory for %d weights", s.weight_data_size);
    }
    return status;
}

void ConvRunner::pack_group(const float* from, float* packed) const {
    const GemmKernels& gemm = *kernels_->gemm;
    const size_t k = (size_t)in_channels_ * kernel_w_ * kernel_h_ * kernel_d_;
    if (kernel_w_ * kernel_h_ * kernel_d_ == 1)
        return gemm_pack(gemm, from, k, false, out_channels_, k, packed);
    const std::vector<int> order =
        conv_weight_order(in_channels_, in_pack_, kernel_w_, kernel_h_ * kernel_d_);
    gemm_pack_ordered(gemm, from, k, order.data(), out_channels_, k, packed);
}

int ConvRunner::pack_direct() const {
    const GemmKernels& gemm = *kernels_->gemm;
    const size_t k = (size_t)in_channels_ * kernel_w_ * kernel_h_ * kernel_d_;
    const size_t floats = gemm_packed_size(gemm, out_channels_, k);
    if (floats <= INT_MAX) weights_.create((int)floats, group_);
    if (weights_.empty()) return kOutOfMemory;
    const float* from = raw_weights_;
    for (int g = 0; g < group_; g++, from += out_channels_ * k) pack_group(from, weights_.row(g));
    form_ = Form::kDirect;
    raw_weights_.release();
    return kOk;
}

int ConvRunner::pack_winograd() const {
    const GemmKernels& gemm = *kernels_->gemm;
    const size_t floats = WinogradPlan::packed_size(gemm, in_channels_, out_channels_);
    const size_t scratch_floats = WinogradPlan::pack_scratch(gemm, in_channels_);
    Mat scratch;
    if (floats <= INT_MAX) weights_.create((int)floats, 1);
    if (scratch_floats <= INT_MAX) scratch.create((int)scratch_floats);
    if (weights_.empty() || scratch.empty()) return kOutOfMemory;
    WinogradPlan::pack(*kernels_, raw_weights_, in_channels_, out_channels_, weights_, scratch);
    form_ = Form::kWinograd;
    raw_weights_.release();
    return kOk;
}

int ConvRunner::pack_split(const TileShape& shape) const {
    const size_t size = SplitPlan::packed_size(*means_.split, shape);
    if (size / 2 <= INT_MAX) weights_.create((int)(size / 2), group_);
    if (weights_.empty()) return kOutOfMemory;
    const float* from = raw_weights_;
    const size_t values = (size_t)out_channels_ * in_channels_ * kernel_w_ * kernel_h_;
    for (int g = 0; g < group_; g++, from += values)
        SplitPlan::pack(*means_.split, from, shape, (uint16_t*)weights_.row(g));
    form_ = Form::kSplit;
    raw_weights_.release();
    return kOk;
}

int ConvRunner::pack_fixed(const TileShape& shape) const {
    const size_t size = FixedPlan::packed_size(shape);
    if (size <= INT_MAX) weights_.create((int)size, group_);
    if (weights_.empty()) return kOutOfMemory;
    const float* from = raw_weights_;
    const size_t values = (size_t)out_channels_ * in_channels_ * kernel_w_ * kernel_h_;
    for (int g = 0; g < group_; g++, from += values)
        FixedPlan::pack(*means_.fixed, from, shape, weights_.row(g));
    form_ = Form::kFixed;
    raw_weights_.release();
    return kOk;
}

bool ConvRunner::weights_suit_fixed(const TileShape& shape) const {
    const float* from = raw_weights_;
    const size_t values = (size_t)out_channels_ * in_channels_ * kernel_w_ * kernel_h_;
    for (int g = 0; g < group_; g++, from += values)
        if (!FixedPlan::suits(*means_.fixed, from, shape)) return false;
    return true;
}

namespace {

// Of the form that vectors take.
double vector_cycles(const KernelSet& kernels, bool winograd, const ConvShape& s, bool narrow) {
    // What bench_conv takes is 1.3 times what the rule for Winograd expects, as it ignores how its
    // stages wait for memory.
    double cycles =
        winograd ? WinogradPlan::cycles(kernels, s) * 1.3 : ConvPlan::cycles(kernels, s);
    // They work on f32 copies of bf16 blobs, which cost about a cycle a value.
    if (narrow)
        cycles +=
            (double)s.x.in * s.y.in * s.in_channels + (double)s.x.out * s.y.out * s.out_channels;
    return cycles;
}

}  // namespace

ConvForm choose_conv_form(const KernelSet& kernels, const ConvMeans& means, const ConvShape& s,
                          bool narrow) {
    const bool winograd = means.winograd && WinogradPlan::prefers(kernels, s);
    const TileShape shape = tile_shape(s);
    ConvForm form = winograd ? ConvForm::kWinograd : ConvForm::kDirect;
    // Tile units are held back more often than vectors are.
    double least = .95 * vector_cycles(kernels, winograd, s, narrow);
    const auto consider = [&](ConvForm candidate, double cycles) {
        if (cycles >= least) return;
        form = candidate;
        least = cycles;
    };
    if (means.split && SplitPlan::takes(shape))
        consider(ConvForm::kSplit, SplitPlan::cycles(*means.split, shape));
    if (means.fixed && FixedPlan::takes(shape))
        consider(ConvForm::kFixed, FixedPlan::cycles(shape));
    return form;
}

int ConvRunner::decide(const ConvShape& shape) const {
    const TileShape tiles = tile_shape(shape);
    ConvMeans means = means_;
    if (means.split && means.split->products > 1 &&
        !SplitPlan::suits(raw_weights_, raw_weights_.total()))
        means.split = nullptr;
    Form form = choose_conv_form(*kernels_, means, shape, narrow_);
    if (form == Form::kFixed && !weights_suit_fixed(tiles)) {
        means.fixed = nullptr;
        form = choose_conv_form(*kernels_, means, shape, narrow_);
    }
    switch (form) {
        case Form::kFixed:
            return pack_fixed(tiles);
        case Form::kSplit:
            return pack_split(tiles);
        case Form::kWinograd:
            return pack_winograd();
        default:
            return pack_direct();
    }
}

const char* ConvRunner::algorithm() const {
    std::lock_guard<std::mutex> lock(lock_);
    switch (form_) {
        case Form::kDirect:
            return "direct";
        case Form::kWinograd:
            return "winograd";
        case Form::kSplit:
            return "split";
        case Form::kFixed:
            return "fixed";
        default:
            return "";
    }
}

// Whether such a bf16 input is multiplied as it is. *status: of deciding the form.
bool ConvRunner::takes_bf16(const ConvolutionFields& s, const ConvGeometry& g, int* status) const {
    if (!means_.split || means_.split->terms != 1 || s.axes != 2 ||
        (s.pad_value != 0.f && has_padding(g)) || !ConvPlan::takes(shape_of(g)))
        return false;
    std::lock_guard<std::mutex> lock(lock_);
    if (form_ == Form::kUndecided) *status = decide(shape_of(g));
    return form_ == Form::kSplit;
}

int ConvRunner::prepare(const ConvShape& shape, bool narrow_in, bool narrow_out, int threads,
                        Form* form, Plans* plans) const {
    std::lock_guard<std::mutex> lock(lock_);
    if (form_ == Form::kUndecided) QUOLL_RETURN_IF_ERROR(decide(shape));
    *form = form_;
    if (form_ == Form::kDirect) {
        if (!plans_.direct || !(plans_.direct->shape() == shape))
            plans_.direct = std::make_shared<const ConvPlan>(*kernels_, shape);
    } else if (form_ == Form::kSplit) {
        TileShape split = tile_shape(shape);
        split.narrow_in = narrow_in, split.narrow_out = narrow_out;
        if (!plans_.split || !(plans_.split->shape() == split) ||
            plans_.split->threads() != threads)
            plans_.split = std::make_shared<const SplitPlan>(*means_.split, split, threads);
    } else if (form_ == Form::kFixed) {
        const TileShape fixed = tile_shape(shape);
        if (!plans_.fixed || !(plans_.fixed->shape() == fixed) ||
            plans_.fixed->threads() != threads)
            plans_.fixed = std::make_shared<const FixedPlan>(*means_.fixed, fixed, threads);
    }
    *plans = plans_;
    return kOk;
}

ConvShape ConvRunner::shape_of(const ConvGeometry& g) const {
    ConvShape shape = {};
    shape.x = conv_axis(g.x);
    shape.y = conv_axis(g.y);
    shape.z = conv_axis(g.z);
    shape.in_channels = in_channels_;
    shape.out_channels = out_channels_;
    shape.in_pack = in_pack_;
    shape.out_pack = out_pack_;
    return shape;
}

// `added` as it is read: f32 or bf16, with this elempack.
static int prepare_added(const ConvolutionFields& s, const Mat& added, DType dtype, int pack,
                         const Option& opt, Mat* m) {
    *m = added;
    if (added.empty()) return kOk;
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    if (dtype == DType::f32 && added.dtype == DType::bf16)
        cast_bfloat16_to_float32(added, *m, temporary);
    if (dtype == DType::bf16 && added.dtype == DType::f32)
        cast_float32_to_bfloat16(added, *m, temporary);
    if (m->empty()) return kOutOfMemory;
    QUOLL_RETURN_IF_ERROR(with_elempack(*m, pack, opt, m));
    *m = conv_channels(s, *m);
    return kOk;
}

int ConvRunner::forward(const ConvolutionFields& s, const ConvGeometry& geometry, const Mat& bottom,
                        const Mat& added, Mat& top, const Option& opt) const {
    ConvGeometry g = geometry;
    Mat in, out, add;
    int status = kOk;
    const bool narrow = bottom.dtype == DType::bf16;
    // What a net is given is f32; results that will be stored as bf16 are rounded as they are made.
    const bool rounds = narrow || (opt.use_bf16_storage && bottom.dtype == DType::f32 &&
                                   added.empty() && !s.add_input);
    const bool split = rounds && takes_bf16(s, g, &status);
    if (status != kOk) return status;
    if (narrow && !split) return forward_widened(s, g, bottom, added, top, opt);
    const DType made = split ? DType::bf16 : bottom.dtype;
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom, in_pack_, opt, &in));
    in = conv_channels(s, in);
    QUOLL_RETURN_IF_ERROR(prepare_added(s, added, bottom.dtype, out_pack_, opt, &add));
    if (!added.empty() && top.data == added.data && top.dtype == bottom.dtype &&
        top.elempack == out_pack_)
        out = add;
    else
        QUOLL_RETURN_IF_ERROR(create_conv_top(s, g, made, out_pack_, opt, &top, &out));
    const bool odd_value = s.pad_value != 0.f && has_padding(g);
    if (odd_value || !ConvPlan::takes(shape_of(g)))
        QUOLL_RETURN_IF_ERROR(pad_input(in, s.pad_value, opt, &g, &in));

    ConvShape shape = shape_of(g);
    shape.in_step = in.cstep * in_pack_;
    shape.out_step = out.cstep * out_pack_;
    const size_t size = dtype_size(made), out_blocks = out_channels_ / out_pack_;
    Blobs blobs;
    blobs.in = in.data, blobs.added = add.data, blobs.out = out.data;
    blobs.added_step = add.cstep * out_pack_;
    blobs.in_group = in_channels_ / in_pack_ * shape.in_step * dtype_size(in.dtype);
    blobs.added_group = out_blocks * blobs.added_step * size;
    blobs.out_group = out_blocks * shape.out_step * size;
    if (!s.add_input || !add.empty()) blobs.activation = activation_;
    const double work =
        (double)g.x.out * g.y.out * g.z.out * g.maxk() * in_channels_ * g.num_output;
    const int threads = threads_for(opt, work);
    Form form;
    Plans plans;
    QUOLL_RETURN_IF_ERROR(prepare(shape, narrow, split, threads, &form, &plans));
    switch (form) {
        case Form::kSplit:
            return run_split(*plans.split, shape, blobs, threads, opt);
        case Form::kFixed:
            return run_fixed(*plans.fixed, shape, blobs, threads, opt);
        case Form::kWinograd:
            return run_winograd(shape, blobs, threads, opt);
        default:
            return run_direct(*plans.direct, blobs, threads);
    }
}

// A bf16 blob by way of f32.
int ConvRunner::forward_widened(const ConvolutionFields& s, const ConvGeometry& g,
                                const Mat& bottom, const Mat& added, Mat& top,
                                const Option& opt) const {
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    temporary.use_bf16_storage = false;
    Mat wide, result;
    cast_bfloat16_to_float32(bottom, wide, temporary);
    if (wide.empty()) return kOutOfMemory;
    QUOLL_RETURN_IF_ERROR(is_flat_input(s, wide.logical_shape())
                              ? forward_flat(s, wide, result, temporary)
                              : forward(s, g, wide, added, result, temporary));
    cast_float32_to_bfloat16(result, top, opt);
    return top.empty() ? (int)kOutOfMemory : (int)kOk;
}

int ConvRunner::run_direct(const ConvPlan& plan, const Blobs& b, int threads) const {
    for (int i = 0; i < group_; i++) run_group(plan, i, weights_.row(i), b, threads);
    return kOk;
}

void ConvRunner::run_group(const ConvPlan& plan, int i, const float* weights, const Blobs& b,
                           int threads) const {
    const float* added = (const float*)b.added;
    if (added) added += i * b.added_group / sizeof(float);
    plan.run((const float*)((const char*)b.in + i * b.in_group), weights, bias_.row(i),
             (float*)((char*)b.out + i * b.out_group), added, b.added_step, b.activation, threads);
}

// For the weights of a group; empty when memory runs out.
Mat ConvRunner::group_memory(const Option& opt) const {
    Mat memory;
    const size_t values = (size_t)out_channels_ * in_channels_ * kernel_w_ * kernel_h_;
    if (values <= INT_MAX) memory.create((int)values, (size_t)4u, opt.workspace_allocator);
    return memory;
}

// A group whose values tile units do not take, on vectors.
int ConvRunner::run_unpacked(const Mat& weights, int group, const ConvShape& shape, const Blobs& b,
                             int threads, const Option& opt) const {
    Mat packed;
    const size_t k = (size_t)in_channels_ * kernel_w_ * kernel_h_;
    const size_t floats = gemm_packed_size(*kernels_->gemm, out_channels_, k);
    if (floats <= INT_MAX) packed.create((int)floats, (size_t)4u, opt.workspace_allocator);
    if (packed.empty()) return kOutOfMemory;
    pack_group(weights, packed);
    run_group(ConvPlan(*kernels_, shape), group, packed, b, threads);
    return kOk;
}

namespace {

// For one run of a plan; empty when memory runs out.
template <class Plan>
Mat workspace_of(const Plan& plan, const Option& opt) {
    Mat workspace;
    if (plan.workspace() <= INT_MAX)
        workspace.create((int)plan.workspace(), 4u, opt.workspace_allocator);
    return workspace;
}

}  // namespace

int ConvRunner::run_winograd(const ConvShape& shape, const Blobs& b, int threads,
                             const Option& opt) const {
    const WinogradPlan plan(*kernels_, shape, threads);
    Mat workspace = workspace_of(plan, opt);
    if (workspace.empty()) return kOutOfMemory;
    plan.run((const float*)b.in, weights_, bias_, zeros_, (float*)b.out, (const float*)b.added,
             b.added_step, b.activation, workspace);
    return kOk;
}

int ConvRunner::run_split(const SplitPlan& plan, const ConvShape& shape, const Blobs& b,
                          int threads, const Option& opt) const {
    Mat workspace = workspace_of(plan, opt);
    if (workspace.empty()) return kOutOfMemory;
    for (int i = 0; i < group_; i++) {
        const char* added = (const char*)b.added;
        if (added) added += i * b.added_group;
        const uint16_t* weights = (const uint16_t*)weights_.row(i);
        if (plan.run((const char*)b.in + i * b.in_group, weights, bias_.row(i),
                     (char*)b.out + i * b.out_group, added, (ptrdiff_t)b.added_step, b.activation,
                     workspace))
            continue;
        Mat plain = group_memory(opt);
        if (plain.empty()) return kOutOfMemory;
        SplitPlan::unpack(*means_.split, weights, plan.shape(), plain);
        QUOLL_RETURN_IF_ERROR(run_unpacked(plain, i, shape, b, threads, opt));
    }
    return kOk;
}

int ConvRunner::run_fixed(const FixedPlan& plan, const ConvShape& shape, const Blobs& b,
                          int threads, const Option& opt) const {
    Mat workspace = workspace_of(plan, opt);
    if (workspace.empty()) return kOutOfMemory;
    for (int i = 0; i < group_; i++) {
        const char* added = (const char*)b.added;
        if (added) added += i * b.added_group;
        if (plan.run((const float*)((const char*)b.in + i * b.in_group), weights_.row(i),
                     bias_.row(i), (float*)((char*)b.out + i * b.out_group), (const float*)added,
                     (ptrdiff_t)b.added_step, b.activation, workspace))
            continue;
        Mat plain = group_memory(opt);
        if (plain.empty()) return kOutOfMemory;
        FixedPlan::unpack(weights_.row(i), plan.shape(), plain);
        QUOLL_RETURN_IF_ERROR(run_unpacked(plain, i, shape, b, threads, opt));
    }
    return kOk;
}

int ConvRunner::forward_flat(const ConvolutionFields& s, const Mat& bottom, Mat& top,
                             const Option& opt) const {
    // Channels of a 1-D blob follow each other whatever its elempack; with a 1x1 kernel that is the
    // order of the weights.
    top.create(Shape(out_channels_ * group_), out_pack_, opt.blob_allocator);
    if (top.empty()) return kOutOfMemory;
    Form form;
    {
        std::lock_guard<std::mutex> lock(lock_);
        if (form_ == Form::kUndecided) QUOLL_RETURN_IF_ERROR(pack_direct());
        form = form_;
    }
    const FusedActivation activation = s.add_input ? FusedActivation() : activation_;
    const TileShape row = tile_shape(1, out_channels_, in_channels_, 0, 0);
    const Blobs blobs = {bottom.data, nullptr,
                         top.data,    in_channels_ * sizeof(float),
                         0,           out_channels_ * sizeof(float),
                         0,           activation};
    // A pixel, whose channel blocks follow each other.
    ConvShape pixel = {};
    pixel.x = pixel.y = {1, 1, 1, 1, 1, 0};
    pixel.in_channels = in_channels_, pixel.out_channels = out_channels_;
    pixel.in_pack = pixel.in_step = in_pack_, pixel.out_pack = pixel.out_step = out_pack_;
    if (form == Form::kSplit)
        return run_split(SplitPlan(*means_.split, row, 1), pixel, blobs, 1, opt);
    if (form == Form::kFixed)
        return run_fixed(FixedPlan(*means_.fixed, row, 1), pixel, blobs, 1, opt);
    for (int i = 0; i < group_; i++) {
        GemmMatrix g = {};
        g.kernels = kernels_;
        g.a = (const float*)bottom.data + (size_t)i * in_channels_;
        g.a_k = 1;
        g.m = 1;
        g.n = out_channels_;
        g.k = in_channels_;
        g.b = weights_.row(i);
        g.bias = bias_.row(i);
        g.c = (float*)top.data + (size_t)i * out_channels_;
        g.c_pack = out_channels_;
        g.activation = activation;
        gemm_matrix(g, threads_for(opt, (double)in_channels_ * out_channels_));
    }
    return kOk;
}

}  // namespace quoll
