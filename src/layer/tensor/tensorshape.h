#ifndef QUOLL_LAYER_TENSORSHAPE_H
#define QUOLL_LAYER_TENSORSHAPE_H

#include "layer/common/tensor.h"

namespace quoll {

// The sizes of the input's axes start to end - 1 (negative: from the end) as an s32 vector, or,
// with `product`, the number of its values. ONNX Shape and Size.
class ShapeOf : public TensorOperator<ShapeOf> {
public:
    ShapeOf();
    static void params(ShapeOf& s, ParamVisitor& v);
    static int shape(const ShapeOf& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int start = 0, end = 0;
    int product = 0;
    int batch = 0;  // 1: n counts as an axis in front

private:
    std::vector<int> sizes(const Shape& shape) const;
};

// Broadcasts data to a shape by NumPy's rules. Inputs: data and, unless it is a parameter, the
// shape (s32). ONNX Expand.
class Expand : public TensorOperator<Expand> {
public:
    Expand() { set_any_storage(*this); }
    static void params(Expand& s, ParamVisitor& v);
    static int shape(const Expand& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    Mat sizes;

private:
    int expanded(const Shape& data, const std::vector<int>& wanted, Shape* out) const;
};

// Gives data another shape. Inputs: data and, unless it is a parameter, the shape (s32): sizes from
// the outermost axis on, where -1 is what remains and 0 is the input's size on that axis. The
// output shares the input's memory where the layout allows. ONNX Reshape.
class ReshapeTo : public TensorOperator<ReshapeTo> {
public:
    ReshapeTo() { set_any_storage(*this); }
    static void params(ReshapeTo& s, ParamVisitor& v);
    static int shape(const ReshapeTo& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    Mat sizes;
    int allowzero = 0;  // 1: a 0 is a size

private:
    int reshaped(const Shape& data, std::vector<int> wanted, Shape* out) const;
};

// Turns the outermost axis into the Mat's batch n, or, with `inverse`, the batch into the outermost
// axis. The output shares the input's memory where the layout allows.
class BatchAxis : public TensorOperator<BatchAxis> {
public:
    BatchAxis();
    static void params(BatchAxis& s, ParamVisitor& v);
    static int shape(const BatchAxis& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;

    int inverse = 0;
};

}  // namespace quoll

#endif
