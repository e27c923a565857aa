// What the detection layers share: boxes, their order, non-maximum suppression, and the output.
#ifndef QUOLL_LAYER_DETECTION_H
#define QUOLL_LAYER_DETECTION_H

#include <stdint.h>

#include <vector>

#include "quoll/mat.h"

namespace quoll {

struct Detection {
    float xmin, ymin, xmax, ymax;
    float score;
    int label;
};

// Highest score first; equal scores keep their order. No score may be NaN.
void sort_by_score(std::vector<Detection>* boxes);

// Drops all boxes but the first `count`; negative: none.
void keep_first(std::vector<Detection>* boxes, int count);

// Keeps those of the sorted boxes whose intersection with each box kept before is at most
// `threshold` of their union, and no more than `most`.
void suppress_overlaps(std::vector<Detection>* boxes, float threshold, size_t most = SIZE_MAX);

// A blob with one row per box: label, score, xmin, ymin, xmax, ymax. Without boxes it has 2 axes, w
// 6 and h 0, and no data.
int detections_to_blob(const std::vector<Detection>& boxes, Mat* out, Allocator* allocator);

}  // namespace quoll

#endif
