#include "layer/vision/yolodetectionoutput.h"

#include <math.h>

#include "layer/common/detection.h"
#include "layer/common/yolo_map.h"

namespace quoll {

YoloDetectionOutput::YoloDetectionOutput() {}

void YoloDetectionOutput::params(YoloDetectionOutput& s, ParamVisitor& v) {
    v(0, "num_class", s.num_class, 20, "classes", at_least(1));
    v(1, "num_box", s.num_box, 5, "boxes a place", at_least(1));
    v(2, "confidence_threshold", s.confidence_threshold, 0.01f, "least score");
    v(3, "nms_threshold", s.nms_threshold, 0.45f, "greatest intersection over union");
    v.floats(4, "biases", s.biases, "width and height of each box");
}

void YoloDetectionOutput::weights(YoloDetectionOutput&, WeightVisitor&) {}

int YoloDetectionOutput::shape(const YoloDetectionOutput& s, const std::vector<Shape>& in,
                               std::vector<Shape>& out) {
    for (const Shape& shape : in)
        QUOLL_RETURN_IF_ERROR(check_yolo_map(s, shape, s.num_box, s.num_class));
    if (s.biases.w / 2 < s.num_box) return s.fail("%d biases for %d boxes", s.biases.w, s.num_box);
    out.assign(1, Shape());  // as many rows as there are boxes
    return kOk;
}

// A copy of the map with the class scores of each box after Softmax.
static int with_probabilities(const YoloDetectionOutput& s, const Mat& map, Mat* out,
                              const Option& opt) {
    *out = map.clone(opt.blob_allocator);
    if (out->empty()) return kOutOfMemory;
    std::vector<float> best;
    std::vector<int> label;
    for (int b = 0; b < s.num_box; b++) {
        const int first = b * (5 + s.num_class);
        const YoloMap box(map, first, s.num_class);
        for (int i = 0; i < map.h; i++) {
            box.best_classes(i, &best, &label);
            for (int j = 0; j < map.w; j++) {
                float sum = 0.f;
                for (int q = 0; q < s.num_class; q++) sum += expf(box.at(5 + q, i, j) - best[j]);
                for (int q = 0; q < s.num_class; q++)
                    out->channel(first + 5 + q).row(i)[j] =
                        expf(box.at(5 + q, i, j) - best[j]) / sum;
            }
        }
    }
    return kOk;
}

int YoloDetectionOutput::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                                 const Option& opt) const {
    std::vector<Shape> in = shapes_of(bottoms), out;
    QUOLL_RETURN_IF_ERROR(shape(*this, in, out));
    std::vector<Detection> all;
    std::vector<float> best, others;
    std::vector<int> label;
    for (const Mat& map : bottoms) {
        for (int b = 0; b < num_box; b++) {
            const YoloMap box(map, b * (5 + num_class), num_class);
            const float w = biases[b * 2] / map.w, h = biases[b * 2 + 1] / map.h;
            for (int i = 0; i < map.h; i++) {
                box.best_classes(i, &best, &label);
                others.assign(map.w, 0.f);
                for (int q = 0; q < num_class; q++)
                    for (int j = 0; j < map.w; j++)
                        others[j] += expf(box.at(5 + q, i, j) - best[j]);
                for (int j = 0; j < map.w; j++) {
                    // Softmax' greatest value is exp(0) by the sum.
                    const float score = yolo_sigmoid(box.at(4, i, j)) / others[j];
                    if (score >= confidence_threshold)
                        all.push_back(box.detection(i, j, w, h, score, label[j]));
                }
            }
        }
    }
    sort_by_score(&all);
    suppress_overlaps(&all, nms_threshold);
    tops.resize(1);
    if (all.empty() && !bottoms.empty())
        return with_probabilities(*this, bottoms[0], &tops[0], opt);
    return detections_to_blob(all, &tops[0], opt.blob_allocator);
}

QUOLL_DEFINE_LAYER(YoloDetectionOutput)

}  // namespace quoll
