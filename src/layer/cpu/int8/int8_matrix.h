// Rows times a constant int8 matrix, the int8 form of an inner product.
#ifndef QUOLL_LAYER_CPU_INT8_INT8_MATRIX_H
#define QUOLL_LAYER_CPU_INT8_INT8_MATRIX_H

#include <memory>
#include <mutex>

#include "layer.h"
#include "layer/cpu/int8/int8_tiles.h"

namespace quoll {

class Int8Matrix {
public:
    // weights: s8 [outputs][inputs], whose sums int8_sums_fit. bias may be empty. zero: zero point
    // of s8 inputs. Logs for `layer` and returns a negative code.
    int create(const Layer& layer, const Mat& weights, int outputs, float input_scale,
               const Mat& weight_scales, const Mat& bias, const Activation& activation,
               int zero = 0);
    bool created() const { return created_; }
    // rows: f32 or s8 [inputs, h], elempack 1. top: f32, as many rows of `outputs`.
    int forward(const Mat& rows, Mat& top, const Option& opt) const;
    // The same for f32 rows that are rounded with the scale and zero point of their range; the
    // input_scale and zero of create() were 1 and 0.
    int forward_ranged(const Mat& rows, Mat& top, const Option& opt) const;
    // What multiplied in the last run: "amx", or the name of the kernels of int8.h.
    const char* kernels() const;

private:
    int multiply(const Mat& rows, const int32_t* init, const float* scale, Mat& top,
                 const Option& opt) const;
    void lay_out(const Mat& rows, int y, char* to) const;
    std::shared_ptr<const Int8TilePlan> tile_plan(const Mat& rows, int threads) const;
    int run_tiles(const Int8TilePlan& plan, const Mat& rows, const Int8Result& result,
                  const Option& opt) const;
    int run_vectors(const Mat& rows, const Int8Result& result, int threads,
                    const Option& opt) const;

    bool created_ = false;
    Int8Weights weights_;
    int inputs_ = 0;
    float input_scale_ = 1.f;
    FusedActivation activation_;
    const Int8UnitKernels* units_ = nullptr;
    int step_ = 0;  // k of a step of the units

    mutable std::mutex lock_;                           // of what follows
    mutable std::shared_ptr<const Int8TilePlan> plan_;  // of the last number of rows
    mutable bool use_plan_ = false;                     // it is faster than vectors
};

}  // namespace quoll

#endif
