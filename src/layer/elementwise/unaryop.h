#ifndef QUOLL_LAYER_UNARYOP_H
#define QUOLL_LAYER_UNARYOP_H

#include "layer/common/elementwise.h"

namespace quoll {

// y = f(x) with f chosen by op_type.
class UnaryOp : public ElementwiseOperator<UnaryOp> {
public:
    enum OperationType {
        ABS,
        NEG,
        FLOOR,
        CEIL,
        SQUARE,
        SQRT,
        RSQRT,
        EXP,
        LOG,
        SIN,
        COS,
        TAN,
        ASIN,
        ACOS,
        ATAN,
        RECIPROCAL,
        TANH,
        LOG10,
        ROUND,  // half to even
        TRUNC,
        SIGN,
        EXPM1,
        SINH,
        ASINH,
        COSH,
        ACOSH,
        ATANH,
        LOG1P,
        kOperationCount,
    };

    static void params(UnaryOp& s, ParamVisitor& v);
    float value(float x) const;

    int op_type = 0;
};

}  // namespace quoll

#endif
