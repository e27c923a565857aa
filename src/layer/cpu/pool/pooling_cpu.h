#ifndef QUOLL_LAYER_CPU_POOL_POOLING_CPU_H
#define QUOLL_LAYER_CPU_POOL_POOLING_CPU_H

#include "layer/cpu/packing.h"
#include "layer/cpu/pool/pool.h"
#include "layer/pooling.h"

namespace quoll {

class PoolingCpu : public Pooling {
public:
    PoolingCpu();
    int create_pipeline(const Option& opt) override;
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;

private:
    bool is_max() const { return pooling_type == PoolMethod_MAX; }
    void global(const Mat& in, Mat& top, const Option& opt) const;
    // Windows at any place: sliding and adaptive ones.
    int windows(const Mat& in, Mat& top, const Option& opt) const;

    const KernelSet* kernels_;
};

}  // namespace quoll

#endif
