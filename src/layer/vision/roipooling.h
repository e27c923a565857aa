#ifndef QUOLL_LAYER_ROIPOOLING_H
#define QUOLL_LAYER_ROIPOOLING_H

#include "layer/common/roi.h"

namespace quoll {

// The maximum of each bin of a region. The region's corners are rounded to whole positions, both of
// which belong to it. Bins overlap if their number does not divide its size. A bin outside the map
// gives 0, one with a NaN gives NaN. If their number divides the size, ncnn's binaries (the wheel
// of October 2026 among them) begin a bin one position before the whole one where it should begin;
// with exact_bins the bins are those of Caffe.
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
