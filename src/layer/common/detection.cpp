#include "layer/common/detection.h"

#include <algorithm>

#include "quoll/status.h"

namespace quoll {

void sort_by_score(std::vector<Detection>* boxes) {
    std::stable_sort(boxes->begin(), boxes->end(),
                     [](const Detection& a, const Detection& b) { return a.score > b.score; });
}

void keep_first(std::vector<Detection>* boxes, int count) {
    if (count >= 0 && (size_t)count < boxes->size()) boxes->resize(count);
}

static float area(const Detection& a) { return (a.xmax - a.xmin) * (a.ymax - a.ymin); }

static float intersection(const Detection& a, const Detection& b) {
    const float w = std::min(a.xmax, b.xmax) - std::max(a.xmin, b.xmin);
    const float h = std::min(a.ymax, b.ymax) - std::max(a.ymin, b.ymin);
    return w < 0.f || h < 0.f ? 0.f : w * h;
}

void suppress_overlaps(std::vector<Detection>* boxes, float threshold, size_t most) {
    std::vector<Detection> kept;
    std::vector<float> areas;
    for (const Detection& a : *boxes) {
        if (kept.size() == most) break;
        const float own = area(a);
        bool alone = true;
        for (size_t i = 0; i < kept.size() && alone; i++) {
            const float common = intersection(a, kept[i]);
            alone = !(common > threshold * (own + areas[i] - common));
        }
        if (!alone) continue;
        kept.push_back(a);
        areas.push_back(own);
    }
    boxes->swap(kept);
}

int detections_to_blob(const std::vector<Detection>& boxes, Mat* out, Allocator* allocator) {
    out->release();
    if (boxes.empty()) {
        out->dims = 2, out->w = 6, out->h = 0, out->d = out->c = 1;
        out->elemsize = 4, out->elempack = 1;
        return kOk;
    }
    out->create(6, (int)boxes.size(), 4u, allocator);
    if (out->empty()) return kOutOfMemory;
    float* p = *out;
    for (const Detection& b : boxes) {
        const float row[] = {(float)b.label, b.score, b.xmin, b.ymin, b.xmax, b.ymax};
        p = std::copy(row, row + 6, p);
    }
    return kOk;
}

}  // namespace quoll
