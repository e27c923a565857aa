#include "layer/elementwise/unaryop.h"

#include <math.h>

namespace quoll {

void UnaryOp::params(UnaryOp& s, ParamVisitor& v) {
    v(0, "op_type", s.op_type, 0, "function, see OperationType", between(0, kOperationCount - 1));
}

float UnaryOp::value(float x) const {
    switch (op_type) {
        case ABS:
            return fabsf(x);
        case NEG:
            return -x;
        case FLOOR:
            return floorf(x);
        case CEIL:
            return ceilf(x);
        case SQUARE:
            return x * x;
        case SQRT:
            return sqrtf(x);
        case RSQRT:
            return 1.f / sqrtf(x);
        case EXP:
            return expf(x);
        case LOG:
            return logf(x);
        case SIN:
            return sinf(x);
        case COS:
            return cosf(x);
        case TAN:
            return tanf(x);
        case ASIN:
            return asinf(x);
        case ACOS:
            return acosf(x);
        case ATAN:
            return atanf(x);
        case RECIPROCAL:
            return 1.f / x;
        case TANH:
            return tanhf(x);
        case LOG10:
            return log10f(x);
        case ROUND:
            return nearbyintf(x);
        case TRUNC:
            return truncf(x);
        case SIGN:
            return x > 0.f ? 1.f : x < 0.f ? -1.f : x;
        case EXPM1:
            return expm1f(x);
        case SINH:
            return sinhf(x);
        case ASINH:
            return asinhf(x);
        case COSH:
            return coshf(x);
        case ACOSH:
            return acoshf(x);
        case ATANH:
            return atanhf(x);
        case LOG1P:
            return log1pf(x);
    }
    return x;
}

QUOLL_DEFINE_LAYER(UnaryOp)

}  // namespace quoll
