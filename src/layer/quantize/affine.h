// Operators on int8 values with zero points, as affine8.h describes them.
#ifndef QUOLL_LAYER_AFFINE_H
#define QUOLL_LAYER_AFFINE_H

#include <memory>

#include "layer/common/schema.h"

namespace quoll {

// f32 to s8: x / scale rounded half to even, plus zero_point, clamped to [-128, 127].
class AffineQuantize : public Operator<AffineQuantize> {
public:
    AffineQuantize();
    static void params(AffineQuantize& s, ParamVisitor& v);
    static void weights(AffineQuantize&, WeightVisitor&) {}
    static int shape(const AffineQuantize& s, const std::vector<Shape>& in,
                     std::vector<Shape>& out);
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;

    float scale = 1.f;
    int zero_point = 0;
};

// s8 to f32: (q - zero_point) * scale.
class AffineDequantize : public Operator<AffineDequantize> {
public:
    AffineDequantize();
    static void params(AffineDequantize& s, ParamVisitor& v);
    static void weights(AffineDequantize&, WeightVisitor&) {}
    static int shape(const AffineDequantize& s, const std::vector<Shape>& in,
                     std::vector<Shape>& out);
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;

    float scale = 1.f;
    int zero_point = 0;
};

// s8 to s8: q becomes table[q + 128], or stays the same without a table. Any function of each
// quantised value by itself can be written as such a table.
class AffineTable : public Operator<AffineTable> {
public:
    enum { kValues = 256 };

    AffineTable();
    static void params(AffineTable& s, ParamVisitor& v);
    static void weights(AffineTable&, WeightVisitor&) {}
    static int shape(const AffineTable& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;

    Mat table;  // s32

protected:
    signed char value(signed char q) const {
        return table.empty() ? q : (signed char)((const int*)table.data)[q + kValues / 2];
    }
};

// s8 to s8: activation(a + b) or activation(a b) of the values that two quantised blobs represent,
// or activation(a) of one, quantised again. Inputs are broadcast as in BinaryOp.
class AffineBinary : public Operator<AffineBinary> {
public:
    // fast: use the fast BinaryOp for inputs of different shapes.
    explicit AffineBinary(bool fast = false) : fast_(fast) {}
    static void params(AffineBinary& s, ParamVisitor& v);
    static void weights(AffineBinary&, WeightVisitor&) {}
    static int shape(const AffineBinary& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int create_pipeline(const Option& opt) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int op_type = 0;  // 0 sum, 1 product
    float a_scale = 1.f, b_scale = 1.f, top_scale = 1.f;
    int a_zero_point = 0, b_zero_point = 0, top_zero_point = 0;
    int activation_type = 0;
    Mat activation_params;

protected:
    // By way of f32, for inputs of different shapes.
    int forward_f32(const std::vector<Mat>& bottoms, Mat* top, const Option& opt) const;

private:
    const bool fast_;
    std::unique_ptr<Layer> operation_;  // on f32
};

}  // namespace quoll

#endif
