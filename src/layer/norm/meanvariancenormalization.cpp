#include "layer/norm/meanvariancenormalization.h"

#include <math.h>

#include "layer/common/axis_lines.h"

namespace quoll {

void MeanVarianceNormalization::params(MeanVarianceNormalization& s, ParamVisitor& v) {
    v.ints(0, "axes", s.axes, "axes to average over, 0: outermost, -1: innermost; none: all",
           between(-4, 3));
}

int MeanVarianceNormalization::shape(const MeanVarianceNormalization& s,
                                     const std::vector<Shape>& in, std::vector<Shape>& out) {
    for (int axis : ints_of_param(s.axes))
        QUOLL_RETURN_IF_ERROR(along_axis_shape(s, axis, in, out));
    return along_axis_shape(s, 0, in, out);
}

int MeanVarianceNormalization::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                                       const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    const Mat& m = bottoms[0];
    // The axes that are not averaged over, and those that are, each as four.
    const Axes4 axes4 = axes_of(m);
    int kept[4], averaged[4];
    for (int i = 0; i < 4; i++) kept[i] = axes.empty() ? 1 : axes4.size[i];
    for (int axis : ints_of_param(axes)) kept[axis_of_four((axis + m.dims) % m.dims, m.dims)] = 1;
    for (int i = 0; i < 4; i++) averaged[i] = kept[i] == axes4.size[i] ? 1 : axes4.size[i];
    const double count = (double)averaged[0] * averaged[1] * averaged[2] * averaged[3];
    Steps steps[] = {steps_of(m)};
    const ptrdiff_t step = steps[0].step[3];
    const float* const in = m;
    float* const out = tops[0];
    const auto over_group = [&](ptrdiff_t first, auto f) {
        for_each_row(averaged, steps, [&](const ptrdiff_t* at) {
            for (int i = 0; i < averaged[3]; i++) f(first + at[0] + i * step);
        });
    };
    for_each_row(kept, steps, [&](const ptrdiff_t* row) {
        for (int x = 0; x < kept[3]; x++) {
            const ptrdiff_t first = row[0] + x * step;
            double sum = 0, squares = 0;
            over_group(first, [&](ptrdiff_t i) { sum += in[i]; });
            const double mean = sum / count;
            over_group(first, [&](ptrdiff_t i) { squares += (in[i] - mean) * (in[i] - mean); });
            const double factor = 1 / (sqrt(squares / count) + 1e-9);
            over_group(first, [&](ptrdiff_t i) { out[i] = (float)((in[i] - mean) * factor); });
        }
    });
    return kOk;
}

QUOLL_DEFINE_LAYER(MeanVarianceNormalization)

}  // namespace quoll
