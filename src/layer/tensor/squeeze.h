#ifndef QUOLL_LAYER_SQUEEZE_H
#define QUOLL_LAYER_SQUEEZE_H

#include "layer/common/schema.h"

namespace quoll {

// Removes axes of size 1: those in axes, or, if that is empty, those whose flag is set. Axes that
// do not exist or are longer than 1 are ignored, and one axis always stays. The output shares the
// input's memory where the layout allows.
class Squeeze : public Operator<Squeeze> {
public:
    Squeeze();
    static void params(Squeeze& s, ParamVisitor& v);
    static void weights(Squeeze& s, WeightVisitor& v);
    static int shape(const Squeeze& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;
    unsigned traits() const override { return kMovesValues | kSharesMemory; }

    int squeeze_w = 0, squeeze_h = 0, squeeze_d = 0, squeeze_c = 0;
    Mat axes;
};

}  // namespace quoll

#endif
