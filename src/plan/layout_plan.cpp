#include "plan/layout_plan.h"

#include "layer/nn/convolution.h"
#include "plan/batch_slot.h"
#include "plan/execution_plan.h"

namespace quoll {

bool same_layout(const BlobLayout& a, const BlobLayout& b) {
    return a.shape == b.shape && (a.elempack == b.elempack || a.shape.total() == 0);
}

BlobLayout layout_of(const Mat& m) {
    BlobLayout layout;
    if (m.dims) layout.shape = m.logical_shape();
    if (m.elempack) layout.elempack = m.elempack;
    return layout;
}

bool lies_as(const Mat& m, const BlobLayout& layout) { return same_layout(layout_of(m), layout); }

void plan_inputs(const Layer& layer, StepLayout* step) {
    step->inputs = step->arrives;
    std::vector<Shape> shapes;
    for (const BlobLayout& in : step->inputs) shapes.push_back(in.shape);
    input_dtypes(layer, &shapes);
    for (size_t i = 0; i < shapes.size(); i++) {
        BlobLayout& in = step->inputs[i];
        in.shape = shapes[i];
        if (!layer.support_packing) in.elempack = 1;
    }
}

void plan_outputs(const Layer& layer, const LayerPlan* plan, const std::vector<Shape>& shapes,
                  DType stored, const Option& opt, StepLayout* step) {
    std::vector<BlobLayout> in = step->inputs;
    DType floats = DType::f32;
    for (BlobLayout& b : in) {
        if (is_storage_type(b.shape.dtype)) floats = b.shape.dtype;
        if (step->batch > 1) b.shape.n = 1;
    }
    step->makes.clear();
    for (const Shape& shape : shapes) {
        BlobLayout out;
        out.shape = shape;
        if (shape.dtype == DType::f32) out.shape.dtype = floats;
        if (step->batch > 1 && shape.dims) out.shape.n = 1;
        step->makes.push_back(out);
    }
    layer.plan_layouts(plan, in, opt, &step->makes);
    step->outputs = step->makes;
    for (BlobLayout& out : step->outputs) {
        if (step->batch > 1) out.shape.n = step->batch;
        if (step->batch > 1) out.shares = -1;
        const bool narrows = out.shape.dtype == DType::f32 && out.shape.total() > 0;
        if (narrows && stored != DType::f32) out.shape.dtype = stored;
    }
}

int overwritten_by_batch(const Layer& layer, const StepLayout& step) {
    if (step.batch <= 1 || !step.known || !runs_in_place(layer) || !writes_into_batch(layer))
        return -1;
    BlobLayout all = step.makes[0];
    all.shape.n = step.batch;
    // What serves every item stays.
    for (const BlobLayout& in : step.inputs)
        if (in.shape.n != step.batch) return -1;
    for (size_t k = as<Convolution>(&layer) ? 1 : 0; k < step.inputs.size(); k++)
        if (same_layout(step.inputs[k], all) && same_layout(step.outputs[0], all)) return (int)k;
    return -1;
}

}  // namespace quoll
