#ifndef QUOLL_LAYER_CPU_POOL_POOL_LAYER_H
#define QUOLL_LAYER_CPU_POOL_POOL_LAYER_H

#include "layer/cpu/common/packing.h"
#include "layer/cpu/pool/pool.h"
#include "layer/nn/pooling.h"

namespace quoll {

// Pooling of any axes on channel blocks. With depth, the slices under a window are first joined
// into one, on which the 2-D windows run.
class PoolingCpu : public Pooling {
public:
    explicit PoolingCpu(int axes);
    int create_pipeline(const Option& opt) override;
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;
    // Computes windows at any places, sliding or adaptive, for blobs with channels in c and the
    // elempack of top: f32, a storage type or, for maxima, s8.
    int windows(const Mat& in, const Axis& x, const Axis& y, const Axis& z, Mat& top,
                const Option& opt) const;
    unsigned traits() const override { return Pooling::traits() | kCreatesOutput; }

private:
    // Whether blobs of half floats of this shape are pooled as pairs (common/pairs.h), for which
    // there are kernels.
    bool takes_pairs(const Shape& in) const;
    int out_pack(const Shape& in, const Option& opt) const;
    int pool(const KernelSet& kernels, const Shape& shape, const Mat& in, Mat& top,
             const Option& opt) const;
    int global(const KernelSet& kernels, const Mat& in, Mat& top, const Option& opt) const;
    int windows(const KernelSet& kernels, const Mat& in, const Axis& x, const Axis& y,
                const Axis& z, Mat& top, const Option& opt) const;
    int windows_s8(const Mat& in, const Axis& x, const Axis& y, const Axis& z, Mat& top,
                   const Option& opt) const;
    static bool are_side_by_side(const Axis& x, const Axis& y, const Mat& in);
    int windows_of_planes(const KernelSet& kernels, const Mat& in, const Axis& ax, const Axis& ay,
                          Mat& top, int threads, const Option& opt) const;
    // Maxima of f16 and bf16 blobs over windows of one or two axes.
    int max_of_stored(const Mat& in, const Axis& ax, const Axis& ay, Mat& top, int threads,
                      const Option& opt) const;

    const KernelSet* kernels_;
    const KernelSet* f16_;  // for pairs, or null
};

}  // namespace quoll

#endif
