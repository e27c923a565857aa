#ifndef QUOLL_LAYER_MULTIHEADATTENTION_H
#define QUOLL_LAYER_MULTIHEADATTENTION_H

#include "layer/common/attention.h"
#include "layer/common/block_quant.h"
#include "layer/common/schema.h"

namespace quoll {

// Attention between projected rows, as in torch.nn.MultiheadAttention: q = (x_q Wq^T + bq) * scale,
// k = x_k Wk^T + bk, v = x_v Wv^T + bv, heads of embed_dim / num_heads values each, and y =
// attention Wo^T + bo, where attention is that of SDPA. Inputs: one (self-attention), two (query;
// key and value) or three of q [rows][qdim], k [rows][kdim] and v [rows][vdim]; with attn_mask the
// mask [src][dst] or several as of SDPA; with kv_cache the projected keys and values so far,
// [embed_dim][past], which may be empty or missing. Self-attention appends to a cache that it is
// given; cross-attention uses the cache instead of k and v. Outputs: [src][qdim]; with kv_cache
// also the projected keys and values, [embed_dim][dst].
class MultiHeadAttention : public Operator<MultiHeadAttention> {
public:
    MultiHeadAttention();
    static void params(MultiHeadAttention& s, ParamVisitor& v);
    static void weights(MultiHeadAttention& s, WeightVisitor& v);
    static int shape(const MultiHeadAttention& s, const std::vector<Shape>& in,
                     std::vector<Shape>& out);
    int load_param(const ParamDict& pd) override;
    int load_model(const ModelBin& mb) override;
    int forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                const Option& opt) const override;
    int64_t macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const override;

    int embed_dim;
    int num_heads;
    int weight_data_size;  // of q_weight_data
    int kdim, vdim;
    int attn_mask;
    float scale;
    int kv_cache;
    int quantize_term;

    // y = x weight^T + bias.
    struct Projection {
        int in = 0, out = 0;
        Mat weight_data;      // [out][in], f32, s8, or rows of BlockQuant
        Mat bias_data;        // [out]
        Mat int8_scales;      // [out], of `out` [1]
        Mat quantize_scales;  // [out][blocks of in], see BlockQuant
        Mat input_scales;     // [in]
    };
    Projection q, k, v, out;

    struct Indexes {
        int q, k, v, mask, cache;  // of the inputs; -1: none; the values follow the keys
    };
    struct Sizes {
        Indexes at;
        int src, past, dst;
        bool from_cache;
    };
    int sizes(const std::vector<Shape>& in, Sizes* s) const;

protected:
    // Empty blobs where there is none.
    struct Call {
        Mat query, key, value, mask, past_key, past_value;
        int src, past, dst;
        bool from_cache;   // key and value are the cache, without new ones
        Mat keys, values;  // [embed_dim][dst]; the past is in them
    };
    // Checks the inputs and creates the outputs.
    int prepare(const std::vector<Mat>& bottoms, std::vector<Mat>& tops, const Option& opt,
                Call* call) const;
    // Head i of projected queries [src][embed_dim] into `joined`, of the same shape.
    AttentionHead head_of(const Call& call, const Mat& queries, Mat& joined, int i) const;
    // y(i, j) = (sum + bias) * factor at y[i * y_row + j * y_column] for the rows i of x.
    virtual int project_rows(const Mat& x, const Projection& p, float factor, const Option& opt,
                             float* y, ptrdiff_t y_row, ptrdiff_t y_column) const;
};

}  // namespace quoll

#endif
