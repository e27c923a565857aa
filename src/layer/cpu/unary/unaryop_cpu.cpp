#include "layer/elementwise/unaryop.h"

#include "layer/cpu/unary/unary_layer.h"

namespace quoll {

namespace {
class UnaryOpCpu : public UnaryLayer<UnaryOp> {
    UnaryKernel select(const UnaryKernels& k, float*) override {
        switch (op_type) {
            case ABS:
                return k.abs;
            case NEG:
                return k.neg;
            case FLOOR:
                return k.floor;
            case CEIL:
                return k.ceil;
            case SQUARE:
                return k.square;
            case SQRT:
                return k.sqrt;
            case RSQRT:
                return k.rsqrt;
            case EXP:
                return k.exp;
            case LOG:
                return k.log;
            case SIN:
                return k.sin;
            case COS:
                return k.cos;
            case TAN:
                return k.tan;
            case ASIN:
                return k.asin;
            case ACOS:
                return k.acos;
            case ATAN:
                return k.atan;
            case RECIPROCAL:
                return k.reciprocal;
            case TANH:
                return k.tanh;
            case LOG10:
                return k.log10;
            case ROUND:
                return k.round;
            case TRUNC:
                return k.trunc;
            case SIGN:
                return k.sign;
            case EXPM1:
                return k.expm1;
            case SINH:
                return k.sinh;
            case ASINH:
                return k.asinh;
            case COSH:
                return k.cosh;
            case ACOSH:
                return k.acosh;
            case ATANH:
                return k.atanh;
            case LOG1P:
                return k.log1p;
        }
        return nullptr;
    }
};
}  // namespace

Layer* create_UnaryOp_fast_layer() { return new UnaryOpCpu; }

}  // namespace quoll
