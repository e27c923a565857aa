// What tensor operators that go along one axis share.
#ifndef QUOLL_LAYER_AXIS_LINES_H
#define QUOLL_LAYER_AXIS_LINES_H

#include "layer/common/tensor.h"

namespace quoll {

// The schema line.
inline void declare_axis(ParamVisitor& v, int& axis, int def) {
    v(0, "axis", axis, def, "axis, 0: outermost, -1: innermost", between(-4, 3));
}

// One f32 input with that axis; the output is like it.
inline int along_axis_shape(const Layer& layer, int axis, const std::vector<Shape>& in,
                            std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(expect_inputs(layer, in, 1, 1));
    QUOLL_RETURN_IF_ERROR(expect_dtype(layer, "input", in[0].dtype, DType::f32));
    int resolved;
    QUOLL_RETURN_IF_ERROR(resolve_axis(layer, axis, in[0].dims, &resolved));
    out = in;
    return kOk;
}

// Calls f(from, to, size, step) for each line of values along an axis; in both blobs neighbours are
// `step` values apart.
template <class T, class F>
void for_each_line(const Mat& in, Mat& out, int axis, F f) {
    if (out.empty()) return;
    const AlongAxis along(in, axis < 0 ? axis + in.dims : axis);
    for (size_t o = 0; o < along.outer; o++) {
        const T* from = (const T*)in.data + along.start(o);
        T* to = (T*)out.data + along.start(o);
        for (size_t r = 0; r < along.inner; r++) f(from + r, to + r, along.size, along.step);
    }
}

}  // namespace quoll

#endif
