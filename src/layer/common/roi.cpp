#include "layer/common/roi.h"

namespace quoll {

void roi_params(RoiFields& s, ParamVisitor& v, int pooled, float spatial_scale) {
    v(0, "pooled_width", s.pooled_width, pooled, "bins along w", at_least(1));
    v(1, "pooled_height", s.pooled_height, pooled, "bins along h", at_least(1));
    v(2, "spatial_scale", s.spatial_scale, spatial_scale, "size of the map over that of the image");
}

int roi_shape(const Layer& layer, const RoiFields& s, int channels, const std::vector<Shape>& in,
              std::vector<Shape>& out) {
    if (in.size() != 2) return layer.fail("expected a map and a region, got %zu", in.size());
    for (const Shape& shape : in)
        if (shape.dtype != DType::f32 || shape.dims < 1 || shape.dims > 3)
            return layer.fail("expected f32 of at most 3 axes, got %s of %s",
                              dtype_name(shape.dtype), shape_text(shape).c_str());
    if ((int64_t)in[1].w * in[1].h < 4)
        return layer.fail("region: expected 4 values, got %s", shape_text(in[1]).c_str());
    out.assign(1, Shape(s.pooled_width, s.pooled_height, channels));
    out[0].n = in[0].n;
    return kOk;
}

static int index_within(float at, int size) {
    return at > 0.f ? at < (float)size ? (int)at : size : 0;
}

RoiBin::RoiBin(float begin, float end, int size)
    : begin(index_within(begin, size)), end(index_within(end, size)) {}

}  // namespace quoll
