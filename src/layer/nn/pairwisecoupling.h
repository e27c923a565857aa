#ifndef QUOLL_LAYER_PAIRWISECOUPLING_H
#define QUOLL_LAYER_PAIRWISECOUPLING_H

#include <vector>

#include "layer/common/tensor.h"

namespace quoll {

// Class probabilities from those of pairs of classes, which support vector machines give, by the
// second method of Wu, Lin and Weng (2004). Input [rows, classes * (classes - 1) / 2]: for the
// pairs 0-1, 0-2, ..., 1-2, ... the probability of the first class, given that it is one of the
// two. Output: [rows, classes].
class PairwiseCoupling : public Operator<PairwiseCoupling> {
public:
    PairwiseCoupling() { support_zero_size = true; }
    static void params(PairwiseCoupling& s, ParamVisitor& v);
    static void weights(PairwiseCoupling& s, WeightVisitor& v);
    static int shape(const PairwiseCoupling& s, const std::vector<Shape>& in,
                     std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int classes = 2;

private:
    struct Buffers {
        std::vector<double> first;  // [classes, classes]: of the first of two classes
        std::vector<double> system, p, product;
    };
    void couple(const float* pairs, Buffers* b, float* out) const;
};

}  // namespace quoll

#endif
