// Average precision of boxes; see metric.h.
#ifndef QUOLL_TOOLS_QUANTIZE_DETECTION_METRIC_H
#define QUOLL_TOOLS_QUANTIZE_DETECTION_METRIC_H

#include <string>
#include <vector>

#include "quantize/metric.h"

namespace quoll {

struct LabelledBox {
    int label = 0, sample = 0;
    double score = 0, x1 = 0, y1 = 0, x2 = 0, y2 = 0;
};

// "LABEL X1 Y1 X2 Y2; LABEL ..."; false if it is no such list. Empty: no boxes.
bool parse_boxes(const std::string& text, std::vector<LabelledBox>* boxes);

class DetectionMetric : public TaskMetric {
public:
    // coco: map, else map50.
    explicit DetectionMetric(bool coco) : coco_(coco) {}
    int add(const std::string& sample, const std::string& truth,
            const std::vector<Mat>& outputs) override;
    // 0 where no sample has a box.
    int value(double* value) override;

private:
    const bool coco_;
    int samples_ = 0;
    std::vector<LabelledBox> found_, truths_;
};

}  // namespace quoll

#endif
