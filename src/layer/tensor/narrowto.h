#ifndef QUOLL_LAYER_NARROWTO_H
#define QUOLL_LAYER_NARROWTO_H

#include "layer/common/tensor.h"

namespace quoll {

// The values as an array of an ONNX element type with fewer bits would hold them; the Mat's type
// does not change. f32 is rounded to floats of 16 bits or fewer (bfloat16, float8e4m3fn,
// float4e2m1, ...; half to even), as ONNX Cast does. Of s8, u8 and s32 the low bits remain (int4,
// uint2, int16, ...), sign-extended for signed types.
class NarrowTo : public TensorOperator<NarrowTo> {
public:
    NarrowTo();
    static void params(NarrowTo& s, ParamVisitor& v);
    static int shape(const NarrowTo& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward_inplace(Mat& blob, const Option& opt) const override;

    int element_type = 16;
    int saturate = 1;
    int round_mode = 0;
};

// The bits of each value as another ONNX element type of the same width, at most 32 bits. ONNX
// BitCast.
class BitCast : public TensorOperator<BitCast> {
public:
    BitCast();
    static void params(BitCast& s, ParamVisitor& v);
    static int shape(const BitCast& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;

    int from = 1, to = 1;
};

}  // namespace quoll

#endif
