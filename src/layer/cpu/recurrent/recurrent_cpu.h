// The fast implementation of RNN, LSTM and GRU.
#ifndef QUOLL_LAYER_CPU_RECURRENT_RECURRENT_CPU_H
#define QUOLL_LAYER_CPU_RECURRENT_RECURRENT_CPU_H

#include "layer/cpu/int8/int8_matrix.h"
#include "layer/cpu/recurrent/packed_matrix.h"
#include "layer/cpu/recurrent/recurrent.h"
#include "layer/cpu/recurrent/unit_steps.h"

namespace quoll {

// The products of the input are one matrix product for all steps; those of the state are a vector
// times a matrix in each step. create_pipeline releases the weights. int8 weights run on the int8
// kernels, and each row that they multiply is rounded with its own scale.
template <class T, RecurrentKernel RecurrentKernels::*cell>
class RecurrentCpu : public T {
public:
    int create_pipeline(const Option& opt) override {
        QUOLL_RETURN_IF_ERROR(T::create_pipeline(opt));
        const KernelSet& kernels = host_kernel_set();
        for (int d = 0; d < this->num_directions(); d++) {
            for (int i = 0; i < (this->has_projection() ? 3 : 2); i++) {
                const RecurrentMatrix m = this->matrix((Recurrent::Weight)i, d);
                if (m.weight_int8) {
                    QUOLL_RETURN_IF_ERROR(pack_int8(m, &int8_[d][i]));
                    continue;
                }
                if (i == Recurrent::kHidden && !this->has_projection()) {
                    const int n = this->hidden_size;
                    QUOLL_RETURN_IF_ERROR(units_[d].create(*this, cell, m.weight, n, m.bias, opt));
                    if (units_[d].created()) continue;
                }
                QUOLL_RETURN_IF_ERROR(packed_[d][i].create(*this, m.weight, m.rows, m.columns,
                                                           m.bias, m.first_bias, opt));
            }
        }
        kernel_ = recurrent_kernels_for(kernels, opt).*cell;
        this->weight_xc_data.release();
        this->weight_hc_data.release();
        this->weight_hr_data.release();
        return kOk;
    }

protected:
    int multiply(Recurrent::Weight which, int d, const float* x, int count, float* out,
                 signed char* scratch, const Option& opt) const override {
        if (!kernel_) return T::multiply(which, d, x, count, out, scratch, opt);
        const PackedMatrix& m = packed_[d][which];
        if (int8_[d][which].matrix.created())
            return multiply_int8(int8_[d][which], x, count, out, scratch, opt);
        return m.multiply(*this, x, m.columns(), count, out, opt);
    }
    bool run_whole(int d, const RecurrentSteps& steps, const Option& opt,
                   int* result) const override {
        if (!units_[d].created()) return false;
        *result = units_[d].run(steps, 0, *steps.lens, opt);
        return true;
    }
    void update(const float* x, const float* h, float* hidden, float* cells) const override {
        if (!kernel_) return T::update(x, h, hidden, cells);
        kernel_(x, h, this->hidden_size, hidden, cells);
    }

private:
    struct RoundedMatrix {
        Int8Matrix matrix;  // its results are the sums times the weights' scales
        int rows = 0, columns = 0;
        Mat bias;  // one for each row
    };

    int pack_int8(const RecurrentMatrix& m, RoundedMatrix* packed) const {
        const Mat codes(m.rows * m.columns, const_cast<signed char*>(m.weight_int8), (size_t)1u);
        const Mat scales(m.rows, const_cast<float*>(m.scales), (size_t)4u);
        if (!int8_sums_fit(codes, m.rows))
            return this->fail("%d x %d int8 weights: their sums exceed 32 bits", m.rows, m.columns);
        packed->rows = m.rows, packed->columns = m.columns;
        packed->bias.create(m.rows);
        if (packed->bias.empty()) return kOutOfMemory;
        for (int i = 0; i < m.rows; i++) packed->bias[i] = m.bias_of(i);
        return packed->matrix.create(*this, codes, m.rows, 1.f, scales, Mat(), Activation());
    }

    static int multiply_int8(const RoundedMatrix& m, const float* x, int count, float* out,
                             signed char* scratch, const Option& opt) {
        const Int8Kernels& kernels = *host_kernel_set().int8;
        const Shape size(m.columns, count, DType::s8);
        const Mat rows = count == 1 ? Mat(m.columns, 1, scratch, (size_t)1u)
                                    : Mat(size, 1, opt.workspace_allocator);
        Mat steps(count, (size_t)4u, opt.workspace_allocator), top(m.rows, count, out, (size_t)4u);
        if (rows.empty() || steps.empty()) return kOutOfMemory;
        for (int t = 0; t < count; t++, x += m.columns) {
            float range[2] = {0.f, 0.f};
            kernels.range(x, (size_t)m.columns, range);
            const float most = std::max(-range[0], range[1]);
            const float scale = most == 0.f ? 1.f : 127.f / most;
            kernels.round_s8(x, (size_t)m.columns, scale,
                             (int8_t*)const_cast<signed char*>(rows.row<signed char>(t)));
            steps[t] = 1.f / scale;
        }
        QUOLL_RETURN_IF_ERROR(m.matrix.forward(nullptr, rows, top, opt));
        const float* bias = m.bias;
        for (int t = 0; t < count; t++, out += m.rows)
            for (int i = 0; i < m.rows; i++) out[i] = out[i] * steps[t] + bias[i];
        return kOk;
    }

    RecurrentKernel kernel_ = nullptr;  // null: the reference runs
    UnitSteps units_[2];                // in place of kHidden's matrix
    PackedMatrix packed_[2][Recurrent::kNumWeights];
    RoundedMatrix int8_[2][Recurrent::kNumWeights];
};

}  // namespace quoll

#endif
