#include "zero_size.h"

#include "status.h"

namespace quoll {

// What the shape rule gives with `size` in the place of each 0.
static int shapes_with(const Layer& layer, std::vector<Shape> in, int size,
                       std::vector<Shape>* out) {
    int batch = 1;
    for (Shape& s : in) {
        for (int axis = 0; axis < s.dims; axis++)
            if (s.size(axis) == 0) s.set_size(axis, size);
        if (s.n == 0) s.n = size;
        if (s.n > 1) batch = s.n;
        if (!layer.support_batch) s.n = 1;
    }
    const int status = layer.infer_shapes(in, *out);
    if (status == kOk && !layer.support_batch)
        for (Shape& s : *out) s.n = batch;
    return status;
}

// The value at 0 of the line through two, three and four; false if it is none.
static bool continued(int two, int three, int four, int* zero) {
    const int64_t step = (int64_t)three - two, at_zero = two - 2 * step;
    *zero = (int)at_zero;
    return (int64_t)four - three == step && at_zero >= 0;
}

int shapes_without_values(const Layer& layer, const std::vector<Shape>& in,
                          std::vector<Shape>* out) {
    std::vector<Shape> three, four;
    QUOLL_RETURN_IF_ERROR(shapes_with(layer, in, 2, out));
    QUOLL_RETURN_IF_ERROR(shapes_with(layer, in, 3, &three));
    QUOLL_RETURN_IF_ERROR(shapes_with(layer, in, 4, &four));
    if (three.size() != out->size() || four.size() != out->size())
        return layer.fail("an input has no values");
    for (size_t i = 0; i < out->size(); i++) {
        Shape& s = (*out)[i];
        bool line = s.dims > 0 && three[i].dims == s.dims && four[i].dims == s.dims;
        for (int axis = 0; line && axis < s.dims; axis++) {
            int size = 0;
            line = continued(s.size(axis), three[i].size(axis), four[i].size(axis), &size);
            s.set_size(axis, size);
        }
        line = line && continued(s.n, three[i].n, four[i].n, &s.n);
        if (!line || s.total() != 0) return layer.fail("an input has no values");
    }
    return kOk;
}

}  // namespace quoll
