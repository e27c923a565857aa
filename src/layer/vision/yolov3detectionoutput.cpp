#include "layer/vision/yolov3detectionoutput.h"

#include <math.h>
#include <string.h>

#include "layer/common/detection.h"
#include "layer/common/yolo_map.h"

namespace quoll {

Yolov3DetectionOutput::Yolov3DetectionOutput() {}

void Yolov3DetectionOutput::params(Yolov3DetectionOutput& s, ParamVisitor& v) {
    v(0, "num_class", s.num_class, 20, "classes", at_least(1));
    v(1, "num_box", s.num_box, 5, "boxes a place", at_least(1));
    v(2, "confidence_threshold", s.confidence_threshold, 0.01f, "least score");
    v(3, "nms_threshold", s.nms_threshold, 0.45f, "greatest intersection over union");
    v.floats(4, "biases", s.biases, "width and height of each anchor");
    // Floats, as in ncnn, which would take ints in a file for the bits of floats.
    v.floats(5, "mask", s.mask, "numbers of anchors, num_box an input");
    v.floats(6, "anchors_scale", s.anchors_scale, "pixels a place, one an input");
}

void Yolov3DetectionOutput::weights(Yolov3DetectionOutput&, WeightVisitor&) {}

int Yolov3DetectionOutput::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    // ncnn's converter writes the bits of 1.0f, 2.0f, ... as ints; no anchor has such a number.
    const float kOneAsBits = 0x3f800000;
    if (mask.empty()) return kOk;
    mask = mask.clone();
    if (mask.empty()) return kOutOfMemory;
    float* number = mask;
    for (int i = 0; i < mask.w; i++) {
        if (number[i] >= kOneAsBits && number[i] < 2.f * kOneAsBits) {
            const int bits = (int)number[i];
            memcpy(&number[i], &bits, 4);
        }
        if (!(number[i] >= 0 && number[i] < biases.w / 2))
            return fail("mask: anchor %g of %d", number[i], biases.w / 2);
    }
    return kOk;
}

int Yolov3DetectionOutput::shape(const Yolov3DetectionOutput& s, const std::vector<Shape>& in,
                                 std::vector<Shape>& out) {
    for (const Shape& shape : in)
        QUOLL_RETURN_IF_ERROR(check_yolo_map(s, shape, s.num_box, s.num_class));
    if ((size_t)s.anchors_scale.w < in.size() || s.mask.w / s.num_box < (int)in.size())
        return s.fail("%zu inputs, but %d values in mask and %d in anchors_scale", in.size(),
                      s.mask.w, s.anchors_scale.w);
    out.assign(1, Shape());  // as many rows as there are boxes
    return kOk;
}

int Yolov3DetectionOutput::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                                   const Option& opt) const {
    std::vector<Shape> in = shapes_of(bottoms), out;
    QUOLL_RETURN_IF_ERROR(shape(*this, in, out));
    std::vector<Detection> all;
    std::vector<float> best;
    std::vector<int> label;
    for (size_t k = 0; k < bottoms.size(); k++) {
        const Mat& map = bottoms[k];
        // As in ncnn, the size of the network's input is an integer.
        const float net_w = truncf(anchors_scale[k] * map.w);
        const float net_h = truncf(anchors_scale[k] * map.h);
        for (int b = 0; b < num_box; b++) {
            const int anchor = (int)mask[k * num_box + b];
            const float w = biases[anchor * 2] / net_w, h = biases[anchor * 2 + 1] / net_h;
            const YoloMap box(map, b * (5 + num_class), num_class);
            for (int i = 0; i < map.h; i++) {
                box.best_classes(i, &best, &label);
                for (int j = 0; j < map.w; j++) {
                    const float score =
                        1.f / (1.f + expf(-box.at(4, i, j)) * (1.f + expf(-best[j])));
                    if (score >= confidence_threshold)
                        all.push_back(box.detection(i, j, w, h, score, label[j]));
                }
            }
        }
    }
    sort_by_score(&all);
    suppress_overlaps(&all, nms_threshold);
    tops.resize(1);
    return detections_to_blob(all, &tops[0], opt.blob_allocator);
}

QUOLL_DEFINE_LAYER(Yolov3DetectionOutput)

}  // namespace quoll
