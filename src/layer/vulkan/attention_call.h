// Attention of all heads of a call, by the shader that suits its sizes.
#ifndef QUOLL_LAYER_VULKAN_ATTENTION_CALL_H
#define QUOLL_LAYER_VULKAN_ATTENTION_CALL_H

#include "layer/vulkan/vulkan_layer.h"

namespace quoll {

// Steps from row to row, from value to value, from head to head.
struct HeadSteps {
    const Value* value;
    uint32_t row, column, head;
};

struct AttentionCall {
    int heads, heads_per_group, queries, keys, size, out_size;
    float scale;
    HeadSteps q, k, v, y;
    const Value* mask;  // null: none
    // Of keys on a grid, whose rows `mask` is for; null: the mask is whole.
    const Value* columns = nullptr;

    // Whether there is a shader for these sizes.
    static bool fits(int queries, int heads, int size, int out_size);
    // One for all heads, or for each.
    static bool fits_mask(const Shape& mask, int heads) {
        return mask.dims == 2 || mask.c == 1 || mask.c == heads;
    }
    void record(Recorder& r) const;

private:
    void record_wide(Recorder& r) const;
    bool fits_wide(const Recorder& r) const;
    Words push(const HeadSteps& seen) const;
    void record_whole(Recorder& r) const;
    static bool has_row_threads(const Recorder& r);
    // Whether attention_row.comp can compute it. It is built for f16 only, to keep the library
    // small.
    bool fits_rows(const Recorder& r) const;
    // Whether attention_matrix.comp can compute it.
    bool fits_units(const Recorder& r) const;
    // Whether it is two products of matrices: of fp32 only, since the scores that lie between them
    // would lose too much as f16.
    bool fits_products(const Recorder& r) const;
    void record_products(Recorder& r) const;
};

}  // namespace quoll

#endif
