// The fast implementation of OnnxLSTM, OnnxGRU and OnnxRNN.
#ifndef QUOLL_LAYER_CPU_RECURRENT_ONNXRECURRENT_CPU_H
#define QUOLL_LAYER_CPU_RECURRENT_ONNXRECURRENT_CPU_H

#include "layer/common/onnxrecurrent.h"
#include "layer/cpu/recurrent/packed_matrix.h"
#include "layer/cpu/recurrent/recurrent.h"

namespace quoll {

// The products run on the gemm kernels: of the input for all steps and sequences at once, of the
// state for all sequences of a step. create_pipeline lets the weights go. What a step makes of the
// gates runs on `cell`, or for a GRU that resets the state before its product on `reset` and
// `last`; with other activations than ONNX's own, clip or peepholes it stays scalar, and so do
// products of dynamic weights.
template <class T, RecurrentKernel RecurrentKernels::*cell,
          RecurrentKernel RecurrentKernels::*reset_kernel = cell,
          RecurrentKernel RecurrentKernels::*last_kernel = cell>
class OnnxRecurrentCpu : public T {
public:
    int create_pipeline(const Option& opt) override {
        QUOLL_RETURN_IF_ERROR(T::create_pipeline(opt));
        const KernelSet& kernels = host_kernel_set();
        if (this->is_plain()) kernels_ = kernels.recurrent;
        if (this->dynamic_weight) return kOk;
        for (int d = 0; d < this->num_directions(); d++) {
            for (int i = 0; i < T::kNumProducts; i++) {
                typename T::Matrix& m = this->fixed_[d].product[i];
                if (m.rows > 0 &&
                    packed_[d][i].create(kernels, m.weight, m.rows, m.columns, m.bias, 0) != kOk) {
                    this->fail("out of memory for %d x %d weights", m.rows, m.columns);
                    return kOutOfMemory;
                }
                m.weight = nullptr;
            }
        }
        this->weight_data.release();
        this->recurrent_data.release();
        return kOk;
    }

protected:
    void multiply(const typename T::Weights& w, typename T::Product which, int d, const float* x,
                  size_t x_row, int count, float* out, const Option& opt) const override {
        if (this->dynamic_weight) return T::multiply(w, which, d, x, x_row, count, out, opt);
        const PackedMatrix& m = packed_[d][which];
        m.multiply(x, x_row, count, out, m.rows(), opt);
    }

    void reset(const typename T::Step& s, float* state) const override {
        if (!kernels_) return T::reset(s, state);
        (kernels_->*reset_kernel)(s.x, s.h, this->hidden_size, state, nullptr);
    }
    void update(const typename T::Step& s, const float* last) const override {
        if (!kernels_) return T::update(s, last);
        const bool split = this->splits_last_gate();
        (kernels_->*(split ? last_kernel : cell))(s.x, s.h, this->hidden_size, s.hidden,
                                                  split ? const_cast<float*>(last) : s.cell);
    }

private:
    const RecurrentKernels* kernels_ = nullptr;  // null: the reference's scalar steps
    PackedMatrix packed_[2][T::kNumProducts];
};

}  // namespace quoll

#endif
