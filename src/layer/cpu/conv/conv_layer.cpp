#include "layer/cpu/conv/conv_layer.h"

#include "layer/common/scratch.h"
#include "layer/common/sublayer.h"
#include "layer/cpu/cast/storage.h"

namespace quoll {

ConvolutionCpu::ConvolutionCpu(int axes) : Convolution(axes, false) { support_packing = true; }

int ConvolutionCpu::create_pipeline(const Option& opt) {
    QUOLL_RETURN_IF_ERROR(Convolution::create_pipeline(opt));
    if (dynamic_weight) return kOk;
    if (is_int8()) {
        weight_data.release();  // weight_data_int8 is what all algorithms take
        if (int16_input()) return create_int16(opt);
        QUOLL_RETURN_IF_ERROR(int8_.create(*this, *this, opt));
        return kOk;
    }
    QUOLL_RETURN_IF_ERROR(planes_.create(*this, *this, opt));
    if (planes_.created()) {
        support_bf16_storage = true;
        weight_data.release();
        return kOk;
    }
    QUOLL_RETURN_IF_ERROR(runner_.create(*this, *this, opt));
    support_bf16_storage = kHasHalfStorage && opt.use_bf16_storage && !runner_.makes_f16();
    if (kHasF16F32) runner_.take_halves(*this, *this, opt);
    support_fp16_storage = runner_.takes_f16() || runner_.takes_halves();
    weight_data.release();
    return kOk;
}

int ConvolutionCpu::create_int16(const Option& opt) {
    if (!kHasInt8) return kError;
    for (std::unique_ptr<ConvolutionCpu>* part : {&low_, &high_}) {
        const bool high = part == &high_;
        part->reset(new ConvolutionCpu(axes));
        ConvolutionCpu& conv = **part;
        (ConvolutionFields&)conv = *this;
        conv.type = type, conv.name = name;
        conv.int8_affine = 0;
        conv.weight_data = weight_data_int8;
        if (high) {
            conv.bias_term = 0, conv.bias_data.release();
            conv.add_input = 1;
            conv.bottom_blob_int8_scales = bottom_blob_int8_scales.clone();
            if (conv.bottom_blob_int8_scales.empty()) return kOutOfMemory;
            conv.bottom_blob_int8_scales[0] /= 256.f;
        } else {
            conv.activation_type = kActivationNone;
            conv.bottom_shapes = bottom_shapes;
        }
        QUOLL_RETURN_IF_ERROR(conv.check_inputs());
        QUOLL_RETURN_IF_ERROR(conv.create_pipeline(opt));
    }
    if (!low_->int8_.created()) low_.reset(), high_.reset();
    return kOk;
}

int ConvolutionCpu::forward_int16(const Mat& bottom, Mat* top, const Option& opt) const {
    if (!kHasInt8) return kError;
    const ShapeList in(bottom);
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(convolution_geometry(*this, *this, *in, &g));
    Mat high, low;
    QUOLL_RETURN_IF_ERROR(int16_parts(bottom, bottom_blob_int8_scales[0], &high, &low, opt));
    std::vector<Mat> blobs = {high, Mat()};
    QUOLL_RETURN_IF_ERROR(low_->forward(low, blobs[1], opt));
    QUOLL_RETURN_IF_ERROR(high_->forward_inplace(blobs, opt));
    *top = blobs[0];
    return kOk;
}

bool ConvolutionCpu::is_fast(size_t inputs) const {
    return (runner_.created() || int8_.created()) && inputs == (add_input ? 2u : 1u);
}

int ConvolutionCpu::make_plan(const std::vector<Shape>& bottoms, const Option& opt,
                              ConvolutionPlan* p) const {
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(convolution_geometry(*this, *this, bottoms, &g));
    if (int8_.created()) {
        p->int8 = int8_.plan(*this, g, bottoms[0], opt);
        p->name = int8_.kernels(p->int8.get());
        return kOk;
    }
    const bool flat = is_flat_input(*this, bottoms[0]);
    const bool adds =
        add_input && !flat && bottoms[1] == conv_output_shape(*this, g, bottoms[0].dtype);
    QUOLL_RETURN_IF_ERROR(
        flat ? runner_.plan_flat(&p->f32)
             : runner_.plan(*this, *this, g, bottoms[0].dtype, adds, opt, &p->f32));
    p->name = algorithm_name(p->f32.algorithm);
    return kOk;
}

int ConvolutionCpu::plan(const std::vector<Shape>& bottoms, const Option& opt,
                         std::shared_ptr<const LayerPlan>* plan) const {
    plan->reset();
    if (planes_.created()) return planes_.plan(*this, *this, bottoms, opt, plan);
    if (!is_fast(bottoms.size())) return kOk;
    // The items may be those of what is added alone.
    const bool batch = bottoms[0].n > 1 || (add_input && bottoms[1].n > 1);
    if (kHasTileUnits && batch) return plan_batch(bottoms, opt, plan);
    const std::shared_ptr<ConvolutionPlan> made = std::make_shared<ConvolutionPlan>();
    QUOLL_RETURN_IF_ERROR(make_plan(bottoms, opt, made.get()));
    *plan = made;
    return kOk;
}

// None where items one by one do as well.
int ConvolutionCpu::plan_batch(std::vector<Shape> items, const Option& opt,
                               std::shared_ptr<const LayerPlan>* plan) const {
    const Shape all = items[0];
    Shape sums;
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(batch_geometry(&items, &g, &sums));
    if (axes != 2 || is_flat_input(*this, all) || (add_input && items[1] != sums)) return kOk;
    const std::shared_ptr<ConvolutionPlan> made = std::make_shared<ConvolutionPlan>();
    made->batch = true;
    if (int8_.created()) {
        made->int8 = int8_.plan(*this, g, all, opt);
        made->name = int8_.kernels(made->int8.get());
    } else {
        QUOLL_RETURN_IF_ERROR(
            runner_.plan_batch(*this, *this, g, all.dtype, add_input != 0, all.n, opt, &made->f32));
        made->name = algorithm_name(made->f32.algorithm);
    }
    if (made->int8 || made->f32.split) *plan = made;
    return kOk;
}

// Of one item, as the first of `items` is then. sums: what is added to all of them.
int ConvolutionCpu::batch_geometry(std::vector<Shape>* items, ConvGeometry* g, Shape* sums) const {
    const int count = (*items)[0].n;
    (*items)[0].n = 1;
    QUOLL_RETURN_IF_ERROR(convolution_geometry(*this, *this, *items, g));
    *sums = conv_output_shape(*this, *g, int8_.created() ? DType::f32 : (*items)[0].dtype);
    sums->n = count;
    return kOk;
}

int ConvolutionCpu::forward_batch(const ConvolutionPlan& p, const std::vector<Mat>& bottoms,
                                  Mat* top, const Option& opt) const {
    ShapeList in(bottoms);
    Shape made;
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(batch_geometry(&*in, &g, &made));
    if (add_input && in[1] != made) return kOneByOne;
    made.dtype = top->dtype;
    if (top->logical_shape() != made) return kOneByOne;
    const Mat added = add_input ? bottoms[1] : Mat();
    return int8_.created() ? int8_.forward(p.int8.get(), *this, g, bottoms[0], added, *top, opt)
                           : runner_.forward(p.f32, *this, g, bottoms[0], added, *top, opt);
}

int ConvolutionCpu::forward_planned(const LayerPlan& plan, std::vector<Mat>& bottoms,
                                    std::vector<Mat>& tops, bool inplace, const Option& opt) const {
    tops.resize(1);
    if (planes_.created()) return planes_.forward(*this, *this, &plan, bottoms, &tops[0], opt);
    const ConvolutionPlan& p = static_cast<const ConvolutionPlan&>(plan);
    if (kHasTileUnits && p.batch) return forward_batch(p, bottoms, &tops[0], opt);
    if (!add_input) return forward_alone(p, bottoms[0], &tops[0], opt);
    if (inplace) tops[0] = bottoms[1];
    return forward_with_add(p, bottoms[0], bottoms[1], &tops[0], opt);
}

void ConvolutionCpu::plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in,
                                  const Option& opt, std::vector<BlobLayout>* out) const {
    if (kHasInt8 && low_) return low_->plan_layouts(nullptr, in, opt, out);
    if (planes_.created()) return planes_.plan_layout(*this, *this, in, opt, &(*out)[0]);
    if (!is_fast(in.size())) return;
    BlobLayout& top = (*out)[0];
    const bool flat = is_flat_input(*this, in[0].shape);
    top.elempack = int8_.created() ? int8_.out_pack()
                   : flat          ? runner_.flat_out_pack()
                                   : runner_.out_pack();
    std::vector<Shape> shapes;
    for (const BlobLayout& b : in) shapes.push_back(b.shape);
    ConvGeometry g;
    if (convolution_geometry(*this, *this, shapes, &g) != kOk) return;
    if (runner_.takes_f16()) top.shape.dtype = DType::f16;
    BlobLayout sums;
    sums.shape = flat ? Shape(num_output, in[0].shape.dtype)
                      : conv_output_shape(*this, g, in[0].shape.dtype);
    sums.elempack = top.elempack;
    // What has another shape is added as BinaryOp does.
    if (add_input && (flat || in[1].shape != sums.shape)) {
        const std::unique_ptr<Layer> sum = make_binaryop(*this, "add_input (29)", 0, true);
        if (sum && sum->create_pipeline(opt) == kOk)
            sum->plan_layouts(nullptr, {sums, in[1]}, opt, out);
    }
    if (runner_.takes_f16()) top.shape.dtype = DType::f16;
    if (runner_.takes_halves()) top.shape.dtype = DType::f32;
    if (flat) return;
    if (!plan || int8_.created()) return;
    const ConvRunPlan& p = static_cast<const ConvolutionPlan*>(plan)->f32;
    top.shape.dtype = runner_.made_type(p, *this, g, in[0].shape.dtype, opt);
}

