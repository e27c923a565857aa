#include "layer/norm/instancenorm.h"

#include "layer/common/affine8.h"
#include "layer/common/channels.h"

namespace quoll {

InstanceNorm::InstanceNorm() : channels(0), eps(0.001f), affine(1) {
    one_blob_only = support_inplace = true;
}

void InstanceNorm::params(InstanceNorm& s, ParamVisitor& v) {
    v(0, "channels", s.channels, 0, "channels of the input, when affine", at_least(0));
    v(1, "eps", s.eps, 0.001f, "added to the variance");
    v(2, "affine", s.affine, 1, "1: gamma and beta are there", between(0, 1));
}

void InstanceNorm::weights(InstanceNorm& s, WeightVisitor& v) {
    v(s.affine != 0, "gamma_data", s.gamma_data, s.channels, WeightKind::kRaw, "[channels]");
    v(s.affine != 0, "beta_data", s.beta_data, s.channels, WeightKind::kRaw, "[channels]");
}

int InstanceNorm::shape(const InstanceNorm& s, const std::vector<Shape>& in,
                        std::vector<Shape>& out) {
    std::vector<Shape> floats = in;
    for (Shape& shape : floats) {
        if (!s.bytes) continue;
        if (shape.dtype != DType::s8) return s.fail("expected s8, got %s", dtype_name(shape.dtype));
        shape.dtype = DType::f32;
    }
    QUOLL_RETURN_IF_ERROR(channelwise_shape(s, floats, out, 0));
    out[0].dtype = in[0].dtype;
    const bool fits = in[0].dims < 3 ? s.channels > 0 : in[0].c == s.channels;
    if (s.affine && !fits)
        return s.fail("expected %d channels, got %s", s.channels, shape_text(in[0]).c_str());
    return kOk;
}

int InstanceNorm::forward_inplace(Mat& blob, const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(check_input(*this, blob));
    const size_t size = (size_t)blob.w * blob.h * blob.d;
    Mat floats;
    if (bytes) {
        floats.create((int)size, (size_t)4u, opt.workspace_allocator);
        if (floats.empty()) return kOutOfMemory;
    }
    for (int q = 0; q < blob.c; q++) {
        signed char* const stored = (signed char*)blob.data + q * blob.cstep;
        float* const p = bytes ? (float*)floats.data : (float*)blob.data + q * blob.cstep;
        for (size_t i = 0; i < size && bytes; i++)
            p[i] = (float)(stored[i] - bytes.zero_point) * bytes.scale;
        normalize_runs(p, 1, size, 0, eps);
        for (size_t i = 0; i < size && affine; i++) p[i] = p[i] * gamma_data[q] + beta_data[q];
        activate_all(p, size, activation);
        for (size_t i = 0; i < size && bytes; i++)
            stored[i] = affine_int8(p[i] / bytes.top_scale, bytes.top_zero_point);
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(InstanceNorm)

}  // namespace quoll
