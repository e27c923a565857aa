// WindowPool without indices: maxima and averages on the kernels of Pooling, minima and dilated
// maxima tap by tap.
#include <float.h>
#include <math.h>

#include <algorithm>
#include <memory>

#include "layer/common/scratch.h"
#include "layer/cpu/pool/pool_layer.h"
#include "layer/nn/windowpool.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

typedef Pooling::Axis Axis;

class WindowPoolCpu : public WindowPool {
public:
    WindowPoolCpu() { support_packing = true; }
    int create_pipeline(const Option& opt) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;

private:
    bool is_supported(DType dtype) const;
    void pool_taps(const Mat& in, const WindowSizes& windows, const int size[3], Mat& top,
                   const int out_size[3], const Option& opt) const;
    Axis axis_of(const WindowSizes& windows, int axis, int in, int out) const;

    std::unique_ptr<PoolingCpu> pooling_;
};

int WindowPoolCpu::create_pipeline(const Option& opt) {
    QUOLL_RETURN_IF_ERROR(WindowPool::create_pipeline(opt));
    pooling_.reset(new PoolingCpu(windows_.count));
    PoolingCpu& p = *pooling_;
    p.pooling_type = op_type == MAX ? PoolingCpu::PoolMethod_MAX : PoolingCpu::PoolMethod_AVE;
    p.kernel_w = windows_.kernel[2], p.kernel_h = windows_.kernel[1];
    p.stride_w = windows_.stride[2], p.stride_h = windows_.stride[1];
    p.global_pooling = p.adaptive_pooling = 0;
    return p.create_pipeline(opt);
}

static bool is_dilated(const WindowSizes& w) {
    return *std::max_element(w.dilation, w.dilation + 3) > 1;
}

// By windows(), or by pool_taps().
bool WindowPoolCpu::is_supported(DType dtype) const {
    if (tops.size() > 1 || (dtype != DType::f32 && dtype != DType::s8)) return false;
    const bool floats = dtype == DType::f32;
    if (is_dilated(windows_)) return floats && (op_type == MAX || op_type == MIN);
    return op_type == MAX || (floats && (op_type == AVERAGE || op_type == MIN));
}

// Outputs [first, last) of an axis whose tap at `offset` from the window's begin lies inside.
static void outputs_of_tap(int64_t offset, int size, int out, int stride, int* first, int* last) {
    const int64_t low = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
    const int64_t high = size - 1 - offset < 0 ? 0 : (size - 1 - offset) / stride + 1;
    *first = (int)std::min<int64_t>(low, out);
    *last = (int)std::max<int64_t>(*first, std::min<int64_t>(high, out));
}

// out[i * pack + l] = the larger (least) of it and in[i * step * pack + l]; NaN stays.
template <bool max>
static void take(const float* in, int step, int pack, int count, float* out) {
    const auto better = [](float x, float y) { return (max ? x > y : x < y) | (x != x) ? x : y; };
    if (step == 1) {
        for (int i = 0; i < count * pack; i++) out[i] = better(in[i], out[i]);
        return;
    }
    for (int i = 0; i < count; i++, in += (size_t)step * pack, out += pack)
        for (int l = 0; l < pack; l++) out[l] = better(in[l], out[l]);
}

