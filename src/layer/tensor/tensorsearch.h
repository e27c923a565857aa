#ifndef QUOLL_LAYER_TENSORSEARCH_H
#define QUOLL_LAYER_TENSORSEARCH_H

#include "layer/common/tensor.h"

namespace quoll {

// The indexes of all values that are not 0, in order: s32, with a row per axis of the input and a
// column per value. ONNX NonZero.
class NonZero : public TensorOperator<NonZero> {
public:
    static int shape(const NonZero& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
};

// The index (s32) of the largest or least value along an axis; among equal values the first, or the
// last. ONNX ArgMax and ArgMin.
class ArgReduce : public TensorOperator<ArgReduce> {
public:
    static void params(ArgReduce& s, ParamVisitor& v);
    static int shape(const ArgReduce& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int min = 0;
    int axis = 0;
    int keepdims = 1;
    int select_last_index = 0;
};

// The k largest (or least) values along an axis. Outputs: the values, their indexes (s32). They are
// sorted, best first and equal ones by index, or, without `sorted`, in order of index. NaN counts
// as larger than all numbers. k is a parameter or input 1 (s32). ONNX TopK.
class TopK : public TensorOperator<TopK> {
public:
    static void params(TopK& s, ParamVisitor& v);
    static int shape(const TopK& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int k = -1;  // -1: input 1
    int axis = -1;
    int largest = 1, sorted = 1;

private:
    int result(const Shape& in, int count, std::vector<Shape>* out) const;
};

// The distinct values (axis kAllAxes), or the distinct slices along an axis: sorted, or in order of
// first occurrence. Up to four outputs: the distinct values or slices; then, as s32 vectors, the
// index of each one's first occurrence, for each value or slice of the input which one it is, and
// the number of occurrences of each. NaN is equal to itself and larger than all numbers. ONNX
// Unique.
class Unique : public TensorOperator<Unique> {
public:
    static const int kAllAxes = -233;
    static void params(Unique& s, ParamVisitor& v);
    static int shape(const Unique& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int axis = kAllAxes;
    int sorted = 1;

private:
    // The groups of equal parts of m along an axis.
    struct Groups {
        std::vector<int> first, of_part, counts;
    };
    void group(const Mat& m, int along, Groups* groups) const;
};

}  // namespace quoll

#endif
