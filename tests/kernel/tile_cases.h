// Convolutions that the plans on tile units are tried with.
#ifndef QUOLL_TESTS_KERNEL_TILE_CASES_H
#define QUOLL_TESTS_KERNEL_TILE_CASES_H

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "guarded.h"
#include "layer/cpu/gemm/split_plan.h"
#include "quoll/layer.h"
#include "quoll/modelbin.h"
#include "quoll/paramdict.h"

namespace quoll {

inline std::mt19937 g_rng(21);
inline float uniform() { return std::uniform_real_distribution<float>(-1, 1)(g_rng); }
inline int pick(int low, int high) { return low + (int)(g_rng() % (high - low + 1)); }

struct Case {
    int in_w, in_h, in_c, out_c;
    int kernel_w, kernel_h, stride_w, stride_h, dilation_w, dilation_h;
    int left, right, top, bottom;
    int in_pack = 16, out_pack = 16, activation = 0, threads = 1;
    bool residual = false;
};

inline ConvAxis make_axis(int in, int kernel, int stride, int dilation, int before, int after) {
    const int extent = dilation * (kernel - 1) + 1;
    return {in, (in + before + after - extent) / stride + 1, kernel, stride, dilation, before};
}

inline size_t step_of(int w, int h, int pack) { return (size_t)w * h * pack + (pack == 1 ? 3 : 4); }

inline TileShape shape_of(const Case& t) {
    ConvShape s = {};
    s.x = make_axis(t.in_w, t.kernel_w, t.stride_w, t.dilation_w, t.left, t.right);
    s.y = make_axis(t.in_h, t.kernel_h, t.stride_h, t.dilation_h, t.top, t.bottom);
    s.in_channels = t.in_c;
    s.out_channels = t.out_c;
    s.in_pack = t.in_pack;
    s.out_pack = t.out_pack;
    s.in_step = step_of(t.in_w, t.in_h, t.in_pack);
    s.out_step = step_of(s.x.out, s.y.out, t.out_pack);
    return tile_shape(s);
}

inline Activation make_activation(int type) {
    Mat params(2);
    params[0] = type == kActivationClip ? -.5f : type == kActivationHardSwish ? 1 / 6.f : .1f;
    params[1] = .5f;
    return Activation(type, params);
}

inline Case random_case() {
    Case t = {};
    t.kernel_w = pick(1, 5), t.kernel_h = pick(1, 5);
    t.stride_w = pick(1, 3), t.stride_h = pick(1, 3);
    t.dilation_w = pick(1, 3), t.dilation_h = pick(1, 3);
    // A row of the kernel may then be one step.
    const bool few_channels = pick(0, 5) == 0;
    if (few_channels) t.dilation_w = 1;
    t.left = pick(0, 4), t.right = pick(0, 4), t.top = pick(0, 4), t.bottom = pick(0, 4);
    t.in_w = std::max(1, t.dilation_w * (t.kernel_w - 1) + 1 - t.left - t.right) + pick(0, 25);
    t.in_h = std::max(1, t.dilation_h * (t.kernel_h - 1) + 1 - t.top - t.bottom) + pick(0, 12);
    const int packs[] = {1, 4, 8, 16};
    t.in_pack = packs[pick(0, 3)];
    t.out_pack = packs[pick(0, 3)];
    t.in_c = t.in_pack * pick(1, 80 / t.in_pack);
    if (few_channels) t.in_pack = 1, t.in_c = pick(1, 4);
    t.out_c = t.out_pack * pick(1, 80 / t.out_pack);
    t.activation = pick(0, 6);
    t.residual = pick(0, 3) == 0;
    t.threads = pick(1, 3);
    return t;
}

inline std::string text(const Case& t) {
    return "in " + std::to_string(t.in_w) + "x" + std::to_string(t.in_h) + "x" +
           std::to_string(t.in_c) + " kernel " + std::to_string(t.kernel_w) + "x" +
           std::to_string(t.kernel_h) + " stride " + std::to_string(t.stride_w) + "," +
           std::to_string(t.stride_h) + " dilation " + std::to_string(t.dilation_w) + "," +
           std::to_string(t.dilation_h) + " pad " + std::to_string(t.left) + "," +
           std::to_string(t.top) + " to " + std::to_string(t.out_c) + " packs " +
           std::to_string(t.in_pack) + "," + std::to_string(t.out_pack) + " threads " +
           std::to_string(t.threads);
}

template <class C>
void fill(C& values) {
    for (float& v : values) v = uniform();
}

// Blobs of one case; their last value touches an inaccessible page.
struct Blobs {
    TileShape shape;
    size_t out_step;
    Guarded<float> in, weights, bias, out, residual;

