#include "layer/norm/hardmax.h"

#include "layer/common/axis_lines.h"

namespace quoll {

void Hardmax::params(Hardmax& s, ParamVisitor& v) { declare_axis(v, s.axis, -1); }

int Hardmax::shape(const Hardmax& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    return along_axis_shape(s, s.axis, in, out);
}

int Hardmax::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                     const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    for_each_line<float>(bottoms[0], tops[0], axis,
                         [](const float* from, float* to, int size, size_t step) {
                             int best = 0;
                             for (int i = 1; i < size; i++)
                                 if (from[i * step] > from[best * step]) best = i;
                             for (int i = 0; i < size; i++) to[i * step] = i == best ? 1.f : 0.f;
                         });
    return kOk;
}

QUOLL_DEFINE_LAYER(Hardmax)

}  // namespace quoll
