#ifndef QUOLL_LAYER_SPP_H
#define QUOLL_LAYER_SPP_H

#include "layer/common/schema.h"

namespace quoll {

// Spatial pyramid pooling: level p of the pyramid divides the plane into 2^p x 2^p equal windows,
// after padding with zeros that count as values. The output has one axis: level by level, channel
// by channel, the windows row by row.
class SPP : public Operator<SPP> {
public:
    SPP();
    static void params(SPP& s, ParamVisitor& v);
    static void weights(SPP& s, WeightVisitor& v);
    static int shape(const SPP& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;

    int pooling_type;  // 0 max, 1 average
    int pyramid_height;
};

}  // namespace quoll

#endif
