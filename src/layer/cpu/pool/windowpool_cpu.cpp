// WindowPool on the kernels of Pooling: maxima and averages without dilation and indices.
#include <algorithm>
#include <memory>

#include "layer/cpu/pool/pool_layer.h"
#include "layer/scratch.h"
#include "layer/windowpool.h"

namespace quoll {

namespace {

typedef PoolingOperator::Axis Axis;

class WindowPoolCpu : public WindowPool {
public:
    WindowPoolCpu() { support_packing = true; }
    int create_pipeline(const Option& opt) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;

private:
    bool takes(const Mat& m, const WindowSizes& windows) const;
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

bool WindowPoolCpu::takes(const Mat& m, const WindowSizes& windows) const {
    const bool plain = *std::max_element(windows.dilation, windows.dilation + 3) == 1;
    const bool known = m.dtype == DType::f32 || (m.dtype == DType::s8 && op_type == MAX);
    return plain && known && tops.size() < 2 && (op_type == MAX || op_type == AVERAGE);
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
    if (in[0].total() == 0 || out[0].total() == 0 || !takes(m, windows)) {
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
        QUOLL_RETURN_IF_ERROR(
            pooling_->windows(pooling_->channels(planar[0].batch(b)), x, y, z, top, opt));
    }
    return kOk;
}

}  // namespace

Layer* create_WindowPool_fast_layer() { return new WindowPoolCpu; }

}  // namespace quoll
