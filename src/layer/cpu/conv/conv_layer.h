#ifndef QUOLL_LAYER_CPU_CONV_CONV_LAYER_H
#define QUOLL_LAYER_CPU_CONV_CONV_LAYER_H

#include "layer/cpu/conv/conv_planes.h"
#include "layer/cpu/conv/conv_runner.h"
#include "layer/cpu/int8/int8_conv.h"
#include "layer/cpu/int8/int8_matrix.h"

namespace quoll {

// How a convolution runs on inputs of one size.
struct ConvolutionPlan : public LayerPlan {
    const char* algorithm() const override { return name; }

    const char* name = "";  // of f32 weights algorithm_name(); of int8 ones Int8Conv::kernels()
    ConvRunPlan f32;
    bool batch = false;  // of all items
    std::shared_ptr<const Int8TilePlan> int8;
};

// f32 convolutions as matrix products; create_pipeline repacks the weights and lets weight_data go.
// int8 ones run on int8 kernels, dynamic weights on the reference.
class ConvolutionCpu : public Convolution {
public:
    typedef ConvolutionCpu Class;
    bool is_a(const void* id) const override {
        return id == class_id<ConvolutionCpu>() || Convolution::is_a(id);
    }
    explicit ConvolutionCpu(int axes);
    int create_pipeline(const Option& opt) override;
    int plan(const std::vector<Shape>& bottoms, const Option& opt,
             std::shared_ptr<const LayerPlan>* plan) const override;
    int forward_planned(const LayerPlan& plan, std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                        bool inplace, const Option& opt) const override;
    int forward(const Mat& bottom_blob, Mat& top_blob, const Option& opt) const override;
    int forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                const Option& opt) const override;
    unsigned traits() const override {
        const bool adds = add_input && (runner_.created() || int8_.created());
        return Convolution::traits() | kCreatesOutput | (adds ? kOverwritesInput : 0) |
               (kHasTileUnits ? kPlansBatch : 0);
    }
    // With add_input: over what is added, if it can be.
    int forward_inplace(std::vector<Mat>& blobs, const Option& opt) const override;
    void plan_layouts(const LayerPlan* plan, const std::vector<BlobLayout>& in, const Option& opt,
                      std::vector<BlobLayout>* out) const override;

    // Of f32 weights; the elempack that inputs are brought to.
    int in_pack() const { return runner_.in_pack(); }
    // For a batch whose input and output lie as these, which need no memory; null where its items
    // run one by one.
    int plan_items(const Mat& in, const Mat& out, const Option& opt,
                   std::shared_ptr<const LayerPlan>* plan) const;

private:
    // Not on the reference, for so many inputs.
    bool is_fast(size_t inputs) const;
    int make_plan(const std::vector<Shape>& bottoms, const Option& opt, ConvolutionPlan* p) const;
    int plan_batch(std::vector<Shape> items, const Option& opt,
                   std::shared_ptr<const LayerPlan>* plan) const;
    int batch_geometry(std::vector<Shape>* items, ConvGeometry* g, Shape* sums) const;
    int forward_batch(const ConvolutionPlan& p, const std::vector<Mat>& bottoms, Mat* top,
                      const Option& opt) const;
    int forward_alone(const ConvolutionPlan& p, const Mat& bottom, Mat* top,
                      const Option& opt) const;
    int forward_with_add(const ConvolutionPlan& p, const Mat& bottom, const Mat& added, Mat* top,
                         const Option& opt) const;
    int forward_int8(const ConvolutionPlan& p, const Mat& bottom, const Mat& added, Mat* top,
                     const Option& opt) const;
    // Not worth the room of their fast forms.
    [[gnu::cold]] int create_int16(const Option& opt);
    [[gnu::cold]] int forward_int16(const Mat& bottom, Mat* top, const Option& opt) const;

    ConvRunner runner_;
    Int8Conv int8_;
    PlaneConv planes_;
    // Of 16-bit inputs: convolutions of the low bytes and of the high ones, which add the former's
    // results. Null where sums might not fit.
    std::unique_ptr<ConvolutionCpu> low_, high_;
};

}  // namespace quoll

#endif
