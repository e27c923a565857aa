#ifndef QUOLL_LAYER_NARROWTO_H
#define QUOLL_LAYER_NARROWTO_H

#include "layer/common/tensor.h"

namespace quoll {

// The values as an array of an ONNX element type of fewer bits would hold them; the Mat's type
// stays. f32: rounded to floats of 16 bits and less (bfloat16, float8e4m3fn, float4e2m1, ...; of
// a tie the even one), as ONNX Cast does. s8, u8 and s32: the low bits, sign-extended (int4, uint2,
// int16, ...).
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

// The bits of each value as another ONNX element type of as many bits, 32 at most. ONNX BitCast.
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
