// Products of matrices, for the operators that consist of them.
#ifndef QUOLL_LAYER_VULKAN_PRODUCT_H
#define QUOLL_LAYER_VULKAN_PRODUCT_H

#include "layer/vulkan/vulkan_layer.h"

namespace quoll {

// Value (row, column) of matrix (c, d) at first + row * row_step + ...; steps of 0 repeat.
struct MatrixSteps {
    uint32_t first, row, column, c, d;
};

// y = alpha A B + beta C, c * d times.
struct MatrixProduct {
    int rows, columns, depth;
    int c = 1, d = 1;
    Binding a, b, addend, y;
    MatrixSteps a_steps, b_steps, addend_steps = {}, y_steps;
    bool has_addend = false;
    float alpha = 1.f, beta = 1.f;

    void record(Recorder& r) const {
        Words push = {rows, columns, depth, d};
        for (const MatrixSteps* m : {&a_steps, &b_steps, &addend_steps, &y_steps})
            push.insert(push.end(), {m->first, m->row, m->column, m->c, m->d});
        push.push_back(alpha), push.push_back(beta);
        r.dispatch(Shader::product, {has_addend}, {a, b, has_addend ? addend : a, y}, push,
                   (uint32_t)(columns + 31) / 32, (uint32_t)(rows + 31) / 32, (uint32_t)(c * d));
    }
    // Devices have at least 65535 groups along each axis.
    static bool fits(int64_t rows, int64_t matrices) {
        return rows <= 65535 * 32 && matrices <= 65535;
    }
};

}  // namespace quoll

#endif
