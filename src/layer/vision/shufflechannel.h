#ifndef QUOLL_LAYER_SHUFFLECHANNEL_H
#define QUOLL_LAYER_SHUFFLECHANNEL_H

#include "layer/common/schema.h"

namespace quoll {

// Shuffles channels: seen as a matrix with rows of c / group channels, they are transposed, so that
// output channel j * group + i is input channel i * (c / group) + j. With reverse, group stands for
// c / group, which gives the inverse order.
class ShuffleChannel : public Operator<ShuffleChannel> {
public:
    ShuffleChannel();
    static void params(ShuffleChannel& s, ParamVisitor& v);
    static void weights(ShuffleChannel& s, WeightVisitor& v);
    static int shape(const ShuffleChannel& s, const std::vector<Shape>& in,
                     std::vector<Shape>& out);
    int forward(const Mat& bottom, Mat& top, const Option& opt) const override;
    unsigned traits() const override { return kMovesValues; }

    int group = 1;
    int reverse = 0;
};

}  // namespace quoll

#endif
