#ifndef QUOLL_LAYER_GATHER_H
#define QUOLL_LAYER_GATHER_H

#include "layer/common/tensor.h"

namespace quoll {

// Takes slices of data along an axis, one for each index; the axes of the indices replace that
// axis. Inputs: data, indices (s32). ONNX Gather.
class Gather : public TensorOperator<Gather> {
public:
    Gather() { set_any_storage(*this); }
    static void params(Gather& s, ParamVisitor& v);
    static int shape(const Gather& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int axis = 0;
    int scalar = 0;  // 1: one index of rank 0, the axis goes
};

// out[i][j] = data[indices[i][j]][j] for axis 0, and correspondingly for other axes. Inputs: data,
// and indices (s32) with as many axes. ONNX GatherElements.
class GatherElements : public TensorOperator<GatherElements> {
public:
    GatherElements() { set_any_storage(*this); }
    static void params(GatherElements& s, ParamVisitor& v);
    static int shape(const GatherElements& s, const std::vector<Shape>& in,
                     std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int axis = 0;
};

// Takes slices of data at tuples of indexes. Inputs: data, indices (s32). After batch_dims axes
// that both share, the innermost axis of the indices holds the indexes of the next axes of data.
// ONNX GatherND.
class GatherND : public TensorOperator<GatherND> {
public:
    GatherND() { set_any_storage(*this); }
    static void params(GatherND& s, ParamVisitor& v);
    static int shape(const GatherND& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int batch_dims = 0;
};

// Keeps the slices along an axis (kAllAxes: the values, flattened) whose condition is not 0.
// Inputs: data, condition (u8, one axis); what lies beyond the end of the condition is left out.
// ONNX Compress.
class Compress : public TensorOperator<Compress> {
public:
    static const int kAllAxes = -233;
    Compress() { set_any_storage(*this); }
    static void params(Compress& s, ParamVisitor& v);
    static int shape(const Compress& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int axis = kAllAxes;
};

// The slices of data that tuples of indices name, with one index for each of the axes first,
// first + 1, ... For GatherND and ScatterND.
class TupleParts {
public:
    TupleParts(const Layer& layer, const Mat& data, int first, const Mat& indices);
    // Where the slices of `count` tuples from number `first` on begin, counted in values; an error
    // if an index lies outside.
    int begins(size_t first, size_t count, ptrdiff_t* begin) const;

private:
    int fail_outside(size_t first, size_t count) const;

    const Layer& layer_;
    const int first_, k_;
    const int32_t* indices_;
    Flat order_;
    int size_[4];
    ptrdiff_t part_;  // values
};

}  // namespace quoll

#endif
