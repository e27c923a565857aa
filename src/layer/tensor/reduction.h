#ifndef QUOLL_LAYER_REDUCTION_H
#define QUOLL_LAYER_REDUCTION_H

#include "layer/common/schema.h"

namespace quoll {

// y = coeff * f(the values along the given axes). With keepdims the size of these axes becomes 1;
// without it they are removed (a blob of one value keeps its axis). Without axes, y = coeff * f(x)
// of each value by itself, except that the only axis of a vector is reduced, as in ncnn. Ints stay
// ints in operations 0 to 7 with a coeff of 1: sums and products wrap, means are cut towards 0.
class Reduction : public Operator<Reduction> {
public:
    Reduction();
    static void params(Reduction& s, ParamVisitor& v);
    static void weights(Reduction& s, WeightVisitor& v);
    static int shape(const Reduction& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;
    // The result for no values: 0, 1 for products, an infinite maximum, NaN for a mean.
    int forward_empty(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                      const Option& opt) const override;

    enum Operation {
        kSum = 0,
        kASum = 1,
        kSumSq = 2,
        kMean = 3,
        kMax = 4,
        kMin = 5,
        kProd = 6,
        kL1 = 7,
        kL2 = 8,
        kLogSum = 9,
        kLogSumExp = 10,
    };
    // Blobs of s32, whose sums, products, extremes and means are s32, too; the others need f32.
    bool takes_ints() const;
    // Which axes of a blob of `dims` axes are reduced, bit 0 being the outermost. Fails for an axis
    // that the blob does not have.
    int reduced_axes(int dims, unsigned* mask) const;

    int operation;
    int reduce_all;
    float coeff;
    Mat axes;
    int keepdims;
    int fixbug0;
};

}  // namespace quoll

#endif
