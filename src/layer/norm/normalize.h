#ifndef QUOLL_LAYER_NORMALIZE_H
#define QUOLL_LAYER_NORMALIZE_H

#include "layer/common/schema.h"

namespace quoll {

// y = x / |x| * scale, where |x| = sqrt(sum of x^2) over a channel (across_spatial), the channels
// of a pixel (across_channel), or the whole blob (both); with neither, y = x. eps_mode: 0
// sqrt(sum + eps), 1 max(sqrt(sum), eps), 2 sqrt(max(sum, eps)). Channels are the axis c; 1-D and
// 2-D blobs have one.
class Normalize : public Operator<Normalize> {
public:
    Normalize();
    static void params(Normalize& s, ParamVisitor& v);
    static void weights(Normalize& s, WeightVisitor& v);
    static int shape(const Normalize& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward_inplace(Mat& blob, const Option& opt) const override;

    int across_spatial;
    int across_channel;
    int channel_shared;
    float eps;
    int eps_mode;
    int scale_data_size;
    Mat scale_data;

private:
    double factor(double sum) const;
};

}  // namespace quoll

#endif
