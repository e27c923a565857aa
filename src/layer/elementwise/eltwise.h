#ifndef QUOLL_LAYER_ELTWISE_H
#define QUOLL_LAYER_ELTWISE_H

#include "layer/common/schema.h"

namespace quoll {

// The product, the sum (of each input times its coefficient, if there are coeffs) or the maximum of
// inputs of the same shape.
class Eltwise : public Operator<Eltwise> {
public:
    enum OperationType { PROD, SUM, MAX };

    Eltwise();
    static void params(Eltwise& s, ParamVisitor& v);
    static void weights(Eltwise& s, WeightVisitor& v);
    static int shape(const Eltwise& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int op_type = 0;
    Mat coeffs;
};

}  // namespace quoll

#endif
