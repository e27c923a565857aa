// Common to the YOLO detection layers: the channels of one box of a map.
#ifndef QUOLL_LAYER_YOLO_MAP_H
#define QUOLL_LAYER_YOLO_MAP_H

#include <math.h>

#include "layer/common/detection.h"
#include "layer/common/schema.h"

namespace quoll {

inline float yolo_sigmoid(float x) { return 1.f / (1.f + expf(-x)); }

// Fails unless the input is f32 with num_box * (5 + num_class) channels.
inline int check_yolo_map(const Layer& layer, const Shape& in, int num_box, int num_class) {
    const int64_t channels = (int64_t)num_box * (5 + (int64_t)num_class);
    if (in.dims == 3 && in.c == channels && in.dtype == DType::f32) return kOk;
    return layer.fail("expected f32 with %lld channels (%d boxes of %d classes), got %s of %s",
                      (long long)channels, num_box, num_class, dtype_name(in.dtype),
                      shape_text(in).c_str());
}

// The channels x, y, log w, log h, box score, class scores ... from `first` on.
class YoloMap {
public:
    YoloMap(const Mat& map, int first, int num_class)
        : data_((const float*)map.data + first * map.cstep), map_(map), num_class_(num_class) {}

    float at(int channel, int i, int j) const { return row(channel, i)[j]; }
    const float* row(int channel, int i) const {
        return data_ + channel * map_.cstep + (size_t)i * map_.w;
    }
    // For each position of row i the highest class score and its class, the first among equal ones.
    void best_classes(int i, std::vector<float>* score, std::vector<int>* label) const {
        const int w = map_.w;
        score->assign(row(5, i), row(5, i) + w);
        label->assign(w, 0);
        float* best = score->data();
        int* at = label->data();
        for (int q = 1; q < num_class_; q++) {
            const float* p = row(5 + q, i);
            for (int j = 0; j < w; j++) {
                at[j] = p[j] > best[j] ? q : at[j];
                best[j] = p[j] > best[j] ? p[j] : best[j];
            }
        }
    }
    // The box at a place; w, h: size of the anchor in units of the image.
    Detection detection(int i, int j, float w, float h, float score, int label) const {
        const float x = (j + yolo_sigmoid(at(0, i, j))) / map_.w;
        const float y = (i + yolo_sigmoid(at(1, i, j))) / map_.h;
        const float half_w = expf(at(2, i, j)) * w * 0.5f, half_h = expf(at(3, i, j)) * h * 0.5f;
        // Label 0 is the background.
        return Detection{x - half_w, y - half_h, x + half_w, y + half_h, score, label + 1};
    }

private:
    const float* data_;
    const Mat& map_;
    int num_class_;
};

}  // namespace quoll

#endif
