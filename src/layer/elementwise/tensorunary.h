#ifndef QUOLL_LAYER_TENSORUNARY_H
#define QUOLL_LAYER_TENSORUNARY_H

#include "layer/common/tensor.h"

namespace quoll {

// out = f(in) for each value. Abs, neg, sign and round keep the type (f32, s32, s8, u8; ints wrap).
// "Is NaN" and "is inf" take f32, logical not takes u8, and all three give u8, 0 or 1. Bitwise not
// takes ints.
class TensorUnary : public TensorOperator<TensorUnary> {
public:
    enum OperationType { ABS, NEG, SIGN, ROUND, IS_NAN, IS_INF, NOT, BIT_NOT, kOperationCount };

    TensorUnary();
    static void params(TensorUnary& s, ParamVisitor& v);
    static int shape(const TensorUnary& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;

    int op_type = 0;
    int detect_negative = 1, detect_positive = 1;  // which infinities is inf means
};

// The same values as another type (f32, f16, bf16, s32, s8, u8, bool). When floats become ints,
// they are truncated and clamped to the type's range, and NaN becomes 0; ints that do not fit wrap.
// Bool is u8, 1 for anything but 0. ONNX Cast.
class CastTo : public TensorOperator<CastTo> {
public:
    enum ElementType { kF32, kF16, kBf16, kS32, kS8, kU8, kBool };

    CastTo();
    static void params(CastTo& s, ParamVisitor& v);
    static int shape(const CastTo& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;

    int to = 0;
};

// The type that an ElementType is stored as.
DType dtype_of_element(int element_type);

}  // namespace quoll

#endif
