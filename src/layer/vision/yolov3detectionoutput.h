#ifndef QUOLL_LAYER_YOLOV3DETECTIONOUTPUT_H
#define QUOLL_LAYER_YOLOV3DETECTIONOUTPUT_H

#include "layer/common/schema.h"

namespace quoll {

// The boxes that a YOLO v3 detector has found, from one input per scale. Each has num_box * (5 +
// num_class) channels: x, y, log w, log h, box score, class scores. The output has a row per box:
// label + 1, score, xmin, ymin, xmax, ymax, in units of the image. Boxes of equal score stay in the
// order of inputs, anchors, rows and columns. In ncnn their order is whatever its quicksort leaves,
// so that of two that overlap it may keep the other one.
class Yolov3DetectionOutput : public Operator<Yolov3DetectionOutput> {
public:
    Yolov3DetectionOutput();
    static void params(Yolov3DetectionOutput& s, ParamVisitor& v);
    static void weights(Yolov3DetectionOutput& s, WeightVisitor& v);
    static int shape(const Yolov3DetectionOutput& s, const std::vector<Shape>& in,
                     std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

    int num_class = 20;
    int num_box = 5;
    float confidence_threshold = 0.f;
    float nms_threshold = 0.f;
    Mat biases;  // width and height of each anchor, in pixels
    // num_box numbers of anchors for each input. Files hold ints, or the bits of floats as ints.
    Mat mask;
    Mat anchors_scale;  // pixels per place of each input
};

}  // namespace quoll

#endif
