#ifndef QUOLL_LAYER_DETECTIONOUTPUT_H
#define QUOLL_LAYER_DETECTIONOUTPUT_H

#include "layer/common/schema.h"

namespace quoll {

// The boxes that an SSD detector has found. Inputs: locations (4 per prior), class scores (after
// softmax) and priors. The output has a row per box: label, score, xmin, ymin, xmax, ymax.
//
// Caffe's form: scores are [prior][class], and priors are the output of PriorBox, whose row 1 has
// the variances. MXNet's form (num_class = -233): scores have a row per class, priors have a row of
// 4 values per prior, and the variances are parameters. Class 0 is the background.
class DetectionOutput : public Operator<DetectionOutput> {
public:
    DetectionOutput();
    static void params(DetectionOutput& s, ParamVisitor& v);
    static void weights(DetectionOutput& s, WeightVisitor& v);
    static int shape(const DetectionOutput& s, const std::vector<Shape>& in,
                     std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int num_class = 0;
    float nms_threshold = 0.f;
    int nms_top_k = 0;   // boxes of a class before the suppression; negative: all
    int keep_top_k = 0;  // boxes in the end; negative: all
    float confidence_threshold = 0.f;
    float variances[4] = {};
};

}  // namespace quoll

#endif
