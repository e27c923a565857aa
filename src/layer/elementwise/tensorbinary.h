#ifndef QUOLL_LAYER_TENSORBINARY_H
#define QUOLL_LAYER_TENSORBINARY_H

#include "layer/common/tensor.h"

namespace quoll {

// out = f(a, b) on two inputs of one type (f32, s32, s8, u8) that are broadcast as NumPy has it.
// Arithmetic gives that type: ints wrap, quotients go towards zero, a division by 0 gives 0.
// Comparisons give u8, 0 or 1. The logical functions take and give u8, what is not 0 being true.
// The bitwise ones take ints; shifts are those of unsigned ints, by 0 to any number of bits.
class TensorBinary : public TensorOperator<TensorBinary> {
public:
    enum OperationType {
        ADD,
        SUB,
        MUL,
        DIV,
        MOD,   // sign of b
        FMOD,  // sign of a
        POW,
        MAX,
        MIN,
        EQUAL,
        LESS,
        GREATER,
        LESS_EQUAL,
        GREATER_EQUAL,
        AND,
        OR,
        XOR,
        BIT_AND,
        BIT_OR,
        BIT_XOR,
        SHIFT_LEFT,
        SHIFT_RIGHT,
        kOperationCount,
    };

    static void params(TensorBinary& s, ParamVisitor& v);
    static int shape(const TensorBinary& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int op_type = 0;
};

// Inputs: condition (u8), x, y of one type; all three are broadcast. x where the condition is not
// 0, else y. ONNX Where.
class Where : public TensorOperator<Where> {
public:
    static int shape(const Where& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
};

}  // namespace quoll

#endif
