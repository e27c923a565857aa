#include "layer/elementwise/select.h"

namespace quoll {

Select::Select() {
    support_batch = support_packing = support_absent_inputs = true;
    set_any_storage(*this);
}

void Select::params(Select& s, ParamVisitor& v) {
    v(0, "only", s.only, 0, "1 or 2: the input that the condition has to choose, 0: either",
      between(0, 2));
}

int Select::shape(const Select& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.size() != 2 && in.size() != 3)
        return s.fail("expected 2 or 3 inputs, got %zu", in.size());
    if (in[0].dims != 0 && in[0].total() != 1)
        return s.fail("expected a condition of 1 value, got %s", shape_text(in[0]).c_str());
    // Which of the two it is, is known only at run time.
    if (in.size() == 2)
        out.assign(1, in[1]);
    else if (s.only)
        out.assign(1, in[(size_t)s.only]);
    else
        out.assign(1, in[1] == in[2] ? in[1] : Shape());
    return kOk;
}

int Select::choose_input(const Mat& condition) const {
    const int chosen = chosen_input(condition);
    if (chosen < 0 || !only || chosen == only) return chosen;
    return fail(
        "its condition is %s, for which the model could not be converted; convert it with "
        "the sizes (--shape) or constants (--constant) that it shall run with",
        chosen == 1 ? "true" : "false");
}

int Select::chosen_input(const Mat& condition) const {
    if (condition.dims == 0 || condition.logical_shape().total() != 1)
        return fail("expected a condition of 1 value, got %s",
                    shape_text(condition.logical_shape()).c_str());
    if (condition.dtype == DType::f32) return *(const float*)condition.data != 0.f ? 1 : 2;
    if (condition.dtype == DType::s32) return *(const int32_t*)condition.data != 0 ? 1 : 2;
    if (condition.dtype == DType::u8 || condition.dtype == DType::s8)
        return *(const uint8_t*)condition.data != 0 ? 1 : 2;
    if (condition.dtype == DType::f16 || condition.dtype == DType::bf16)
        return (*(const uint16_t*)condition.data & 0x7fff) != 0 ? 1 : 2;
    return fail("a condition of type %s", dtype_name(condition.dtype));
}

int Select::pass_checked(const std::vector<Mat>& bottoms, Mat* top) const {
    const int chosen = chosen_input(bottoms[0]);
    if (chosen < 0) return chosen;
    if (chosen == 2)
        return fail(
            "this does not hold for the inputs; convert the model with the sizes (--shape) or "
            "constants (--constant) that it shall run with");
    if (bottoms[1].dims == 0) return fail("input 1 is missing");
    *top = bottoms[1];
    return kOk;
}

int Select::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops, const Option&) const {
    if (bottoms.size() == 2 && tops.size() == 1) return pass_checked(bottoms, &tops[0]);
    if (bottoms.size() != 3 || tops.size() != 1)
        return fail("expected 3 inputs and 1 output, got %zu and %zu", bottoms.size(), tops.size());
    const int chosen = choose_input(bottoms[0]);
    if (chosen < 0) return chosen;
    if (bottoms[(size_t)chosen].dims == 0) return fail("input %d is missing", chosen);
    tops[0] = bottoms[(size_t)chosen];
    return kOk;
}

void Select::plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in,
                          const Option& opt, std::vector<BlobLayout>* out) const {
    if (in.size() != 2) return TensorOperator<Select>::plan_layouts(plan, in, opt, out);
    out->assign(1, in[1]);
    (*out)[0].shares = 1;
}

QUOLL_DEFINE_LAYER(Select)

}  // namespace quoll