    static size_t size(int w, int h, int c, int pack) {
        return (c / pack - 1) * step_of(w, h, pack) + (size_t)w * h * pack;
    }
    explicit Blobs(const Case& t)
        : shape(shape_of(t)),
          out_step(shape.out_block),
          in(size(t.in_w, t.in_h, t.in_c, t.in_pack)),
          weights((size_t)t.out_c * t.in_c * t.kernel_w * t.kernel_h),
          bias(SplitPlan::bias_size(t.out_c)),
          out(size(shape.x.out, shape.y.out, t.out_c, t.out_pack)),
          residual(out.size()) {
        fill(in);
        fill(weights);
        fill(residual);
        for (size_t i = 0; i < bias.size(); i++) bias[i] = i < (size_t)t.out_c ? uniform() : 0.f;
        for (float& x : out) x = 55.f;
    }
    size_t out_at(const Case& t, int x, int y, int c) const {
        return c / t.out_pack * out_step + ((size_t)y * shape.x.out + x) * t.out_pack +
               c % t.out_pack;
    }
};

struct Sum {
    double value, squares;
};

inline Sum convolve(const Case& t, const Blobs& b, int ox, int oy, int oc) {
    Sum sum = {0, 0};
    for (int c = 0; c < t.in_c; c++)
        for (int ky = 0; ky < t.kernel_h; ky++)
            for (int kx = 0; kx < t.kernel_w; kx++) {
                const int x = ox * t.stride_w - t.left + kx * t.dilation_w;
                const int y = oy * t.stride_h - t.top + ky * t.dilation_h;
                if (x < 0 || x >= t.in_w || y < 0 || y >= t.in_h) continue;
                const double p =
                    (double)b.in.data()[c / t.in_pack * b.shape.in_block +
                                        (y * t.in_w + x) * t.in_pack + c % t.in_pack] *
                    b.weights.data()[((oc * t.in_c + c) * t.kernel_h + ky) * t.kernel_w + kx];
                sum.value += p;
                sum.squares += p * p;
            }
    return sum;
}

inline const Case kCases[] = {
    {1, 1, 16, 16, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0},     // one pixel
    {9, 7, 32, 48, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0},     // pointwise, a single-vector panel
    {9, 8, 16, 32, 1, 1, 2, 2, 1, 1, 0, 0, 0, 0},     // pointwise, stride 2
    {6, 5, 48, 16, 1, 1, 1, 1, 1, 1, 1, 1, 2, 0},     // pointwise with padding: bias alone outside
    {17, 15, 32, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},   // the common one
    {14, 14, 64, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},   // tiles of one row each
    {21, 13, 16, 16, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1},   // stride 2
    {7, 7, 160, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},    // small map, several sections
    {3, 2, 16, 16, 5, 5, 1, 1, 1, 1, 2, 2, 2, 2},     // window larger than the input
    {20, 6, 16, 16, 3, 3, 1, 1, 2, 3, 2, 2, 3, 3},    // dilation
    {12, 9, 16, 16, 5, 1, 1, 1, 1, 1, 2, 2, 0, 0},    // row
    {9, 12, 16, 16, 1, 7, 1, 2, 1, 1, 0, 0, 3, 3},    // column
    {10, 10, 16, 16, 2, 2, 2, 2, 1, 1, 0, 1, 0, 1},   // even window, uneven padding
    {5, 5, 16, 16, 3, 3, 3, 3, 2, 2, 6, 6, 6, 6},     // whole windows in the padding
    {28, 1, 16, 16, 3, 1, 1, 1, 1, 1, 1, 1, 0, 0},    // one row
    {40, 40, 128, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},  // several blocks
};

struct DeleteLayer {
    void operator()(Layer* layer) const { delete layer; }
};
typedef std::unique_ptr<Layer, DeleteLayer> LayerPtr;

inline LayerPtr make_layer(const char* type, const std::vector<std::pair<int, int>>& params,
                           const std::vector<Mat>& weights, bool reference, const Option& opt) {
    LayerPtr layer(reference ? create_layer_reference(type) : create_layer(type));
    ParamDict pd;
    for (const auto& p : params) pd.set(p.first, p.second);
    const ModelBinFromMatArray model(weights.data());
    if (layer->load_param(pd) || layer->load_model(model) || layer->create_pipeline(opt))
        layer.reset();
    return layer;
}

inline Mat random_mat(const Shape& shape) {
    Mat m(shape);
    for (int c = 0; c < m.c; c++)
        for (int i = 0; i < m.w * m.h; i++) m.channel(c)[i] = uniform();
    return m;
}

}  // namespace quoll

#endif
