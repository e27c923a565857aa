#ifndef QUOLL_LAYER_BINARYOP_H
#define QUOLL_LAYER_BINARYOP_H

#include "layer/common/schema.h"

namespace quoll {

// y = f(a, b) with f chosen by op_type; b is input 1, or the parameter b if with_scalar is set.
//
// Inputs may differ in shape. The axes of the one with fewer axes are aligned with the outermost
// axes of the other (c, then d or h), except that a single axis is aligned with the innermost (w)
// unless it has the size of the outermost; if the sizes do not fit, alignment is with the innermost
// axes, as in NumPy. Then sizes must be equal or 1 on each axis. Values are f32; two s32 inputs are
// computed as ints (wrapping; a division by 0 gives 0). With a scalar that changes nothing, values
// of any type pass.
class BinaryOp : public Operator<BinaryOp> {
public:
    enum OperationType {
        ADD,
        SUB,
        MUL,
        DIV,
        MAX,
        MIN,
        POW,
        RSUB,  // R...: the operands change places
        RDIV,
        RPOW,
        ATAN2,
        RATAN2,
        FMOD,
        RFMOD,
        LOGADDEXP,
        FLOOR_DIVIDE,
        RFLOOR_DIVIDE,
        REMAINDER,  // a - b * round(a / b)
        RREMAINDER,
        kOperationCount,
    };

    BinaryOp();
    static void params(BinaryOp& s, ParamVisitor& v);
    static void weights(BinaryOp& s, WeightVisitor& v);
    static int shape(const BinaryOp& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    int forward_inplace(Mat& blob, const Option& opt) const override;

    // The output's shape, and on which of its axes axis 0 of each input stands.
    int align(const Shape& x, const Shape& y, int first[2], Shape* out) const;
    // x + 0, x - 0, x * 1, x / 1
    bool is_neutral() const;
    float value(float x, float y) const;
    int32_t value(int32_t x, int32_t y) const;

    int op_type = 0;
    int with_scalar = 0;
    float b = 0.f;
    // An operation with a scalar on the result: a layer of the same net that the pass chain_scalars
    // found behind this one. Files have none.
    BinaryOp* then = nullptr;
    // 1 and 0 where the library has to be small: no chains, and no ReLU.
#if defined(__x86_64__) || defined(__i386__)
    enum {kLongestChain = 8, kTakesRelu = 1};
#else
    enum { kLongestChain = 1, kTakesRelu = 0 };
#endif
    // max(0, y): a ReLU that the pass fuse_sum_relu found behind a sum of two inputs. Files have
    // none.
#if defined(__x86_64__) || defined(__i386__)
    bool relu = false;
#else
    static constexpr bool relu = false;
#endif
};

}  // namespace quoll

#endif
