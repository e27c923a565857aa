#include "layer/cpu/matmul/innerproduct_cpu.h"

#include "layer/common/scratch.h"
#include "layer/cpu/cast/storage.h"
#include "runtime/turned_weight.h"

namespace quoll {

static bool is_bf16(const Option& opt) { return kHasHalfStorage && opt.use_bf16_storage; }

InnerProductCpu::InnerProductCpu() { support_packing = true; }

int InnerProductCpu::create_pipeline(const Option& opt) {
    const bool as_it_lies = WeightByInputs::is(weight_data) && !is_int8() && !is_bf16(opt);
    if (!as_it_lies) QUOLL_RETURN_IF_ERROR(InnerProduct::create_pipeline(opt));
    const Activation activation(activation_type, activation_params);
    if (is_int8()) {
        if (!int8_sums_fit(weight_data_int8, num_output, int8_affine != 0)) return kOk;
        const float input_scale = int8_affine == 2 ? 1.f : (float)bottom_blob_int8_scales[0];
        if (int16_input())
            QUOLL_RETURN_IF_ERROR(low_int8_.create(*this, weight_data_int8, num_output, input_scale,
                                                   weight_data_int8_scales, bias_data,
                                                   Activation()));
        QUOLL_RETURN_IF_ERROR(
            int8_.create(*this, weight_data_int8, num_output,
                         int16_input() ? input_scale / 256.f : input_scale, weight_data_int8_scales,
                         int16_input() ? Mat() : bias_data, activation, bottom_zero_point));
        if (int8_output()) int8_.give_int8(top_factor, top_zero_point);
        weight_data.release();
        weight_data_int8.release();
        return kOk;
    }
    kernels_ = &host_kernel_set();
    activation_ = FusedActivation(*kernels_, activation, is_bf16(opt));
    stored_.release();
    matrix_.reset();
    const int k = num_input();
    const InnerProductCpu* const first = same_weights ? as<InnerProductCpu>(same_weights) : nullptr;
    // Elsewhere all products but those of one row want f32.
    support_bf16_storage = split_kernels_for(opt) && is_bf16(opt);
    const float* const bias = bias_term ? (const float*)bias_data : nullptr;
    if (is_bf16(opt)) {
        QUOLL_RETURN_IF_ERROR(stored_.create(*this, weight_data, num_output, k, bias, opt));
    } else if (first && first->matrix_) {
        matrix_ = first->matrix_;
    } else {
        const std::shared_ptr<ConstantMatrix> made = std::make_shared<ConstantMatrix>();
        if (as_it_lies && !WeightByInputs(weight_data).aligned()) {
            weight_data = WeightByInputs(weight_data).copy();
            if (weight_data.empty()) return kOutOfMemory;
        }
        const size_t line = as_it_lies ? WeightByInputs(weight_data).step : (size_t)k;
        QUOLL_RETURN_IF_ERROR(
            made->create(*this, weight_data, line, as_it_lies, num_output, k, bias, opt));
        matrix_ = made;
    }
    weight_data.release();
    return kOk;
}

// ---------------------------------------------------------------- running

struct InnerProductCpu::Plan : public LayerPlan {
    const char* algorithm() const override { return name; }

