#ifndef QUOLL_LAYER_STRIDEDSLICE_H
#define QUOLL_LAYER_STRIDEDSLICE_H

#include "layer/common/tensor.h"

namespace quoll {

// data[start:end:step] along some axes; steps may be negative. Negative starts and ends count from
// the end of the axis, and those beyond it are clamped. Inputs: data, then, unless they are
// parameters, starts, ends, axes, steps (s32; the last two may be missing: all axes in order, steps
// of 1). ONNX Slice.
class StridedSlice : public TensorOperator<StridedSlice> {
public:
    StridedSlice() { set_any_storage(*this); }
    static void params(StridedSlice& s, ParamVisitor& v);
    static int shape(const StridedSlice& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    Mat starts, ends, axes, steps;

    // What is taken from each axis of the data.
    struct Cut {
        int start, count;
        int64_t step;
    };
    // As the parameters say, without further inputs.
    int plan_of_params(const Shape& data, Cut cuts[4], Shape* out) const {
        return plan(data, lists_of_params(), cuts, out);
    }

protected:
    int plan(const std::vector<Mat>& bottoms, Cut cuts[4], Shape* out) const;

private:
    struct Lists {
        std::vector<int> starts, ends, axes, steps;
    };
    int plan(const Shape& data, const Lists& lists, Cut cuts[4], Shape* out) const;
    Lists lists_of_params() const;
};

// Joins inputs of the same shape and type along a new axis, input i at index i. ONNX
// ConcatFromSequence with new_axis.
class Stack : public TensorOperator<Stack> {
public:
    static void params(Stack& s, ParamVisitor& v);
    static int shape(const Stack& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int axis = 0;
};

// Splits an axis: output i is the slice at index i, without the axis. ONNX SplitToSequence without
// keepdims.
class Unstack : public TensorOperator<Unstack> {
public:
    Unstack() { set_any_storage(*this); }
    static void params(Unstack& s, ParamVisitor& v);
    static int shape(const Unstack& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int axis = 0;
};

// Reverses the first `length` slices along time_axis. Inputs: data, lengths (s32, one for each
// index of batch_axis). ONNX ReverseSequence.
class ReverseSequence : public TensorOperator<ReverseSequence> {
public:
    ReverseSequence() { set_any_storage(*this); }
    static void params(ReverseSequence& s, ParamVisitor& v);
    static int shape(const ReverseSequence& s, const std::vector<Shape>& in,
                     std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int batch_axis = 1, time_axis = 0;
};

}  // namespace quoll

#endif
