#include <algorithm>

#include "layer/cpu/common/packing.h"
#include "layer/cpu/norm/norm.h"
#include "layer/norm/logsoftmax.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

class LogSoftmaxCpu : public LogSoftmax {
public:
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
};

int LogSoftmaxCpu::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                           const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tensors(*this, bottoms, tops, opt));
    Mat& top = tops[0];
    if (top.empty()) return kOk;
    copy_values(bottoms[0], 0, top, 0, value_count(top));
    const AlongAxis along(top, axis < 0 ? axis + top.dims : axis);
    const NormKernels& norm = *host_kernel_set().norm;
    const double work = (double)along.outer * along.size * (double)along.inner * 8;
    run_tasks((int64_t)along.outer, threads_for(opt, work), [&](int64_t o, int) {
        float* data = (float*)top.data + along.start((size_t)o);
        if (along.inner == 1 && along.step == 1)
            norm.log_softmax_row(data, along.size);
        else
            norm.log_softmax_columns(data, along.size, along.step, along.inner);
    });
    return kOk;
}

}  // namespace

Layer* create_LogSoftmax_fast_layer() { return new LogSoftmaxCpu; }

}  // namespace quoll
