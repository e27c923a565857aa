#include "layer/norm/logsoftmax.h"

#include <math.h>

#include <algorithm>

#include "layer/common/axis_lines.h"

namespace quoll {

void LogSoftmax::params(LogSoftmax& s, ParamVisitor& v) { declare_axis(v, s.axis, -1); }

int LogSoftmax::shape(const LogSoftmax& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    return along_axis_shape(s, s.axis, in, out);
}

int LogSoftmax::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                        const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    for_each_line<float>(bottoms[0], tops[0], axis,
                         [](const float* from, float* to, int size, size_t step) {
                             if (size == 0) return;
                             float most = from[0];
                             double sum = 0;
                             for (int i = 1; i < size; i++) most = std::max(most, from[i * step]);
                             for (int i = 0; i < size; i++)
                                 sum += exp((double)from[i * step] - most);
                             const double log_sum = most + log(sum);
                             for (int i = 0; i < size; i++)
                                 to[i * step] = (float)(from[i * step] - log_sum);
                         });
    return kOk;
}

QUOLL_DEFINE_LAYER(LogSoftmax)

}  // namespace quoll
