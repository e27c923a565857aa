// The fast implementation of OnnxLSTM, OnnxGRU and OnnxRNN.
#ifndef QUOLL_LAYER_CPU_RECURRENT_ONNXRECURRENT_CPU_H
#define QUOLL_LAYER_CPU_RECURRENT_ONNXRECURRENT_CPU_H

#include "layer/common/onnxrecurrent.h"
#include "layer/cpu/int8/int8_matrix.h"
#include "layer/cpu/recurrent/packed_matrix.h"
#include "layer/cpu/recurrent/recurrent.h"
#include "layer/cpu/recurrent/unit_steps.h"
#include "runtime/thread_pool.h"

namespace quoll {

// Calls run(context, d, own) for directions 0 and 1 of `work` multiply-adds each, side by side
// where that is faster; own: opt with the threads of each.
void run_both_directions(double work, void (*run)(const void*, int, const Option&),
                         const void* context, const Option& opt);

// The products run on the gemm kernels: of the input for all steps and sequences at once, of the
// state for all sequences of a step. create_pipeline lets the weights go. What a step makes of the
// gates runs on `cell`, or for a GRU that resets the state before its product on `reset` and
// `last`; with other activations than ONNX's own, clip or peepholes it stays scalar, and so do
// products of dynamic weights. int8 weights run on the int8 kernels, which round what they
// multiply.
template <class T, RecurrentKernel RecurrentKernels::*cell,
          RecurrentKernel RecurrentKernels::*reset_kernel = cell,
          RecurrentKernel RecurrentKernels::*last_kernel = cell>
class OnnxRecurrentCpu : public T {
public:
    int create_pipeline(const Option& opt) override {
        QUOLL_RETURN_IF_ERROR(T::create_pipeline(opt));
        const KernelSet& kernels = host_kernel_set();
        if (this->is_plain()) kernels_ = &recurrent_kernels_for(kernels, opt);
        if (this->dynamic_weight) return kOk;
        const bool is_whole =
            kernels_ && !this->round_inputs && !this->int8_scale_term && !this->splits_last_gate();
        for (int d = 0; d < this->num_directions(); d++) {
            if (is_whole) QUOLL_RETURN_IF_ERROR(pack_units(d, opt));
            for (int i = 0; i < T::kNumProducts; i++) {
                typename T::Matrix& m = this->fixed_[d].product[i];
                if (this->int8_scale_term) {
                    QUOLL_RETURN_IF_ERROR(pack_int8(m, &int8_[d][i]));
                    continue;
                }
                if (m.rows > 0 && !(i == T::kHidden && units_[d].created()))
                    QUOLL_RETURN_IF_ERROR(
                        packed_[d][i].create(*this, m.weight, m.rows, m.columns, m.bias, 0, opt));
                m.weight = nullptr;
            }
        }
        this->weight_data.release();
        this->recurrent_data.release();
        return kOk;
    }

protected:
    int multiply(const typename T::Weights& w, typename T::Product which, int d, const float* x,
                 size_t x_row, int count, float* out, const Option& opt) const override {
        if (this->dynamic_weight) return T::multiply(w, which, d, x, x_row, count, out, opt);
        if (this->int8_scale_term) {
            const int rows = w.product[which].rows;
            const Mat from(w.product[which].columns, count, const_cast<float*>(x), (size_t)4u);
            Mat to(rows, count, out, (size_t)4u);
            return int8_[d][which].forward_ranged(nullptr, from, to, opt);
        }
        return packed_[d][which].multiply(*this, x, x_row, count, out, opt);
    }
    bool run_whole(int d, const RecurrentSteps& steps, int first, int end, const Option& opt,
                   int* result) const override {
        if (!units_[d].created()) return false;
        *result = units_[d].run(steps, first, end, opt);
        return true;
    }
    bool rounds_rows() const override { return this->int8_scale_term != 0; }
    // The rows of the gates that an item reads come from the caches of all threads.
    void for_each_item(int count, typename T::ItemRun run, const void* context,
                       const Option& opt) const override {
        const double work = 16. * count * this->gates_ * this->hidden_size;
        run_tasks(count, threads_for(opt, work), [&](int64_t i, int) { run(context, (int)i); });
    }

    void for_both_directions(double work, typename T::DirectionRun run, const void* context,
                             const Option& opt) const override {
        run_both_directions(work, run, context, opt);
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
    int pack_units(int d, const Option& opt) {
        const typename T::Matrix& m = this->fixed_[d].product[T::kHidden];
        const int n = this->hidden_size;
        const float* const last_bias = m.bias ? m.bias + m.rows - n : nullptr;
        return units_[d].create(*this, cell, m.weight, n, last_bias, opt);
    }
    int pack_int8(const typename T::Matrix& m, Int8Matrix* packed) const {
        if (m.rows == 0) return kOk;
        const Mat codes(m.rows * m.columns, const_cast<signed char*>(m.codes), (size_t)1u);
        const Mat scales(m.rows, const_cast<float*>(m.scales), (size_t)4u);
        const Mat bias(m.bias ? m.rows : 0, const_cast<float*>(m.bias), (size_t)4u);
        if (!int8_sums_fit(codes, m.rows, true))
            return this->fail("%d x %d int8 weights: their sums exceed 32 bits", m.rows, m.columns);
        return packed->create(*this, codes, m.rows, 1.f, scales, m.bias ? bias : Mat(),
                              Activation());
    }

    const RecurrentKernels* kernels_ = nullptr;  // null: the reference's scalar steps
    PackedMatrix packed_[2][T::kNumProducts];
    UnitSteps units_[2];  // in place of kHidden's matrix
    Int8Matrix int8_[2][T::kNumProducts];
};

}  // namespace quoll

#endif
