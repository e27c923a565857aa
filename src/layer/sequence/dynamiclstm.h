#ifndef QUOLL_LAYER_DYNAMICLSTM_H
#define QUOLL_LAYER_DYNAMICLSTM_H

#include "layer/common/schema.h"

namespace quoll {

// A cell of Kaldi's TDNN-LSTM networks, as MACE fuses it: Append -> Affine -> LstmNonlinearity
// (with peepholes) -> Affine, with the recurrent state passed in and out, so that a stream can be
// run chunk by chunk.
//
// Inputs: frames [chunk, input_dim] and, both or neither (then zeros), prev_out [out_rows,
// prev_out_dim] and prev_cell [cell_rows, prev_cell_dim], where rows = -delay / subsample_factor.
// For each frame listed in forward_indexes (all if it is empty), in this order:
//     i, f, g, o = weights_a [frame, out of `out_rows` frames ago] + bias_a
//     i = sigmoid(i + w_ic c'), f = sigmoid(f + w_fc c') with c' the cell of `cell_rows` frames ago
//     c = f c' + i tanh(g), o = sigmoid(o + w_oc c), y = weights_b (o tanh(c)) + bias_b
// The recurrent `out` is prev_out_dim values of y from prev_out_offset on; `out` and c are kept
// multiplied by scale. (http://kaldi-asr.org/doc/nnet-combined-component_8h_source.html,
// LstmNonlinearity.)
//
// Outputs: y [frames, num_output] and, both or neither, out_cache and cell_cache: row k is what was
// kept of the frame at position cache_indexes[k] among those run. Without indexes they are the last
// rows, which the next call needs (if fewer frames than rows were run, the others come from the
// inputs).
class DynamicLSTM : public Operator<DynamicLSTM> {
public:
    DynamicLSTM();
    static void params(DynamicLSTM& s, ParamVisitor& v);
    static void weights(DynamicLSTM& s, WeightVisitor& v);
    static int shape(const DynamicLSTM& s, const std::vector<Shape>& in, std::vector<Shape>& out);
    int forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                const Option& opt) const override;
    int64_t macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const override;

    int load_param(const ParamDict& pd) override;
    int load_model(const ModelBin& mb) override;

    int prev_out_delay, prev_cell_delay;  // negative, multiples of subsample_factor
    int prev_out_offset, prev_out_dim, prev_cell_dim;
    int num_output;
    int weight_data_size;  // scalars of weights_a
    int bias_a, bias_b;    // 1: there is one
    float scale;
    int subsample_factor;
    Mat forward_indexes, out_cache_indexes, cell_cache_indexes;  // s32

    Mat weights_a_data;  // 1-D [4][prev_cell_dim][input_dim + prev_out_dim], gates i, f, g, o
    Mat params_data;     // [3][prev_cell_dim]: w_ic, w_fc, w_oc
    Mat weights_b_data;  // [num_output][prev_cell_dim]
    Mat bias_a_data, bias_b_data;

    int out_rows() const { return -prev_out_delay / subsample_factor; }
    int cell_rows() const { return -prev_cell_delay / subsample_factor; }
    int input_dim() const { return weight_data_size / 4 / prev_cell_dim - prev_out_dim; }

private:
    int check_indexes(const char* name, const Mat& indexes, int count, int below) const;
    void run_frame(const float* x, const float* out, const float* cell, float* gates, float* y,
                   float* next_cell) const;
};

}  // namespace quoll

#endif
