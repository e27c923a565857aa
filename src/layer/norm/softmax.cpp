#include "layer/norm/softmax.h"

#include <math.h>

#include <algorithm>

#include "layer/common/blocks.h"
#include "layer/common/channels.h"

namespace quoll {

Softmax::Softmax() : axis(0), fixbug0(0) { one_blob_only = support_inplace = true; }

void Softmax::params(Softmax& s, ParamVisitor& v) {
    v(0, "axis", s.axis, 0, "axis, 0: outermost, -1: innermost", between(-4, 3));
    v(1, "fixbug0", s.fixbug0, 0, "1: axis means what it says");
}

void Softmax::weights(Softmax&, WeightVisitor&) {}

int Softmax::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    if (axis == 0 || fixbug0) return kOk;
    return fail(
        "axis (0) is %d without fixbug0 (1): old files counted axes otherwise, convert the "
        "model anew",
        axis);
}

int Softmax::shape(const Softmax& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(channelwise_shape(s, in, out, 0));
    int axis;
    return resolve_axis(s, s.axis, in[0].dims, &axis);
}

static void softmax(float* p, int count, size_t step) {
    float most = p[0];
    for (int i = 1; i < count; i++) most = std::max(most, p[i * step]);
    double sum = 0;
    for (int i = 0; i < count; i++) sum += exp((double)p[i * step] - most);
    for (int i = 0; i < count; i++) p[i * step] = (float)(exp((double)p[i * step] - most) / sum);
}

int Softmax::forward_inplace(Mat& blob, const Option&) const {
    QUOLL_RETURN_IF_ERROR(check_input(*this, blob));
    const int along = axis_of_four(axis < 0 ? axis + blob.dims : axis, blob.dims);
    Axes4 lines = axes_of(blob);
    const int count = lines.size[along];
    lines.size[along] = 1;
    for (int q = 0; q < lines.size[0]; q++)
        for (int z = 0; z < lines.size[1]; z++)
            for (int y = 0; y < lines.size[2]; y++)
                for (int x = 0; x < lines.size[3]; x++)
                    softmax((float*)blob.data + q * lines.step[0] + z * lines.step[1] +
                                y * lines.step[2] + x * lines.step[3],
                            count, lines.step[along]);
    return kOk;
}

QUOLL_DEFINE_LAYER(Softmax)

}  // namespace quoll
