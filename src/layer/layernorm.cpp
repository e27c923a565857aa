#include "layernorm.h"

#include "channels.h"

namespace quoll {

LayerNorm::LayerNorm() : affine_size(0), eps(0.001f), affine(1) {
    one_blob_only = support_inplace = true;
}

void LayerNorm::params(LayerNorm& s, ParamVisitor& v) {
    v(0, "affine_size", s.affine_size, 0, "values that are normalised together", at_least(0));
    v(1, "eps", s.eps, 0.001f, "added to the variance");
    v(2, "affine", s.affine, 1, "1: gamma and beta are there", between(0, 1));
}

void LayerNorm::weights(LayerNorm& s, WeightVisitor& v) {
    v(s.affine != 0, "gamma_data", s.gamma_data, s.affine_size, WeightKind::kRaw, "[affine_size]");
    v(s.affine != 0, "beta_data", s.beta_data, s.affine_size, WeightKind::kRaw, "[affine_size]");
}

size_t LayerNorm::run_length(const Shape& shape) const {
    const size_t row = shape.w, plane = row * shape.h;
    if (shape.dims <= 2 || (size_t)affine_size == row) return row;
    return (size_t)affine_size == plane ? plane : plane * shape.d;
}

int LayerNorm::shape(const LayerNorm& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    QUOLL_RETURN_IF_ERROR(channelwise_shape(s, in, out, 0));
    if (!s.affine || s.run_length(in[0]) == (size_t)s.affine_size) return kOk;
    return s.fail("affine_size %d does not fit %s", s.affine_size, shape_text(in[0]).c_str());
}

int LayerNorm::forward_inplace(Mat& blob, const Option&) const {
    QUOLL_RETURN_IF_ERROR(check_input(*this, blob));
    const size_t run = run_length(blob.logical_shape()), size = (size_t)blob.w * blob.h * blob.d;
    for (int q = 0; q < blob.c; q++) {
        float* channel = (float*)blob.data + q * blob.cstep;
        for (float* p = channel; p < channel + size; p += run) {
            normalize_runs(p, 1, run, 0, eps);
            for (size_t i = 0; i < run && affine; i++) p[i] = p[i] * gamma_data[i] + beta_data[i];
        }
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(LayerNorm)

}  // namespace quoll
