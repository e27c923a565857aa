// 3x3 windows of planar half floats.
#include "layer/cpu/common/pairs.h"
#include "layer/cpu/dwconv/dwconv_layer.h"
#include "runtime/thread_pool.h"

namespace quoll {

// For planar half floats; or null.
DwconvPlanarKernel ConvolutionDepthWiseCpu::planar_kernel(const ConvGeometry& g) const {
    if (!kHasHalfStorage || planar_weight_.empty()) return nullptr;
    const int stride = g.x.stride;
    const auto suits = [&](const WindowAxis& axis) {
        const int64_t over = (int64_t)(axis.out - 1) * stride + 3 - axis.before - axis.in;
        return axis.stride == stride && axis.dilation == 1 && axis.before <= 1 && over <= 1;
    };
    const bool wide = g.x.out >= kDwconvPlanarOutputs && (stride == 1 || g.x.in >= 2 * g.x.out);
    return stride <= 2 && pad_value == 0.f && wide && suits(g.x) && suits(g.y)
               ? host_kernel_set().f16->dwconv->planar[stride - 1]
               : nullptr;
}

int ConvolutionDepthWiseCpu::forward_planar(DwconvPlanarKernel kernel, const Mat& bottom,
                                            const ConvGeometry& g, Mat& top,
                                            const Option& opt) const {
    Mat in, channels;
    QUOLL_RETURN_IF_ERROR(as_f16(bottom, 1, opt, &in));
    in = conv_channels(*this, in);
    QUOLL_RETURN_IF_ERROR(create_conv_top(*this, g, DType::f16, 1, opt, &top, &channels));
    const int threads = threads_for(opt, work_of(g));
    const Bands bands(num_output, g.y.out, threads);
    run_tasks(bands.count(), threads, [&](int64_t task, int) {
        const int q = bands.item(task);
        DwconvPlanar run = {};
        run.in = (const uint16_t*)in.data + q * in.cstep;
        run.in_w = g.x.in, run.in_h = g.y.in;
        run.before_x = g.x.before, run.before_y = g.y.before;
        run.weight = planar_weight_.row<const uint16_t>(q);
        run.out_w = g.x.out;
        run.y_first = bands.begin(task), run.y_last = bands.end(task);
        run.out = (uint16_t*)channels.data + q * channels.cstep + (size_t)run.y_first * g.x.out;
        run.low = activation_.low, run.high = activation_.high;
        kernel(run);
    });
    return kOk;
}

}  // namespace quoll
