#include "layer/nn/deformableconv2d.h"

#include <math.h>

namespace quoll {

DeformableConv2D::DeformableConv2D() : ConvFields(2, false) {}

void DeformableConv2D::params(DeformableConv2D& s, ParamVisitor& v) { conv_params(s, v); }

void DeformableConv2D::weights(DeformableConv2D& s, WeightVisitor& v) { conv_weights(s, v); }

int DeformableConv2D::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    return check_conv_params(*this, *this);
}

int DeformableConv2D::load_model(const ModelBin& mb) {
    QUOLL_RETURN_IF_ERROR(load_weights_by_schema(*this, mb));
    return check_weight_dtype(*this, weight_data, false);
}

int DeformableConv2D::geometry(const std::vector<Shape>& in, ConvGeometry* g) const {
    if (in.size() != 2 && in.size() != 3) return fail("expected 2 or 3 inputs, got %zu", in.size());
    QUOLL_RETURN_IF_ERROR(
        conv_geometry(*this, *this, std::vector<Shape>(1, in[0]), false, false, g));
    QUOLL_RETURN_IF_ERROR(convolve_axis(*this, "width", pad_left, pad_right, &g->x));
    QUOLL_RETURN_IF_ERROR(convolve_axis(*this, "height", pad_top, pad_bottom, &g->y));
    g->z.out = 1;
    for (size_t i = 1; i < in.size(); i++) {
        const Shape expected(g->x.out, g->y.out, g->maxk() * (i == 1 ? 2 : 1));
        if (in[i].dims != 3 || in[i].w != expected.w || in[i].h != expected.h ||
            in[i].c != expected.c || in[i].dtype != DType::f32)
            return fail("input %zu, the %s: expected %s of f32, got %s of %s", i,
                        i == 1 ? "offset" : "mask", shape_text(expected).c_str(),
                        shape_text(in[i]).c_str(), dtype_name(in[i].dtype));
    }
    return kOk;
}

int DeformableConv2D::shape(const DeformableConv2D& s, const std::vector<Shape>& in,
                            std::vector<Shape>& out) {
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(s.geometry(in, &g));
    out.assign(1, conv_output_shape(s, g, in[0].dtype));
    out[0].n = in[0].n;
    return kOk;
}

// The four pixels around a point and their weights; a weight is 0 where there is no pixel.
namespace {
struct Around {
    size_t at[4];
    float share[4];

    Around(float x, float y, int w, int h) : at(), share() {
        // Also false for NaN.
        if (!(x > -1.f && y > -1.f && x < (float)w && y < (float)h)) return;
        const int x0 = (int)floorf(x), y0 = (int)floorf(y);
        const float right = x - (float)x0, below = y - (float)y0;
        for (int i = 0; i < 4; i++) {
            const int px = x0 + i % 2, py = y0 + i / 2;
            if (px < 0 || py < 0 || px >= w || py >= h) continue;
            at[i] = (size_t)py * w + px;
            share[i] = (i % 2 ? right : 1.f - right) * (i / 2 ? below : 1.f - below);
        }
    }
};
}  // namespace

void DeformableConv2D::sample(const std::vector<Mat>& bottoms, const ConvGeometry& g, int x, int y,
                              float* values) const {
    const int maxk = g.maxk();
    for (int k = 0; k < maxk; k++) {
        const float dy = bottoms[1].channel(2 * k).row(y)[x];
        const float dx = bottoms[1].channel(2 * k + 1).row(y)[x];
        const float mask = bottoms.size() == 3 ? bottoms[2].channel(k).row(y)[x] : 1.f;
        const Around around((float)g.x.position(x, k % g.x.kernel) + dx,
                            (float)g.y.position(y, k / g.x.kernel) + dy, g.x.in, g.y.in);
        for (int q = 0; q < g.num_input; q++) {
            const float* channel = bottoms[0].channel(q);
            float sum = 0.f;
            for (int i = 0; i < 4; i++)
                if (around.share[i] != 0.f) sum += around.share[i] * channel[around.at[i]];
            values[(size_t)q * maxk + k] = sum * mask;
        }
    }
}

int DeformableConv2D::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                              const Option& opt) const {
    std::vector<Shape> in = shapes_of(bottoms);
    ConvGeometry g;
    QUOLL_RETURN_IF_ERROR(geometry(in, &g));
    QUOLL_RETURN_IF_ERROR(create_tops(*this, bottoms, tops, opt));
    const int terms = weight_data_size / num_output;
    Mat values(terms, 4u, opt.workspace_allocator);
    if (values.empty()) return kOutOfMemory;
    const Activation activation(activation_type, activation_params);
    for (int y = 0; y < g.y.out; y++) {
        for (int x = 0; x < g.x.out; x++) {
            sample(bottoms, g, x, y, values);
            const float* weight = weight_data;
            for (int p = 0; p < num_output; p++) {
                double sum = bias_term ? bias_data[p] : 0.f;
                for (int i = 0; i < terms; i++) sum += (double)values[i] * *weight++;
                tops[0].channel(p).row(y)[x] = activate((float)sum, activation);
            }
        }
    }
    return kOk;
}

int64_t DeformableConv2D::macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const {
    return conv_macs(*this, in, out);
}

QUOLL_DEFINE_LAYER(DeformableConv2D)

}  // namespace quoll
