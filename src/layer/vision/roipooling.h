#ifndef QUOLL_LAYER_ROIPOOLING_H
#define QUOLL_LAYER_ROIPOOLING_H

#include "layer/common/roi.h"

namespace quoll {

// The maximum of each bin of a region whose corners are rounded to whole positions, both within
// it; bins overlap where they do not divide it. 0 for a bin outside the map, NaN for one with a
// NaN. Where they divide it, ncnn's binaries (the wheel of October 2026 among them) make a bin that
// would begin at a whole position begin with the one before; exact_bins leaves that to Caffe's
// rule.
class ROIPooling : public Operator<ROIPooling>, public RoiFields {
public:
    ROIPooling();
    static void params(ROIPooling& s, ParamVisitor& v);
    static void weights(ROIPooling& s, WeightVisitor& v);
    static int shape(const ROIPooling& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int exact_bins = 0;  // 1: as Caffe has them, 0: as ncnn's binaries do
};

}  // namespace quoll

#endif
