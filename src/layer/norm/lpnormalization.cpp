#include "layer/norm/lpnormalization.h"

#include <math.h>

#include "layer/common/axis_lines.h"

namespace quoll {

void LpNormalization::params(LpNormalization& s, ParamVisitor& v) {
    declare_axis(v, s.axis, -1);
    v(1, "p", s.p, 2, "the norm, 1 or 2", between(1, 2));
}

int LpNormalization::shape(const LpNormalization& s, const std::vector<Shape>& in,
                           std::vector<Shape>& out) {
    return along_axis_shape(s, s.axis, in, out);
}

int LpNormalization::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                             const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    for_each_line<float>(bottoms[0], tops[0], axis,
                         [&](const float* from, float* to, int size, size_t step) {
                             double sum = 0;
                             for (int i = 0; i < size; i++) {
                                 const double x = from[i * step];
                                 sum += p == 1 ? fabs(x) : x * x;
                             }
                             const double norm = p == 1 ? sum : sqrt(sum);
                             const double factor = norm != 0 ? 1 / norm : 0;
                             for (int i = 0; i < size; i++)
                                 to[i * step] = (float)(from[i * step] * factor);
                         });
    return kOk;
}

QUOLL_DEFINE_LAYER(LpNormalization)

}  // namespace quoll