int ConvolutionCpu::forward_alone(const ConvolutionPlan& p, const Mat& bottom, Mat* top,
                                  const Option& opt) const {
    if (int8_.created()) return forward_int8(p, bottom, Mat(), top, opt);
    const ShapeList in(bottom);
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(convolution_geometry(*this, *this, *in, &g));
    if (is_flat_input(*this, in[0]))
        return kHasHalfStorage && bottom.dtype == DType::bf16
                   ? runner_.forward_widened(p.f32, *this, g, true, bottom, Mat(), *top, opt)
                   : runner_.forward_flat(p.f32, *this, bottom, *top, opt);
    return runner_.forward(p.f32, *this, g, bottom, Mat(), *top, opt);
}

int ConvolutionCpu::forward_inplace(std::vector<Mat>& blobs, const Option& opt) const {
    if (!add_input || blobs.size() != 2) return fail("expected 2 inputs, got %zu", blobs.size());
    const ShapeList in(blobs);
    ConvolutionPlan p;
    QUOLL_RETURN_IF_ERROR(make_plan(*in, opt, &p));
    std::vector<Mat> tops;
    QUOLL_RETURN_IF_ERROR(forward_planned(p, blobs, tops, true, opt));
    blobs.swap(tops);
    return kOk;
}

// added: empty, or what comes with add_input.
int ConvolutionCpu::forward_int8(const ConvolutionPlan& p, const Mat& bottom, const Mat& added,
                                 Mat* top, const Option& opt) const {
    const Int8TilePlan* tiles = p.int8.get();
    ShapeList in(bottom);
    if (add_input) in->push_back(added.logical_shape());
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(convolution_geometry(*this, *this, *in, &g));
    Option temporary = opt;
    if (add_input) temporary.blob_allocator = opt.workspace_allocator;
    Mat sums;
    int status;
    if (!add_input) {
        status = int8_.forward(tiles, *this, g, bottom, Mat(), *top, opt);
    } else if (!is_flat_input(*this, in[0]) && in[1] == conv_output_shape(*this, g, DType::f32)) {
        status = int8_.forward(tiles, *this, g, bottom, added, *top, opt);
    } else {
        status = int8_.forward(tiles, *this, g, bottom, Mat(), sums, temporary);
        if (status == kOk) return add_and_activate(*this, *this, sums, added, true, top, opt);
    }
    if (status != Int8Conv::kUnsuitable) return status;
    std::vector<Mat> planar, tops;
    std::vector<Mat> blobs(1, bottom);
    if (add_input) blobs.push_back(added);
    QUOLL_RETURN_IF_ERROR(all_planar(blobs, opt, &planar));
    QUOLL_RETURN_IF_ERROR(Convolution::forward(planar, tops, opt));
    *top = tops[0];
    return kOk;
}

