#ifndef QUOLL_LAYER_DETECTIONOUTPUT_H
#define QUOLL_LAYER_DETECTIONOUTPUT_H

#include "layer/common/schema.h"

namespace quoll {

// Boxes out of an SSD's three inputs: locations (4 a prior), class scores (after softmax) and
// priors. The output has a row a box: label, score, xmin, ymin, xmax, ymax.
//
// Caffe's form: scores [prior][class]; priors are PriorBox' output, row 1 the variances. MXNet's
// form (num_class = -233): scores have a row a class; priors a row a prior, h x 4; variances are
// parameters. Class 0 is the background.
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