// Maxima or minima tap by tap, of windows whose taps may lie apart.
void WindowPoolCpu::pool_taps(const Mat& in, const WindowSizes& w, const int size[3], Mat& top,
                              const int out_size[3], const Option& opt) const {
    const int pack = in.elempack;
    const bool max = op_type == MAX;
    const size_t row = (size_t)size[2] * pack, out_row = (size_t)out_size[2] * pack;
    const float bound = max ? -INFINITY : INFINITY, none = max ? -FLT_MAX : FLT_MAX;
    const int threads = threads_for(opt, (double)out_row * out_size[1] * out_size[0] * top.c * 9);
    run_tasks((int64_t)top.c * out_size[0] * out_size[1], threads, [&](int64_t task, int) {
        const int y = (int)(task % out_size[1]), z = (int)(task / out_size[1] % out_size[0]);
        const size_t q = (size_t)(task / out_size[1] / out_size[0]);
        float* to =
            (float*)top.data + q * top.cstep * pack + ((size_t)z * out_size[1] + y) * out_row;
        std::fill(to, to + out_row, bound);
        bool any_row = false;
        const auto at = [&](int axis, int out, int tap) {
            return (int64_t)out * w.stride[axis] - w.before[axis] + (int64_t)tap * w.dilation[axis];
        };
        for (int taps = 0; taps < w.kernel[0] * w.kernel[1]; taps++) {
            const int64_t v = at(0, z, taps / w.kernel[1]), u = at(1, y, taps % w.kernel[1]);
            if (v < 0 || v >= size[0] || u < 0 || u >= size[1]) continue;
            any_row = true;
            const float* from =
                (const float*)in.data + q * in.cstep * pack + (v * size[1] + u) * row;
            for (int k = 0; k < w.kernel[2]; k++) {
                int first, last;
                const int64_t offset = at(2, 0, k);
                outputs_of_tap(offset, size[2], out_size[2], w.stride[2], &first, &last);
                const float* values = from + (first * (int64_t)w.stride[2] + offset) * pack;
                (max ? take<true> : take<false>)(values, w.stride[2], pack, last - first,
                                                 to + (size_t)first * pack);
            }
        }
        for (int x = 0; x < out_size[2]; x++) {
            bool any = false;
            for (int k = 0; k < w.kernel[2] && any_row && !any; k++)
                any = at(2, x, k) >= 0 && at(2, x, k) < size[2];
            if (!any) std::fill(to + (size_t)x * pack, to + (size_t)(x + 1) * pack, none);
        }
    });
}

Axis WindowPoolCpu::axis_of(const WindowSizes& windows, int axis, int in, int out) const {
    Axis a = {};
    a.in = in, a.out = out;
    a.kernel = windows.kernel[axis], a.stride = windows.stride[axis];
    a.before = windows.before[axis];
    a.first = a.before, a.last = a.before + in;
    a.counted_first = count_include_pad ? 0 : a.first;
    a.counted_last = count_include_pad ? a.last + windows.after[axis] : a.last;
    return a;
}

void WindowPoolCpu::plan_layouts(const LayerPlan*, const std::vector<BlobLayout>& in,
                                 const Option& opt, std::vector<BlobLayout>* out) const {
    if ((*out)[0].shape.total() > 0 && is_supported(in[0].shape.dtype))
        (*out)[0].elempack = best_elempack(host_kernel_set(), in[0].shape.size(0), opt);
}

int WindowPoolCpu::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                           const Option& opt) const {
    const ShapeList in(bottoms);
    ShapeList out;
    QUOLL_RETURN_IF_ERROR(infer_shapes(*in, *out));
    std::vector<Mat> planar = bottoms;
    const Mat& m = bottoms[0];
    WindowSizes windows;
    int size[3], out_size[3];
    QUOLL_RETURN_IF_ERROR(plan(in[0], &windows, out_size));
    if (in[0].total() == 0 || out[0].total() == 0 || !is_supported(m.dtype)) {
        QUOLL_RETURN_IF_ERROR(all_planar(bottoms, opt, &planar));
        return WindowPool::forward(planar, tops, opt);
    }
    const int pack = best_elempack(host_kernel_set(), in[0].size(0), opt);
    QUOLL_RETURN_IF_ERROR(with_elempack(m, pack, opt, &planar[0]));
    tops.resize(1);
    tops[0].create(out[0], pack, opt.blob_allocator);
    if (tops[0].empty()) return kOutOfMemory;
    for (int i = 0; i < 3; i++)
        size[i] = i < 3 - windows.count ? 1 : in[0].size(i + in[0].dims - 3);
    const Axis x = axis_of(windows, 2, size[2], out_size[2]);
    const Axis y = axis_of(windows, 1, size[1], out_size[1]);
    const Axis z = axis_of(windows, 0, size[0], out_size[0]);
    for (int b = 0; b < m.n; b++) {
        Mat top = pooling_->channels(tops[0].batch(b));
        if (op_type == MIN || is_dilated(windows_)) {
            pool_taps(pooling_->channels(planar[0].batch(b)), windows, size, top, out_size, opt);
            continue;
        }
        QUOLL_RETURN_IF_ERROR(
            pooling_->windows(pooling_->channels(planar[0].batch(b)), x, y, z, top, opt));
    }
    return kOk;
}

}  // namespace

Layer* create_WindowPool_fast_layer() { return new WindowPoolCpu; }

}  // namespace quoll
