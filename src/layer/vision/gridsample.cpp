#include "layer/vision/gridsample.h"

#include <math.h>

#include <algorithm>

namespace quoll {

GridSample::GridSample() : sample_type(1), padding_mode(1), align_corner(0), permute_fusion(0) {}

void GridSample::params(GridSample& s, ParamVisitor& v) {
    v(0, "sample_type", s.sample_type, 1, "1 bilinear, 2 nearest, 3 bicubic", between(1, 3));
    v(1, "padding_mode", s.padding_mode, 1, "1 zeros, 2 border, 3 reflection", between(1, 3));
    v(2, "align_corner", s.align_corner, 0, "1: -1 and 1 are centres of pixels, 0: edges");
    v(3, "permute_fusion", s.permute_fusion, 0, "1: coordinates are the channels of the grid");
    v(4, "exact", s.exact, 0, "1: ties to even; 0: up, as in ncnn", between(0, 1));
}

void GridSample::weights(GridSample&, WeightVisitor&) {}

void GridSample::take_fields(const GridSample& other) {
    sample_type = other.sample_type, padding_mode = other.padding_mode;
    align_corner = other.align_corner, permute_fusion = other.permute_fusion;
    exact = other.exact, around = other.around;
}

// A blob of four axes as items of three.
static Shape items_of(Shape s) {
    if (s.dims == 4 && s.n == 1) s.dims = 3, s.n = s.c, s.c = s.d, s.d = 1;
    return s;
}

int GridSample::shape(const GridSample& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    if (in.size() != 2) return s.fail("expected 2 inputs, got %zu", in.size());
    const Shape &image = in[0], grid = s.around.grid_items ? items_of(in[1]) : in[1];
    if ((image.dims != 3 && (image.dims != 4 || s.around.joins_items)) || grid.dims != image.dims ||
        (image.n != grid.n && image.n != 1 && grid.n != 1) || !accepts_float(s, image.dtype) ||
        grid.dtype != image.dtype)
        return s.fail("expected image and grid of 3 or of 4 axes of f32, got %s and %s",
                      shape_text(image).c_str(), shape_text(grid).c_str());
    const int axes = image.dims - 1;
    if ((s.permute_fusion ? grid.c : grid.w) != axes)
        return s.fail("expected %d coordinates a point, got the grid %s", axes,
                      shape_text(grid).c_str());
    if (axes == 3 && s.sample_type == kBicubic)
        return s.fail("bicubic sampling of 4 axes is not defined");
    out.assign(1, image);
    out[0].n = std::max(image.n, grid.n);
    out[0].w = s.permute_fusion ? grid.w : grid.h;
    if (axes == 2) out[0].h = s.permute_fusion ? grid.h : grid.c;
    if (axes == 3) out[0].h = s.permute_fusion ? grid.h : grid.d;
    if (axes == 3) out[0].d = s.permute_fusion ? grid.d : grid.c;
    if (s.around.joins_items)
        out[0].dims = 4, out[0].d = out[0].c, out[0].c = out[0].n, out[0].n = 1;
    return kOk;
}

namespace {

// How coordinates of one axis of the image are computed: in float throughout, so that nearest
// sampling resolves ties as in ncnn.
struct AxisRule {
    int size, padding_mode, align_corner, exact;

