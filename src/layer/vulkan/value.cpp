#include "layer/vulkan/value.h"

namespace quoll {

Strides Value::strides() const {
    const uint32_t w = shape.w, h = shape.h, d = shape.d, c = shape.c;
    const uint32_t step = channel_step ? channel_step : w * h * d;
    if (layout == Layout::kPlanar) return {1, w, w * h, step, step * c};
    return {pitch, pitch * w, pitch * w * h, 1, pitch * w * h * d};
}

size_t stored_scalars(const Shape& s, Layout layout) {
    const size_t pixels = (size_t)s.w * s.h * s.d * s.n;
    if (layout == Layout::kChannelsLast) return pixels * round4(s.c);
    return (pixels * s.c + 3) / 4 * 4;
}

Rows rows_of(const Value& value) {
    const Shape& s = value.shape;
    if (value.layout == Layout::kChannelsLast) return {plane(s) * s.n, (uint32_t)s.c, value.pitch};
    const uint32_t total = (uint32_t)s.total();
    return {1, total, round4(total)};
}

}  // namespace quoll
