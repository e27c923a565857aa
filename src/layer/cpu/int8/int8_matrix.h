// The product of rows and a constant int8 matrix: the int8 form of an inner product.
#ifndef QUOLL_LAYER_CPU_INT8_INT8_MATRIX_H
#define QUOLL_LAYER_CPU_INT8_INT8_MATRIX_H

#if defined(QUOLL_NO_INT8)
#include "layer/cpu/common/no_int8.h"
#else

#include <memory>

#include "layer/cpu/int8/int8_tiles.h"
#include "quoll/layer.h"

namespace quoll {

class Int8Matrix {
public:
    // weights: s8 [outputs][inputs], whose sums int8_sums_fit. bias may be empty. zero: zero point
    // of s8 inputs. Logs for `layer` and returns a negative code.
    int create(const Layer& layer, const Mat& weights, int outputs, float input_scale,
               const Mat& weight_scales, const Mat& bias, const Activation& activation,
               int zero = 0);
    bool created() const { return created_; }
    // Makes forward() give s8 (affine8.h) of the values times `factor`; to be called before plan().
    void give_int8(float factor, int zero) { top_factor_ = factor, top_zero_ = zero; }
    // A plan on tile units for this many rows of f32 or s8; null if there are none, or if they are
    // slower than vectors.
    std::shared_ptr<const Int8TilePlan> plan(int rows, DType dtype, const Option& opt) const;
    // rows: f32 or s8 [inputs, h], elempack 1. top: f32 (s8 after give_int8), as many rows of
    // `outputs`.
    int forward(const Int8TilePlan* tiles, const Mat& rows, Mat& top, const Option& opt) const;
    // The same, adding what is in top before the activation.
    int forward_added(const Int8TilePlan* tiles, const Mat& rows, Mat& top,
                      const Option& opt) const;
    // The same as forward() for f32 rows that are rounded with the scale and zero point of their
    // range; the input_scale and zero of create() were 1 and 0. tiles: for s8.
    int forward_ranged(const Int8TilePlan* tiles, const Mat& rows, Mat& top,
                       const Option& opt) const;
    // The name of the kernels that such a plan uses.
    const char* kernels(const Int8TilePlan* tiles) const {
        return tiles ? units_->name : weights_.kernels().name;
    }

private:
    int threads_of(int rows, const Option& opt) const;
    int multiply(const Int8TilePlan* tiles, const Mat& rows, const int32_t* init,
                 const float* scale, const float* add, Mat& top, const Option& opt) const;
    void pack_a(const Mat& rows, int y, char* to) const;
    int run_tiles(const Int8TilePlan& plan, const Mat& rows, const Int8Result& result,
                  const Option& opt) const;
    int run_vectors(const Mat& rows, const Int8Result& result, int threads,
                    const Option& opt) const;

    bool created_ = false;
    Int8Weights weights_;
    int inputs_ = 0;
    float input_scale_ = 1.f;
    float top_factor_ = 0.f;  // 0: f32
    int top_zero_ = 0;
    FusedActivation activation_;
    const Int8UnitKernels* units_ = nullptr;
    int step_ = 0;  // k of a step of the units
};

// Rounds f32 values to 16 bits, as two s8 blobs (int16_input.h) with their elempack, from the
// workspace. Returns kOk or kOutOfMemory.
int int16_parts(const Mat& values, float scale, Mat* high, Mat* low, const Option& opt);

}  // namespace quoll

#endif

#endif
