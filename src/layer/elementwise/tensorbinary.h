#ifndef QUOLL_LAYER_TENSORBINARY_H
#define QUOLL_LAYER_TENSORBINARY_H

#include "layer/common/tensor.h"

namespace quoll {

// out = f(a, b) for two inputs of one type (f32, s32, s8, u8), broadcast by NumPy's rules.
// Arithmetic gives that type: ints wrap, quotients are truncated, and a division of ints by 0 gives
// 0. Comparisons give u8, 0 or 1. Logical functions take and give u8, where anything but 0 is true.
// Bitwise functions take ints; shifts are those of unsigned ints, by 0 or more bits.
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

// x where the condition is not 0, else y. Inputs: condition (u8), and x and y of one type; all
// three are broadcast. ONNX Where.
class Where : public TensorOperator<Where> {
public:
    static int shape(const Where& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
};

}  // namespace quoll

#endif
