#ifndef QUOLL_LAYER_STATISTICSPOOLING_H
#define QUOLL_LAYER_STATISTICSPOOLING_H

#include "layer/common/schema.h"

namespace quoll {

// The mean of each channel over all other axes, followed, with include_stddev, by the standard
// deviation of each (of the population). A 1-D or 2-D input is one channel.
class StatisticsPooling : public Operator<StatisticsPooling> {
public:
    StatisticsPooling();
    static void params(StatisticsPooling& s, ParamVisitor& v);
    static void weights(StatisticsPooling& s, WeightVisitor& v);
    static int shape(const StatisticsPooling& s, const std::vector<Shape>& in,
                     std::vector<Shape>& out);
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;

    int include_stddev;
};

}  // namespace quoll

#endif
