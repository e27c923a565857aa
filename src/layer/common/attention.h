// What SDPA and MultiHeadAttention share: one head's softmax(q k^T + mask) v, in fp32 and in int8.
#ifndef QUOLL_LAYER_ATTENTION_H
#define QUOLL_LAYER_ATTENTION_H

#include <math.h>

#include "layer/common/schema.h"

namespace quoll {

// A matrix of floats: value (i, j) lies at data[i * row + j * column].
struct Strided {
    const float* data;
    ptrdiff_t row, column;
    float operator()(int i, int j) const { return data[i * row + j * column]; }
};

// A mask of keys that lie on a grid [height][width], from its two parts: for query i and key
// y * width + x, rows[i][y] + columns[i][x].
struct MaskTerms {
    const float* rows = nullptr;  // null: none
    const float* columns = nullptr;
    int height = 0, width = 0;
};

struct AttentionHead {
    int src, dst;        // queries; keys and values
    int size, out_size;  // values of a query or key; of a value
    Strided q, k, v;     // [src][size], [dst][size], [dst][out_size]
    // [src][dst], added to the scaled products; null: none. A query whose sums are all minus
    // infinity gives 0 for finite values.
    const float* mask;
    MaskTerms terms;  // of a mask that is not there as a whole
    float scale;
    float* out;  // value (i, j) at out[i * out_row + j * out_column]
    ptrdiff_t out_row, out_column;

    float mask_at(int i, int j) const {
        if (mask) return mask[(size_t)i * dst + j];
        if (!terms.rows) return 0.f;
        return terms.rows[(size_t)i * terms.height + j / terms.width] +
               terms.columns[(size_t)i * terms.width + j % terms.width];
    }
};

// Whether all scores[j] * scale + mask[j] are minus infinity; a null mask stands for zeros.
inline bool sees_nothing(const float* scores, float scale, const float* mask, int count) {
    for (int j = 0; j < count; j++)
        if (scores[j] * scale + (mask ? mask[j] : 0.f) != -HUGE_VALF) return false;
    return true;
}

// A mask of two dimensions, or several, a divisor of the heads, for head i number i modulo their
// count; checks that it is [src][dst].
int check_attention_mask(const Layer& layer, const Shape& mask, int heads, int src, int dst);
// The same for MaskTerms: [src][height] and [src][width], as many of both.
int check_mask_terms(const Layer& layer, const Shape& rows, const Shape& columns, int heads,
                     int src, int dst);
inline const float* attention_mask_of(const Mat& mask, int head) {
    const size_t at = mask.dims == 3 ? head % mask.c * mask.cstep * mask.elemsize : 0;
    return (const float*)((const char*)mask.data + at);
}

// The scalar reference. int8: q and the softmax are rounded to int8 with a scale per row, k and v
// with one per head; sums are integers.
int attend(const AttentionHead& head, bool int8, const Option& opt);

}  // namespace quoll

#endif
