#ifndef QUOLL_LAYER_TENSORSCAN_H
#define QUOLL_LAYER_TENSORSCAN_H

#include "tensor.h"

namespace quoll {

// out[i] = in[0] + ... + in[i] along an axis (ints wrap). The axis is a parameter or, if there is a
// second input, that (s32). ONNX CumSum.
class CumSum : public TensorOperator<CumSum> {
public:
    static void params(CumSum& s, ParamVisitor& v);
    static int shape(const CumSum& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int axis = 0;
    int exclusive = 0;  // 1: without in[i]
    int reverse = 0;    // 1: from the end
};

// The upper or lower triangle of the two innermost axes, zeros elsewhere. Diagonal k (a parameter,
// or input 1 as s32) belongs to it. ONNX Trilu.
class Trilu : public TensorOperator<Trilu> {
public:
    Trilu() { set_any_storage(*this); }
    static void params(Trilu& s, ParamVisitor& v);
    static int shape(const Trilu& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int upper = 1;
    int k = 0;  // positive: above the main diagonal
};

// y = x - log(sum of e^x) along one axis. ONNX LogSoftmax.
class LogSoftmax : public TensorOperator<LogSoftmax> {
public:
    static void params(LogSoftmax& s, ParamVisitor& v);
    static int shape(const LogSoftmax& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int axis = -1;
};

// 1 at the first largest value along one axis, 0 elsewhere. ONNX Hardmax.
class Hardmax : public TensorOperator<Hardmax> {
public:
    static void params(Hardmax& s, ParamVisitor& v);
    static int shape(const Hardmax& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int axis = -1;
};

// y = x / |x|, |x| the sum of the absolute values (p 1) or the Euclidean length (p 2) along one
// axis; 0 where that is 0. ONNX LpNormalization.
class LpNormalization : public TensorOperator<LpNormalization> {
public:
    static void params(LpNormalization& s, ParamVisitor& v);
    static int shape(const LpNormalization& s, const std::vector<Shape>& in,
                     std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int axis = -1;
    int p = 2;
};

// y = (x - mean) / (sqrt(variance) + 1e-9), mean and variance over some axes. ONNX
// MeanVarianceNormalization (the epsilon is that of its function body).
class MeanVarianceNormalization : public TensorOperator<MeanVarianceNormalization> {
public:
    static void params(MeanVarianceNormalization& s, ParamVisitor& v);
    static int shape(const MeanVarianceNormalization& s, const std::vector<Shape>& in,
                     std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    Mat axes;
};

// The determinants of the matrices in the two innermost axes. ONNX Det.
class Det : public TensorOperator<Det> {
public:
    static int shape(const Det& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
};

}  // namespace quoll

#endif
