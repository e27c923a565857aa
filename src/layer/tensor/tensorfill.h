#ifndef QUOLL_LAYER_TENSORFILL_H
#define QUOLL_LAYER_TENSORFILL_H

#include "layer/common/tensor.h"

namespace quoll {

// Input: a shape (s32, one axis; no sizes: a scalar). One value all over it. ONNX ConstantOfShape.
class ConstantOfShape : public TensorOperator<ConstantOfShape> {
public:
    static void params(ConstantOfShape& s, ParamVisitor& v);
    static int shape(const ConstantOfShape& s, const std::vector<Shape>& in,
                     std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int type = 0;       // CastTo::ElementType
    float value = 0;    // if type is f32
    int int_value = 0;  // if it is another
};

// Inputs: start, limit, delta, one value each, f32 or s32. start, start + delta, ... up to but
// without limit, one axis. ONNX Range.
class RangeOf : public TensorOperator<RangeOf> {
public:
    static int shape(const RangeOf& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
};

// Ones on diagonal k of a matrix of the input's size, zeros elsewhere. ONNX EyeLike.
class EyeLike : public TensorOperator<EyeLike> {
public:
    static void params(EyeLike& s, ParamVisitor& v);
    static int shape(const EyeLike& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int k = 0;      // 0: the main one, positive: above it
    int type = -1;  // CastTo::ElementType, -1: the input's
};

// Inputs: indices (s32), values (off, on) and, without the parameter, depth (s32). A new axis of
// size depth with `on` where the index is, `off` elsewhere; indexes outside [-depth, depth) are
// all off. ONNX OneHot.
class OneHot : public TensorOperator<OneHot> {
public:
    static void params(OneHot& s, ParamVisitor& v);
    static int shape(const OneHot& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int axis = -1;
    int depth = 0;   // 0: input 2
    int scalar = 0;  // 1: one index of rank 0

private:
    int result(const Shape& indices, DType dtype, int size, Shape* out) const;
};

// As many random values (f32) as the input has, whatever those are: uniform in [a, b), or normal
// with mean a and standard deviation b. Value i is a function of seed and i: it is the same in each
// run. SplitMix64 (Steele, Lea, Flood 2014), Box-Muller. ONNX RandomUniformLike, RandomNormalLike.
class RandomFill : public TensorOperator<RandomFill> {
public:
    static void params(RandomFill& s, ParamVisitor& v);
    static int shape(const RandomFill& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int normal = 0;
    float a = 0, b = 1;
    int seed = 0;
};

}  // namespace quoll

#endif