    const char* name = "";
    std::shared_ptr<const ConstantMatrix> matrix;  // null: int8, or one row of stored weights
    MatrixPlan product;
    bool reduced = false;  // bf16 rows come out as they are made; such go in as they are
    std::shared_ptr<const Int8TilePlan> int8;
};

// `rows` dense rows of this type by the weights; without the blobs.
GemmMatrix InnerProductCpu::product(int rows, DType dtype, bool reduced) const {
    GemmMatrix g = {};
    g.reduced_a = reduced && dtype == DType::bf16;
    g.reduced_c = reduced;
    g.a_row = num_input();
    g.a_k = 1;
    g.m = rows;
    g.c_row = num_output;
    g.c_pack = num_output;
    g.activation = activation_;
    return g;
}

int InnerProductCpu::make_plan(const std::vector<Shape>& bottoms, const Option& opt,
                               Plan* p) const {
    ShapeList tops;
    QUOLL_RETURN_IF_ERROR(infer_shapes(bottoms, *tops));
    const int rows = tops[0].dims == 1 ? 1 : tops[0].h;
    if (int8_.created()) {
        p->int8 = int8_.plan(rows, int8_affine > 1 ? DType::s8 : bottoms[0].dtype, opt);
        p->name = int8_.kernels(p->int8.get());
        return kOk;
    }
    p->name = "row";
    p->matrix = matrix_;
    if (kHasHalfStorage && stored_.created()) {
        if (rows == 1) return kOk;
        QUOLL_RETURN_IF_ERROR(stored_.rows_matrix(*this, opt, &p->matrix));
    }
    // A net's inputs are f32; results that will be stored as bf16 are rounded when they are
    // computed.
    const DType dtype = bottoms[0].dtype;
    QUOLL_RETURN_IF_ERROR(
        p->matrix->plan(product(rows, dtype, support_bf16_storage), opt, &p->product));
    p->reduced = support_bf16_storage && p->product.split;
    if (support_bf16_storage && !p->reduced)
        QUOLL_RETURN_IF_ERROR(p->matrix->plan(product(rows, DType::f32, false), opt, &p->product));
    p->name = p->product.algorithm;
    return kOk;
}

int InnerProductCpu::plan(const std::vector<Shape>& bottoms, const Option& opt,
                          std::shared_ptr<const LayerPlan>* plan) const {
    plan->reset();
    if (bottoms.size() != 1 || (!kernels_ && !int8_.created())) return kOk;
    const std::shared_ptr<Plan> made = std::make_shared<Plan>();
    QUOLL_RETURN_IF_ERROR(make_plan(bottoms, opt, made.get()));
    *plan = made;
    return kOk;
}

int InnerProductCpu::forward_planned(const LayerPlan& plan, std::vector<Mat>& bottoms,
                                     std::vector<Mat>& tops, bool, const Option& opt) const {
    tops.resize(1);
    return run(static_cast<const Plan&>(plan), bottoms[0], &tops[0], opt);
}

// Planar, as they are preset.
void InnerProductCpu::plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>&,
                                   const Option&, std::vector<BlobLayout>* out) const {
    if (plan && static_cast<const Plan*>(plan)->reduced) (*out)[0].shape.dtype = DType::bf16;
}

int InnerProductCpu::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    if (!kernels_ && !int8_.created()) {
        Mat planar;
        QUOLL_RETURN_IF_ERROR(with_elempack(bottom_blob, 1, opt, &planar));
        return InnerProduct::forward(planar, top_blob, opt);
    }
    const ShapeList in(bottom_blob);
    Plan p;
    QUOLL_RETURN_IF_ERROR(make_plan(*in, opt, &p));
    return run(p, bottom_blob, &top_blob, opt);
}

int InnerProductCpu::run(const Plan& p, const Mat& bottom, Mat* top, const Option& opt) const {
    Mat rows;
    QUOLL_RETURN_IF_ERROR(with_elempack(bottom, 1, opt, &rows));
    const ShapeList in(rows);
    ShapeList tops;
    QUOLL_RETURN_IF_ERROR(infer_shapes(*in, *tops));
    if (p.reduced) tops[0].dtype = DType::bf16;
    if (tops[0].dims == 1) rows = rows.reshape(num_input(), 1, opt.workspace_allocator);
    top->create(tops[0], 1, opt.blob_allocator);
    if (rows.empty() || top->empty()) return kOutOfMemory;
    if (int16_input()) {
        Mat high, low;
        QUOLL_RETURN_IF_ERROR(int16_parts(rows, bottom_blob_int8_scales[0], &high, &low, opt));
        QUOLL_RETURN_IF_ERROR(low_int8_.forward(p.int8.get(), low, *top, opt));
        return int8_.forward_added(p.int8.get(), high, *top, opt);
    }
    if (int8_.created())
        return int8_affine == 2 ? int8_.forward_ranged(p.int8.get(), rows, *top, opt)
                                : int8_.forward(p.int8.get(), rows, *top, opt);
    if (!kHasHalfStorage || p.reduced || top->dtype == DType::f32)
        return multiply(p, rows, *top, opt);
    Mat wide, sums(num_output, rows.h, (size_t)4u, opt.workspace_allocator);
    QUOLL_RETURN_IF_ERROR(widened(rows, opt, &wide));
    if (sums.empty()) return kOutOfMemory;
    QUOLL_RETURN_IF_ERROR(multiply(p, wide, sums, opt));
    kernels_->cast->bf16.narrow(sums, (uint16_t*)top->data, sums.total());
    return kOk;
}

// Into `out`, which is f32, or bf16 where the plan says so.
int InnerProductCpu::multiply(const Plan& p, const Mat& rows, Mat& out, const Option& opt) const {
    if (kHasHalfStorage && !p.matrix) {
        stored_.multiply_row(rows, out, activation_, opt);
        return kOk;
    }
    GemmMatrix g = product(rows.h, rows.dtype, p.reduced);
    g.a = rows;
    g.c = out;
    return p.matrix->multiply(p.product, g, opt);
}

Layer* create_InnerProduct_fast_layer() { return new InnerProductCpu; }

}  // namespace quoll