// Only what has the output's shape is added where the sums are made.
int ConvolutionCpu::forward_with_add(const ConvolutionPlan& p, const Mat& bottom, const Mat& added,
                                     Mat* top, const Option& opt) const {
    if (int8_.created()) return forward_int8(p, bottom, added, top, opt);
    const Shape in = bottom.logical_shape(), shape = added.logical_shape();
    ConvGeometry g;
    ShapeList both(bottom);
    both->push_back(shape);
    QUOLL_RETURN_IF_ERROR(convolution_geometry(*this, *this, *both, &g));
    const bool flat = is_flat_input(*this, in);
    if (!flat && shape == conv_output_shape(*this, g, in.dtype))
        return runner_.forward(p.f32, *this, g, bottom, added, *top, opt);
    Option temporary = opt;
    temporary.blob_allocator = opt.workspace_allocator;
    temporary.use_bf16_storage = false;
    Mat wide, wide_added, sums;
    QUOLL_RETURN_IF_ERROR(widened(bottom, temporary, &wide));
    QUOLL_RETURN_IF_ERROR(widened(added, temporary, &wide_added));
    QUOLL_RETURN_IF_ERROR(flat ? runner_.forward_flat(p.f32, *this, wide, sums, temporary)
                               : runner_.forward(p.f32, *this, g, wide, Mat(), sums, temporary));
    const Mat made = sums;
    QUOLL_RETURN_IF_ERROR(widened(made, temporary, &sums));
    if (!kHasHalfStorage || (bottom.dtype != DType::bf16 && !runner_.takes_f16()))
        return add_and_activate(*this, *this, sums, wide_added, true, top, opt);
    QUOLL_RETURN_IF_ERROR(add_and_activate(*this, *this, sums, wide_added, true, &wide, temporary));
    if (runner_.takes_f16())
        cast_float32_to_float16(wide, *top, opt);
    else
        cast_float32_to_bfloat16(wide, *top, opt);
    return top->empty() ? (int)kOutOfMemory : (int)kOk;
}

