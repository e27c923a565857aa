#include "layer/cpu/int8/int8_sums.h"

#include "layer/common/int8_rows.h"
#include "layer/cpu/int8/int8_product.h"
#include "runtime/thread_pool.h"

namespace quoll {

int Int8Sums::create(const Layer& layer, const Mat& weights, int outputs) {
    const int count = (int)weights.logical_shape().total();
    if (!int8_sums_fit(weights, outputs)) return kOk;
    inputs_ = count / outputs, outputs_ = outputs;
    Mat ones(1);
    if (ones.empty()) return kOutOfMemory;
    ones[0] = 1.f;
    return matrix_.create(layer, weights, outputs, 1.f, ones, Mat(), Activation());
}

int Int8Sums::forward(const float* rows, size_t row_step, int count, bool one, Mat* scales,
                      Mat* sums, const Option& opt) const {
    Mat rounded(Shape(inputs_, count, DType::s8), 1, opt.workspace_allocator);
    scales->create(count, (size_t)4u, opt.workspace_allocator);
    if (sums->empty()) sums->create(outputs_, count, (size_t)4u, opt.workspace_allocator);
    if (rounded.empty() || scales->empty() || sums->empty()) return kOutOfMemory;
    const int threads = threads_for(opt, (double)count * inputs_);
    if (one) scales->fill(int8_scale(rows, count, row_step, inputs_));
    parallel_for(count, threads, [&](int64_t y) {
        const float* row = rows + (size_t)y * row_step;
        if (!one) (*scales)[(size_t)y] = int8_scale(row, 1, 0, inputs_);
        to_int8(row, inputs_, (*scales)[(size_t)y], rounded.row<signed char>((int)y));
    });
    return matrix_.forward(nullptr, rounded, *sums, opt);
}

}  // namespace quoll
