// The fast implementation of RNN, LSTM and GRU.
#ifndef QUOLL_LAYER_CPU_RECURRENT_RECURRENT_CPU_H
#define QUOLL_LAYER_CPU_RECURRENT_RECURRENT_CPU_H

#include "layer/cpu/recurrent/packed_matrix.h"
#include "layer/cpu/recurrent/recurrent.h"

namespace quoll {

// The input's products for all steps are one matrix product, the state's a vector times a matrix a
// step; create_pipeline lets the f32 weights go. int8 weights run on the reference.
template <class T, RecurrentKernel RecurrentKernels::*cell>
class RecurrentCpu : public T {
public:
    int create_pipeline(const Option& opt) override {
        QUOLL_RETURN_IF_ERROR(T::create_pipeline(opt));
        if (this->int8_scale_term) return kOk;
        const KernelSet& kernels = host_kernel_set();
        for (int d = 0; d < this->num_directions(); d++) {
            for (int i = 0; i < (this->has_projection() ? 3 : 2); i++) {
                const RecurrentMatrix m = this->matrix((Recurrent::Weight)i, d);
                if (packed_[d][i].create(kernels, m.weight, m.rows, m.columns, m.bias,
                                         m.first_bias) == kOk)
                    continue;
                this->fail("out of memory for %d x %d weights", m.rows, m.columns);
                return kOutOfMemory;
            }
        }
        kernel_ = kernels.recurrent->*cell;
        this->weight_xc_data.release();
        this->weight_hc_data.release();
        this->weight_hr_data.release();
        return kOk;
    }

protected:
    void multiply(Recurrent::Weight which, int d, const float* x, int count, float* out,
                  signed char* scratch, const Option& opt) const override {
        if (!kernel_) return T::multiply(which, d, x, count, out, scratch, opt);
        const PackedMatrix& m = packed_[d][which];
        m.multiply(x, m.columns(), count, out, m.rows(), opt);
    }
    void update(const float* x, const float* h, float* hidden, float* cells) const override {
        if (!kernel_) return T::update(x, h, hidden, cells);
        kernel_(x, h, this->hidden_size, hidden, cells);
    }

private:
    RecurrentKernel kernel_ = nullptr;  // null: the reference runs
    PackedMatrix packed_[2][Recurrent::kNumWeights];
};

}  // namespace quoll

#endif