int ConvolutionCpu::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    std::vector<Mat> tops(1);
    tops[0] = static_cast<Mat&&>(top_blob);
    const int status = forward(std::vector<Mat>(1, bottom_blob), tops, opt);
    top_blob = tops.empty() ? Mat() : tops[0];
    return status;
}

int ConvolutionCpu::forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                            const Option& opt) const {
    if (is_fast(bottom_blobs.size())) {
        const ShapeList in(bottom_blobs);
        ConvolutionPlan p;
        QUOLL_RETURN_IF_ERROR(make_plan(*in, opt, &p));
        std::vector<Mat> bottoms(bottom_blobs);
        return forward_planned(p, bottoms, top_blobs, false, opt);
    }
    if (planes_.created() && bottom_blobs.size() == (add_input ? 2u : 1u)) {
        top_blobs.resize(1);
        return planes_.forward(*this, *this, nullptr, bottom_blobs, &top_blobs[0], opt);
    }
    if (kHasInt8 && low_ && bottom_blobs.size() == 1) {
        top_blobs.resize(1);
        return forward_int16(bottom_blobs[0], &top_blobs[0], opt);
    }
    std::vector<Mat> planar;
    QUOLL_RETURN_IF_ERROR(all_planar(bottom_blobs, opt, &planar));
    return Convolution::forward(planar, top_blobs, opt);
}

}  // namespace quoll
