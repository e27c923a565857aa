#ifndef QUOLL_LAYER_SDPA_H
#define QUOLL_LAYER_SDPA_H

#include "layer/common/attention.h"
#include "layer/common/schema.h"

namespace quoll {

// Scaled dot-product attention, softmax(q k^T * scale + mask) v, with one head per channel; a query
// whose mask is minus infinity throughout gives 0. Inputs: query [heads][src][size], key
// [groups][cur][size], value [groups][cur][out_size], where heads is a multiple of groups
// (neighbouring heads share a group); with attn_mask = 1 the mask [src][dst] or [n][src][dst], of
// which head i takes number i mod n, where heads is a multiple of n; with attn_mask = 2, for keys
// on a grid of dst = height x width, its parts [src][height] and [src][width], or n of both: the
// mask of query i and key y * width + x is rows[i][y] + columns[i][x]; with kv_cache the keys and
// values so far, [groups][past][size] and [groups][past][out_size], which may be empty or missing.
// dst = past + cur. Outputs: [heads][src][out_size]; with kv_cache also all keys and values, the
// cache of the next call.
class SDPA : public Operator<SDPA> {
public:
    SDPA();
    static void params(SDPA& s, ParamVisitor& v);
    static void weights(SDPA& s, WeightVisitor& v);
    static int shape(const SDPA& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    int64_t macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const override;

    // The input with the keys so far.
    size_t first_cache() const { return 3u + (size_t)attn_mask; }

    enum { kNoMask, kWholeMask, kMaskTerms };
    int attn_mask;
    float scale;
    int kv_cache;
    int int8_scale_term;

protected:
    struct Call {
        int heads_per_group;
        Mat key, value;             // cache included, [groups][dst][...]
        const Mat* mask;            // null: none as a whole
        const Mat *rows, *columns;  // null: no MaskTerms
    };
    // Checks the inputs, creates the outputs and fills those of the cache.
    int prepare(const std::vector<Mat>& bottoms, std::vector<Mat>& tops, const Option& opt,
                Call* call) const;
    AttentionHead head_of(const Mat& query, const Call& call, Mat& top, int head) const;
};

}  // namespace quoll

#endif
