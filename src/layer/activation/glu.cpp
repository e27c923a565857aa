#include "layer/activation/glu.h"

#include <math.h>

#include "layer/common/blocks.h"
#include "layer/common/channels.h"

namespace quoll {

GLU::GLU() : axis(0) { one_blob_only = true; }

void GLU::params(GLU& s, ParamVisitor& v) {
    v(0, "axis", s.axis, 0, "axis to halve, 0: outermost, -1: innermost");
}

void GLU::weights(GLU&, WeightVisitor&) {}

int GLU::shape(const GLU& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(channelwise_shape(s, in, out, 0));
    int along = 0;
    if (in[0].dims > 1) QUOLL_RETURN_IF_ERROR(resolve_axis(s, s.axis, in[0].dims, &along));
    if (in[0].size(along) == 1)
        return s.fail("axis %d of %s has no halves", along, shape_text(in[0]).c_str());
    out[0].set_size(along, in[0].size(along) / 2);
    return kOk;
}

int GLU::forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const {
    std::vector<Mat> tops;
    QUOLL_RETURN_IF_ERROR(create_tops(*this, {bottom_blob}, tops, opt));
    top_blob = tops[0];
    int along = 0;
    if (top_blob.dims > 1) QUOLL_RETURN_IF_ERROR(resolve_axis(*this, axis, top_blob.dims, &along));
    along = axis_of_four(along, top_blob.dims);
    const Axes4 from = axes_of(bottom_blob), to = axes_of(top_blob);
    const size_t gate = to.size[along] * from.step[along];
    for (int i = 0; i < to.size[0]; i++)
        for (int j = 0; j < to.size[1]; j++)
            for (int k = 0; k < to.size[2]; k++) {
                const float* x = (const float*)bottom_blob.data + i * from.step[0] +
                                 j * from.step[1] + k * from.step[2];
                float* y = (float*)top_blob.data + i * to.step[0] + j * to.step[1] + k * to.step[2];
                for (int l = 0; l < to.size[3]; l++)
                    y[l] = (float)(x[l] / (1.0 + exp(-(double)x[gate + l])));
            }
    return kOk;
}

QUOLL_DEFINE_LAYER(GLU)

}  // namespace quoll
