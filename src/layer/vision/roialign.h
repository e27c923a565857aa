#ifndef QUOLL_LAYER_ROIALIGN_H
#define QUOLL_LAYER_ROIALIGN_H

#include "layer/common/roi.h"

namespace quoll {

// The average of bilinear samples in each bin of a region, on a grid of sampling_ratio x
// sampling_ratio points per bin (0: one point for each position that the bin touches). With
// aligned, positions are the centres of the map's values. Version 0 is ncnn's own, where bins are
// clipped to the map; version 1 is detectron2's, where samples beyond the map count as 0.
class ROIAlign : public Operator<ROIAlign>, public RoiFields {
public:
    ROIAlign();
    static void params(ROIAlign& s, ParamVisitor& v);
    static void weights(ROIAlign& s, WeightVisitor& v);
    static int shape(const ROIAlign& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int sampling_ratio = 0;
    int aligned = 0;
    int version = 0;

private:
    // What the samples of a bin take from one axis of the map: the values from `first` on, each
    // times its weight. Without weights there are no samples.
    struct Bin {
        int first = 0;
        std::vector<float> weights;
        void add(float at, int size, float share);
    };
    int bins_of(float from, float to, int count, int size, std::vector<Bin>* bins) const;
};

}  // namespace quoll

#endif
