#ifndef QUOLL_LAYER_YOLODETECTIONOUTPUT_H
#define QUOLL_LAYER_YOLODETECTIONOUTPUT_H

#include "layer/common/schema.h"

namespace quoll {

// The boxes that a YOLO v2 detector has found. Each input has num_box * (5 + num_class) channels:
// x, y, log w, log h, box score, class scores. The output has a row per box: label + 1, score,
// xmin, ymin, xmax, ymax, in units of the image. If nothing is found, it is, as in ncnn, the first
// input with the class scores of each box turned into probabilities; callers recognise that by its
// three axes.
class YoloDetectionOutput : public Operator<YoloDetectionOutput> {
public:
    YoloDetectionOutput();
    static void params(YoloDetectionOutput& s, ParamVisitor& v);
    static void weights(YoloDetectionOutput& s, WeightVisitor& v);
    static int shape(const YoloDetectionOutput& s, const std::vector<Shape>& in,
                     std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int num_class = 20;
    int num_box = 5;
    float confidence_threshold = 0.f;
    float nms_threshold = 0.f;
    Mat biases;  // width and height of each box, in places of the map
};

}  // namespace quoll

#endif
