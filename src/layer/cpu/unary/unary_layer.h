// The fast implementation of operators that map each f32 value by a unary kernel, those of f16 and
// bf16 blobs in between too; other dtypes are left to the reference. In <op>_cpu.cpp:
//
//   class SigmoidCpu : public UnaryLayer<Sigmoid> {
//       UnaryKernel select(const UnaryKernels& k, float*) override { return k.sigmoid; }
//   };
//   Layer* create_Sigmoid_fast_layer() { return new SigmoidCpu; }
#ifndef QUOLL_LAYER_CPU_UNARY_UNARY_LAYER_H
#define QUOLL_LAYER_CPU_UNARY_UNARY_LAYER_H

#include "layer/common/elementwise.h"
#include "layer/cpu/common/packing.h"
#include "layer/cpu/unary/unary.h"

namespace quoll {

// out = kernel(in) for f32 blobs, or blobs of one storage type, of the same shape and elempack; out
// may be in.
void run_unary(UnaryKernel kernel, const float* params, const Mat& in, Mat& out, const Option& opt);

template <class T>
class UnaryLayer : public T {
public:
    int create_pipeline(const Option& opt) override {
        QUOLL_RETURN_IF_ERROR(T::create_pipeline(opt));
        kernel_ = select(*host_kernel_set().unary, params_);
        this->support_fp16_storage = this->support_bf16_storage = kernel_ != nullptr;
        return kOk;
    }
    unsigned traits() const override { return T::traits() | kCreatesOutput; }
    int forward(const Mat& in, Mat& out, const Option& opt) const override {
        if (!kernel_ || !accepts_float(*this, in.dtype)) return T::forward(in, out, opt);
        out.create_like(in, opt.blob_allocator);
        if (out.empty()) return kOutOfMemory;
        run_unary(kernel_, params_, in, out, opt);
        return kOk;
    }
    int forward_inplace(Mat& blob, const Option& opt) const override {
        if (!kernel_ || !accepts_float(*this, blob.dtype)) return T::forward_inplace(blob, opt);
        run_unary(kernel_, params_, blob, blob, opt);
        return kOk;
    }

protected:
    // The kernel and its parameters (at most 3); null: the reference has to run.
    virtual UnaryKernel select(const UnaryKernels& k, float* params) = 0;

private:
    UnaryKernel kernel_ = nullptr;
    float params_[3] = {};
};

}  // namespace quoll

#endif
