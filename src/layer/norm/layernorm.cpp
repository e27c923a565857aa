#include "layer/norm/layernorm.h"

#include "layer/common/channels.h"

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

int LayerNorm::shape(const LayerNorm& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    return normalized_shape(s, s.affine, s.affine_size, in, out);
}

int LayerNorm::forward_inplace(Mat& blob, const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(check_input(*this, blob));
    const size_t run = normalized_run(blob.logical_shape(), affine_size);
    const size_t size = (size_t)blob.w * blob.h * blob.d;
    if (run > size)
        return as_one_row(blob, opt, [&](Mat& row) { return forward_inplace(row, opt); });
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
