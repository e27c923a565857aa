// What the convolution layers run on: packed weights and the plan for the last shape seen.
#ifndef QUOLL_LAYER_CPU_CONV_CONV_RUNNER_H
#define QUOLL_LAYER_CPU_CONV_CONV_RUNNER_H

#include <memory>
#include <mutex>

#include "layer/conv_reference.h"
#include "layer/cpu/conv/conv_plan.h"

namespace quoll {

// An f32 convolution in any number of groups. create() once, then forward() from any thread.
class ConvRunner {
public:
    ConvRunner();
    // Packs the weights of `s`, which must be f32 and loaded. Logs and returns a negative code.
    int create(const Layer& layer, const ConvolutionFields& s, const Option& opt);
    bool created() const { return kernels_ != nullptr; }
    // bottom: as convolution_geometry accepted it for `g`, any elempack. top is created.
    int forward(const ConvolutionFields& s, const ConvGeometry& g, const Mat& bottom, Mat& top,
                const Option& opt) const;
    // The same for a 1x1 convolution on the 1-D input of is_flat_input.
    int forward_flat(const Mat& bottom, Mat& top, const Option& opt) const;

private:
    std::shared_ptr<const ConvPlan> plan_for(const ConvShape& shape) const;
    int forward_groups(const ConvPlan& plan, const Mat& in, Mat& top, int threads) const;

    const KernelSet* kernels_;
    int group_, in_channels_, out_channels_;  // channels of one group
    int in_pack_, out_pack_;
    size_t weight_floats_, bias_floats_;  // of one group
    Mat weights_;                         // [group][weight_floats_], see gemm_pack_ordered
    Mat bias_;                            // [group][bias_floats_]
    FusedActivation activation_;
    mutable std::mutex plan_lock_;
    mutable std::shared_ptr<const ConvPlan> plan_;
};

}  // namespace quoll

#endif
