#include "layer/common/channels.h"

#include <math.h>

#include "layer/common/scratch.h"

namespace quoll {

int channelwise_shape(const Layer& layer, const std::vector<Shape>& in, std::vector<Shape>& out,
                      int channels) {
    if (in.size() != 1) return layer.fail("expected 1 input, got %zu", in.size());
    if (in[0].dims < 1 || in[0].dims > 4 || !accepts_float(layer, in[0].dtype))
        return layer.fail("expected 1 to 4 axes of f32, got %s of %s", shape_text(in[0]).c_str(),
                          dtype_name(in[0].dtype));
    if (channels > 0 && in[0].size(0) != channels)
        return layer.fail("expected %d channels (the outermost axis), got %s", channels,
                          shape_text(in[0]).c_str());
    out = in;
    return kOk;
}

int check_input(const Layer& layer, const Mat& blob) {
    const ShapeList in(blob);
    ShapeList out;
    return layer.infer_shapes(*in, *out);
}

size_t normalized_run(const Shape& shape, int affine_size) {
    const size_t row = shape.w, plane = row * shape.h, channel = plane * shape.d;
    const size_t wanted = affine_size, all = channel * shape.c;
    if (wanted == all && wanted != row) return all;
    if (shape.dims <= 2 || wanted == row) return row;
    return wanted == plane ? plane : channel;
}

int normalized_shape(const Layer& layer, int affine, int affine_size, const std::vector<Shape>& in,
                     std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(channelwise_shape(layer, in, out, 0));
    if (!affine || normalized_run(in[0], affine_size) == (size_t)affine_size) return kOk;
    return layer.fail("affine_size %d does not fit %s", affine_size, shape_text(in[0]).c_str());
}

Mat like_shape(const Mat& values, const Shape& shape, Allocator* allocator) {
    switch (shape.dims) {
        case 1:
            return values.reshape(shape.w, allocator);
        case 2:
            return values.reshape(shape.w, shape.h, allocator);
        case 3:
            return values.reshape(shape.w, shape.h, shape.c, allocator);
        default:
            return values.reshape(shape.w, shape.h, shape.d, shape.c, allocator);
    }
}

void normalize_runs(float* data, int runs, size_t size, size_t step, float eps) {
    const double count = (double)runs * (double)size;
    double sum = 0, squares = 0;
    for (int r = 0; r < runs; r++)
        for (size_t i = 0; i < size; i++) sum += data[r * step + i];
    const double mean = sum / count;
    for (int r = 0; r < runs; r++) {
        for (size_t i = 0; i < size; i++) {
            const double centred = data[r * step + i] - mean;
            squares += centred * centred;
        }
    }
    const double factor = 1.0 / sqrt(squares / count + eps);
    for (int r = 0; r < runs; r++)
        for (size_t i = 0; i < size; i++)
            data[r * step + i] = (float)((data[r * step + i] - mean) * factor);
}

}  // namespace quoll
