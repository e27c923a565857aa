#ifndef QUOLL_LAYER_TENSORFILL_H
#define QUOLL_LAYER_TENSORFILL_H

#include "layer/common/tensor.h"

namespace quoll {

// A blob of a given shape filled with one value. Input: the shape (s32, one axis; without sizes it
// is a scalar). ONNX ConstantOfShape.
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

// A vector start, start + delta, ... up to but excluding limit. Inputs: start, limit, delta, one
// value each, f32 or s32. ONNX Range.
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

// Adds an axis of size depth, with `on` at the index and `off` elsewhere; an index outside [-depth,
// depth) gives only `off`. Inputs: indices (s32), values (off, on) and, unless it is a parameter,
// depth (s32). ONNX OneHot.
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

// Random values (f32) in the shape of the input, whose values do not matter: uniform in [a, b), or
// normal with mean a and standard deviation b. Value i depends only on the seed and i, so that all
// runs give the same. The generator is SplitMix64 (Steele, Lea, Flood 2014), with Box-Muller. ONNX
// RandomUniformLike, RandomNormalLike.
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
