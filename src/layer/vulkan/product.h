// Products of matrices, for operators that are made of them.
#ifndef QUOLL_LAYER_VULKAN_PRODUCT_H
#define QUOLL_LAYER_VULKAN_PRODUCT_H

#include "layer/common/activation.h"
#include "layer/vulkan/vulkan_layer.h"

namespace quoll {

// Value (row, column) of matrix (c, d) at first + row * row_step + ...; steps of 0 repeat.
struct MatrixSteps {
    uint32_t first, row, column, c, d;
};

// Records the rounding of a matrix, once for each item: its rows (or all of them `together`) are
// rounded to int8 by their largest value and multiplied by that again, which is what int8 products
// multiply. *steps: those of `from`, then those of the result. Returns 0, or a negative code after
// a message.
int record_rounded(Recorder& r, const Value& from, int rows, int columns, bool together,
                   MatrixSteps* steps, Value* made);

// y = f(alpha A B + beta C + bias), c * d times.
struct MatrixProduct {
    int rows, columns, depth;
    int c = 1, d = 1;
    Binding a, b, addend, y;
    MatrixSteps a_steps, b_steps, addend_steps = {}, y_steps;
    bool has_addend = false;
    float alpha = 1.f, beta = 1.f;

    Binding bias;  // of each column, in f32
    bool has_bias = false;
    Activation f;
    // For record_vectors() alone: A is the average of pixels; y is f32; it is the softmax of its
    // only row; int8 of innerproduct.comp.
    const ChannelSums* pooled = nullptr;
    bool makes_floats = false, softmax = false;
    int int8 = 0;
    // int8 values times each other exceed f16: they are multiplied as floats.
    bool has_int8 = false;

    // Adds what is to be done with y. y and its steps have to be set; C must be none if a blob is
    // added.
    void add_epilogue(const Recorder& r, const Fused& fused);
    // Whether matrix units can compute it, and are worth it.
    bool fits_units(const Recorder& r) const;
    // Whether tiles would not be mostly empty.
    bool fills_tiles() const;
    void record(Recorder& r) const;
    // Multiplies rows by rows of B, as innerproduct.comp does: A and y have no gaps, B's rows run
    // along the depth and are padded to whole vec4s; one matrix.
    void record_vectors(Recorder& r) const;
    // For one row: whether record_vectors() also makes the softmax.
    static bool fits_softmax(const GpuDevice& device, int columns);
    // Devices allow at least 65535 groups along each axis.
    static bool fits(int64_t rows, int64_t matrices) {
        return rows <= 65535 * 32 && matrices <= 65535;
    }

private:
    // The same product as one matrix of more rows, if the rows of all matrices are contiguous and B
    // is the same for all.
    MatrixProduct joined() const;
    void record_joined(Recorder& r) const;
    bool fits_vectors() const;
    void record_tiles(Recorder& r, Words push) const;
    void record_units(Recorder& r, Words push) const;
    Shader form_of(const Recorder& r, Shader shader) const;
};

}  // namespace quoll

#endif
