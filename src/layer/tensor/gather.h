#ifndef QUOLL_LAYER_GATHER_H
#define QUOLL_LAYER_GATHER_H

#include "layer/common/tensor.h"

namespace quoll {

// Inputs: data, indices (s32). Parts of data along an axis, one for each index; the axes of the
// indices replace that axis. ONNX Gather.
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

// Inputs: data, indices (s32) with as many axes. out[i][j] = data[indices[i][j]][j] for axis 0,
// and so on. ONNX GatherElements.
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

// Inputs: data, indices (s32), whose innermost axis holds indexes of data's first axes behind
// batch_dims common ones. ONNX GatherND.
class GatherND : public TensorOperator<GatherND> {
public:
    GatherND() { set_any_storage(*this); }
    static void params(GatherND& s, ParamVisitor& v);
    static int shape(const GatherND& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int batch_dims = 0;
};

// Inputs: data, condition (u8, one axis). The parts along an axis (kAllAxes: of all values in
// order) whose condition is not 0; a condition that is too short leaves the rest out. ONNX
// Compress.
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

// The parts of data that tuples of indices name, each index on one of the axes first, first + 1,
// ... For GatherND and ScatterND.
class TupleParts {
public:
    TupleParts(const Layer& layer, const Mat& data, int first, const Mat& indices);
    // Where the parts of `count` tuples from number `first` on begin, counted in values; an error
    // where an index lies outside.
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
