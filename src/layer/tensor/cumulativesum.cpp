#include "layer/tensor/cumulativesum.h"

#include "layer/common/blocks.h"
#include "layer/common/channels.h"

namespace quoll {

CumulativeSum::CumulativeSum() : axis(0) { one_blob_only = support_inplace = true; }

void CumulativeSum::params(CumulativeSum& s, ParamVisitor& v) {
    v(0, "axis", s.axis, 0, "axis, 0: outermost, -1: innermost");
}

void CumulativeSum::weights(CumulativeSum&, WeightVisitor&) {}

int CumulativeSum::shape(const CumulativeSum& s, const std::vector<Shape>& in,
                         std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(channelwise_shape(s, in, out, 0));
    int axis;
    return in[0].dims == 1 ? kOk : resolve_axis(s, s.axis, in[0].dims, &axis);
}

int CumulativeSum::forward_inplace(Mat& blob, const Option&) const {
    QUOLL_RETURN_IF_ERROR(check_input(*this, blob));
    int along = 0;
    if (blob.dims > 1) QUOLL_RETURN_IF_ERROR(resolve_axis(*this, axis, blob.dims, &along));
    along = axis_of_four(along, blob.dims);
    Axes4 first = axes_of(blob);  // where each sum begins
    const int count = first.size[along];
    const size_t step = first.step[along];
    first.size[along] = 1;
    for (int i = 0; i < first.size[0]; i++)
        for (int j = 0; j < first.size[1]; j++)
            for (int k = 0; k < first.size[2]; k++)
                for (int l = 0; l < first.size[3]; l++) {
                    float* p = (float*)blob.data + i * first.step[0] + j * first.step[1] +
                               k * first.step[2] + l;
                    double sum = 0;
                    for (int m = 0; m < count; m++) p[m * step] = (float)(sum += p[m * step]);
                }
    return kOk;
}

QUOLL_DEFINE_LAYER(CumulativeSum)

}  // namespace quoll