    // NaN is the edge, as in ONNX Runtime: where networks make it (a map of one pixel), one such
    // point would spoil all that follows.
    float from_grid(float x) const {
        if (isnan(x)) x = -1.f;
        return align_corner ? (x + 1) / 2.f * (size - 1) : ((x + 1) * size - 1) / 2.f;
    }
    // NaN (infinity reflected) becomes the first pixel, as in ncnn, PyTorch and ONNX Runtime.
    float clamp(float x) const { return x > 0.f ? std::min((float)(size - 1), x) : 0.f; }
    // Again and again, as in PyTorch and ONNX. ncnn reflects once, and reads beside the image where
    // points are further out.
    static float reflect(float x, int high) {
        if (high == 0) return 0.f;
        const float at = fmodf(fabsf(x), 2.f * high);
        return at > high ? 2.f * high - at : at;
    }
    float pad(float x) const {
        if (padding_mode == GridSample::kBorder) return clamp(x);
        if (padding_mode != GridSample::kReflection) return x;
        return clamp(align_corner ? reflect(x, size - 1) : reflect(x + 0.5f, size) - 0.5f);
    }
    // A whole coordinate as an index; -1 where there is no pixel (NaN too).
    int index(float whole) const { return whole >= 0 && whole < size ? (int)whole : -1; }
};

// Pixels that make up a value along one axis, and their weights.
struct Taps {
    int index[4];
    float weight[4];
    int count;
};

// Keys' cubic convolution with a = -0.75 for a point that is t beyond the second of four pixels.
void cubic_weights(float t, float* weight) {
    const float a = -0.75f;
    const auto near = [a](float x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
    const float far = t + 1;
    weight[0] = ((a * far - 5 * a) * far + 8 * a) * far - 4 * a;
    weight[1] = near(t);
    weight[2] = near(1 - t);
    weight[3] = 1.f - weight[0] - weight[1] - weight[2];
}

Taps taps_of(float grid, const AxisRule& axis, int sample_type) {
    Taps t;
    const float x = axis.from_grid(grid);
    if (sample_type == GridSample::kNearest) {
        t.count = 1;
        const float p = axis.pad(x);
        t.index[0] = axis.index(axis.exact ? nearbyintf(p) : floorf(p + 0.5f));
        t.weight[0] = 1.f;
    } else if (sample_type == GridSample::kBilinear) {
        t.count = 2;
        const float p = axis.pad(x), low = floorf(p);
        t.weight[0] = 1 - (p - low), t.weight[1] = p - low;
        t.index[0] = axis.index(low), t.index[1] = axis.index(low + 1);
    } else {
        t.count = 4;
        const float second = floorf(x);
        cubic_weights(x - second, t.weight);
        for (int i = 0; i < 4; i++) t.index[i] = axis.index(truncf(axis.pad(second - 1 + i)));
    }
    return t;
}

float sample(const float* plane, int w, int h, const Taps& x, const Taps& y, const Taps& z) {
    float sum = 0.f;
    for (int k = 0; k < z.count; k++) {
        float slice = 0.f;
        for (int i = 0; i < y.count; i++) {
            float row = 0.f;
            for (int j = 0; j < x.count; j++) {
                const bool inside = x.index[j] >= 0 && y.index[i] >= 0 && z.index[k] >= 0;
                const size_t at = ((size_t)z.index[k] * h + y.index[i]) * w + x.index[j];
                row += (inside ? plane[at] : 0.f) * x.weight[j];
            }
            slice += row * y.weight[i];
        }
        sum += slice * z.weight[k];
    }
    return sum;
}

}  // namespace

int GridSample::forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                        const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tops(*this, bottom_blobs, top_blobs, opt));
    const Mat &image = bottom_blobs[0], &grid = bottom_blobs[1];
    Mat& top = top_blobs[0];
    const AxisRule across = {image.w, padding_mode, align_corner, exact};
    const AxisRule down = {image.h, padding_mode, align_corner, exact};
    const AxisRule deep = {image.d, padding_mode, align_corner, exact};
    const size_t points = (size_t)top.w * top.h * top.d;
    const int axes = image.dims - 1;
    // Points of one channel of the grid when its rows hold the coordinates.
    const size_t per_channel = (size_t)grid.h * grid.d;
    const Taps flat = {{0}, {1.f}, 1};
    for (size_t i = 0; i < points; i++) {
        float at[3];
        for (int k = 0; k < axes; k++)
            at[k] = ((const float*)grid.data)[permute_fusion ? k * grid.cstep + i
                                                             : i / per_channel * grid.cstep +
                                                                   i % per_channel * axes + k];
        const Taps x = taps_of(at[0], across, sample_type), y = taps_of(at[1], down, sample_type);
        const Taps z = axes == 3 ? taps_of(at[2], deep, sample_type) : flat;
        for (int q = 0; q < image.c; q++)
            ((float*)top.data)[q * top.cstep + i] =
                sample((const float*)image.data + q * image.cstep, image.w, image.h, x, y, z);
    }
    return kOk;
}

QUOLL_DEFINE_LAYER(GridSample)

}  // namespace quoll
