// Common to the operators that pool a region of interest. Input 0 is a feature map of up to 3 axes,
// input 1 holds the region x1, y1, x2, y2 as its first four values, in units of the image that
// spatial_scale turns into those of the map. As in ncnn there is one region per run.
#ifndef QUOLL_LAYER_ROI_H
#define QUOLL_LAYER_ROI_H

#include "layer/common/schema.h"

namespace quoll {

// The parameters that all of them have.
struct RoiFields {
    int pooled_width = 0, pooled_height = 0;
    float spatial_scale = 0.f;
};
void roi_params(RoiFields& s, ParamVisitor& v, int pooled, float spatial_scale);

// Two f32 inputs, enough values in the second; the output is pooled_width x pooled_height x
// channels.
int roi_shape(const Layer& layer, const RoiFields& s, int channels, const std::vector<Shape>& in,
              std::vector<Shape>& out);

// First and last + 1 index of a bin on an axis of `size` values; empty where NaN or outside.
struct RoiBin {
    int begin, end;
    RoiBin(float begin, float end, int size);
};

}  // namespace quoll

#endif
