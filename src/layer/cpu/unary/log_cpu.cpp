#include "layer/elementwise/log.h"

#include "layer/cpu/unary/unary_layer.h"

namespace quoll {

namespace {
class LogCpu : public UnaryLayer<Log> {
    UnaryKernel select(const UnaryKernels& k, float* params) override {
        params[0] = scale, params[1] = shift, params[2] = base == -1.f ? 1.f : 1.f / logf(base);
        return k.log_linear;
    }
};
}  // namespace

Layer* create_Log_fast_layer() { return new LogCpu; }

}  // namespace quoll
