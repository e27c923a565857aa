#include "quantize/detection_metric.h"

#include <math.h>
#include <stdlib.h>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

namespace {

double overlap(const LabelledBox& a, const LabelledBox& b) {
    const double w = std::min(a.x2, b.x2) - std::max(a.x1, b.x1);
    const double h = std::min(a.y2, b.y2) - std::max(a.y1, b.y1);
    if (w <= 0 || h <= 0) return 0;
    const double both = w * h;
    return both / ((a.x2 - a.x1) * (a.y2 - a.y1) + (b.x2 - b.x1) * (b.y2 - b.y1) - both);
}

// One class.
struct Boxes {
    std::vector<LabelledBox> found;  // by falling score
    std::vector<LabelledBox> truths;
};

// Which of `found` is right: VOC takes the nearest truth, and a second box on it is wrong; COCO the
// nearest one that no box has yet.
std::vector<bool> right_ones(const Boxes& boxes, double least, bool coco) {
    std::map<int, std::vector<size_t>> of_sample;
    for (size_t i = 0; i < boxes.truths.size(); i++) of_sample[boxes.truths[i].sample].push_back(i);
    std::vector<bool> taken(boxes.truths.size()), right;
    for (const LabelledBox& box : boxes.found) {
        double most = -1;
        size_t nearest = 0;
        for (size_t i : of_sample[box.sample]) {
            if (coco && taken[i]) continue;
            const double both = overlap(box, boxes.truths[i]);
            if (both > most) most = both, nearest = i;
        }
        const bool hit = most >= least && !taken[nearest];
        if (hit) taken[nearest] = true;
        right.push_back(hit);
    }
    return right;
}

double average_precision(const Boxes& boxes, double least, bool coco) {
    const std::vector<bool> right = right_ones(boxes, least, coco);
    std::vector<double> recall, precision;
    double hits = 0;
    for (size_t i = 0; i < right.size(); i++) {
        hits += right[i];
        recall.push_back(hits / (double)boxes.truths.size());
        precision.push_back(hits / (double)(i + 1));
    }
    for (size_t i = precision.size(); i-- > 1;)
        precision[i - 1] = std::max(precision[i - 1], precision[i]);
    double sum = 0, before = 0;
    if (!coco) {
        for (size_t i = 0; i < right.size(); i++) {
            sum += (recall[i] - before) * precision[i];
            before = recall[i];
        }
        return sum;
    }
    const int kRecalls = 101;
    for (int r = 0; r < kRecalls; r++) {
        const size_t at =
            (size_t)(std::lower_bound(recall.begin(), recall.end(), r * 0.01) - recall.begin());
        if (at < precision.size()) sum += precision[at];
    }
    return sum / kRecalls;
}

void keep_best(size_t most, std::vector<LabelledBox>* found) {
    std::map<int, size_t> kept;
    std::vector<LabelledBox> best;
    for (const LabelledBox& box : *found)
        if (kept[box.sample]++ < most) best.push_back(box);
    *found = best;
}

}  // namespace

bool parse_boxes(const std::string& text, std::vector<LabelledBox>* boxes) {
    std::istringstream parts(text);
    std::string part;
    while (std::getline(parts, part, ';')) {
        std::istringstream words(part);
        std::vector<double> v;
        std::string word;
        while (words >> word) {
            char* end = nullptr;
            v.push_back(strtod(word.c_str(), &end));
            if (*end != '\0' || !std::isfinite(v.back())) return false;
        }
        if (v.empty()) continue;
        if (v.size() != 5 || v[0] != floor(v[0]) || fabs(v[0]) > 1e9 || v[3] < v[1] || v[4] < v[2])
            return false;
        LabelledBox box;
        box.label = (int)v[0];
        box.x1 = v[1], box.y1 = v[2], box.x2 = v[3], box.y2 = v[4];
        boxes->push_back(box);
    }
    return true;
}

int DetectionMetric::add(const std::string& sample, const std::string& truth,
                         const std::vector<Mat>& outputs) {
    const int index = samples_++;
    std::vector<LabelledBox> boxes;
    if (!parse_boxes(truth, &boxes)) return kError;
    for (LabelledBox& box : boxes) box.sample = index, truths_.push_back(box);
    const Mat found = outputs.empty() ? Mat() : outputs[0];
    const int kColumns = 6;
    if (found.total() == 0) return kOk;
    if (found.dims > 2 || found.w != kColumns || found.dtype != DType::f32) {
        QUOLL_LOGE(
            "%s: metrics map and map50 take a first output of rows of 6 values (label, score, x1, "
            "y1, x2, y2), got %d axes with rows of %d; a program can read others",
            sample.c_str(), found.dims, found.w);
        return kError;
    }
    for (int y = 0; y < found.h; y++) {
        const float* p = found.row(y);
        LabelledBox box;
        if (!std::all_of(p, p + kColumns, [](float v) { return std::isfinite(v); })) continue;
        if (fabsf(p[0]) > 1e9f) continue;
        box.label = (int)lroundf(p[0]), box.sample = index, box.score = p[1];
        box.x1 = p[2], box.y1 = p[3], box.x2 = p[4], box.y2 = p[5];
        found_.push_back(box);
    }
    return kOk;
}

int DetectionMetric::value(double* value) {
    std::map<int, Boxes> classes;
    for (const LabelledBox& box : truths_) classes[box.label].truths.push_back(box);
    for (const LabelledBox& box : found_) {
        const auto known = classes.find(box.label);
        if (known != classes.end()) known->second.found.push_back(box);
    }
    double sum = 0;
    for (auto& of_class : classes) {
        Boxes& boxes = of_class.second;
        std::stable_sort(
            boxes.found.begin(), boxes.found.end(),
            [](const LabelledBox& a, const LabelledBox& b) { return a.score > b.score; });
        if (!coco_) {
            sum += average_precision(boxes, 0.5, false);
            continue;
        }
        const int kSteps = 10;
        keep_best(100, &boxes.found);
        for (int k = 0; k < kSteps; k++)
            sum += average_precision(boxes, 0.5 + 0.05 * k, true) / kSteps;
    }
    *value = classes.empty() ? 0 : sum / (double)classes.size();
    return kOk;
}

}  // namespace quoll
