// Products of matrices, for the operators that consist of them.
#ifndef QUOLL_LAYER_VULKAN_PRODUCT_H
#define QUOLL_LAYER_VULKAN_PRODUCT_H

#include "layer/common/activation.h"
#include "layer/vulkan/vulkan_layer.h"

namespace quoll {

// Value (row, column) of matrix (c, d) at first + row * row_step + ...; steps of 0 repeat.
struct MatrixSteps {
    uint32_t first, row, column, c, d;
};

// A matrix, once for each item, with its rows (or all of them `together`) rounded to int8 by the
// largest value, and times that again: what int8 products multiply. *steps: of `from`, then of the
// result. 0, or a negative code after a message.
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

    // What is made of y besides. y and its steps are set, and C is none where a blob is added.
    void add_epilogue(const Recorder& r, const Fused& fused);
    // Whether matrix units may make it, and are worth it.
    bool fits_units(const Recorder& r) const;
    void record(Recorder& r) const;
    // Rows with rows of B, as innerproduct.comp has them: A and y without gaps, B's rows along the
    // depth, filled up to whole vec4s; one matrix.
    void record_vectors(Recorder& r) const;
    // Of one row: whether record_vectors() makes the softmax.
    static bool fits_softmax(const GpuDevice& device, int columns);
    // Devices have at least 65535 groups along each axis.
    static bool fits(int64_t rows, int64_t matrices) {
        return rows <= 65535 * 32 && matrices <= 65535;
    }

private:
    // The same as one matrix of more rows, where those of all matrices follow each other and B is
    // one for all.
    MatrixProduct joined() const;
    void record_joined(Recorder& r) const;
    bool fits_vectors() const;
    void record_tiles(Recorder& r, Words push) const;
    void record_units(Recorder& r, Words push) const;
};

}  // namespace quoll

#endif
