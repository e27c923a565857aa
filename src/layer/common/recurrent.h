// Common to RNN, LSTM and GRU, which differ in the number of gates and in how a step combines them.
#ifndef QUOLL_LAYER_RECURRENT_H
#define QUOLL_LAYER_RECURRENT_H

#include <math.h>

#include "layer/common/recurrent_steps.h"
#include "layer/common/schema.h"

namespace quoll {

// One weight of one direction, a row-major matrix: y = W x + bias.
struct RecurrentMatrix {
    int rows, columns;
    const float* weight;             // f32, or null:
    const signed char* weight_int8;  // s8, with one scale per row
    const float* scales;
    const float* bias;  // of the rows from first_bias on; the others have none
    int first_bias;

    float bias_of(int row) const { return row < first_bias ? 0.f : bias[row - first_bias]; }
};

// The input is [T, size], a row per step; the first output [T, num_directions * num_output]. States
// (hidden [num_directions, num_output]; for LSTM also cell [num_directions, hidden_size]) are
// further inputs and outputs, either all or none; without such inputs they begin at 0. Direction 1
// of a bidirectional layer, or the only one of a reverse layer, begins with the last step.
class Recurrent {
public:
    Recurrent(int gates, int bias_rows, bool has_cell);
    virtual ~Recurrent() {}

    int num_output;
    int weight_data_size;
    int direction;        // 0 forward, 1 reverse, 2 bidirectional
    int hidden_size;      // not num_output: num_output is a projection of it (LSTM only)
    int int8_scale_term;  // not 0: weights are int8, inputs are rounded to int8 row by row

    Mat weight_xc_data;              // 1-D: [num_directions][gates][hidden_size][size]
    Mat bias_c_data;                 // [num_directions][bias_rows][hidden_size]
    Mat weight_hc_data;              // [num_directions][gates][hidden_size][num_output]
    Mat weight_hr_data;              // [num_directions][num_output][hidden_size]
    Mat weight_xc_data_int8_scales;  // [num_directions][gates][hidden_size]
    Mat weight_hc_data_int8_scales;

    int num_directions() const { return direction == 2 ? 2 : 1; }
    int size() const { return weight_data_size / num_directions() / hidden_size / gates_; }
    int gates() const { return gates_; }
    bool has_projection() const { return num_output != hidden_size; }

    enum Weight { kInput, kHidden, kProjection, kNumWeights };

    // Weights that a step multiplies with.
    int64_t weights_per_step() const {
        const int64_t state = (int64_t)num_directions() * hidden_size * num_output;
        return weight_data_size + state * gates_ + (has_projection() ? state : 0);
    }

protected:
    void recurrent_params(ParamVisitor& v);
    void recurrent_weights(WeightVisitor& v);
    int check_params(const Layer& layer) const;
    int check_weights(const Layer& layer) const;
    int recurrent_shape(const Layer& layer, const std::vector<Shape>& in,
                        std::vector<Shape>& out) const;
    int recurrent_forward(const Layer& layer, const std::vector<Mat>& bottoms,
                          std::vector<Mat>& tops, const Option& opt) const;

    RecurrentMatrix matrix(Weight which, int d) const;

    // out (rows of the matrix, `count` times) = weight times each of `count` rows of x, plus bias.
    // scratch: bytes for one row of x. 0, or a negative code when memory runs out.
    virtual int multiply(Weight which, int d, const float* x, int count, float* out,
                         signed char* scratch, const Option& opt) const;
    // Runs all steps and returns true, with 0 or a negative code in *result; or returns false, and
    // they are run product by product.
    virtual bool run_whole(int, const RecurrentSteps&, const Option&, int*) const { return false; }
    // One step: computes the new state in place, from the gates' sums of input and state (biases
    // included).
    virtual void update(const float* x, const float* h, float* hidden, float* cell) const = 0;

private:
    struct Sequence;
    int run_direction(int d, const Sequence& s, const Option& opt) const;
    int make_state(int index, const std::vector<Mat>& bottoms, const std::vector<Mat>& tops,
                   const Option& opt, Mat* state) const;
    int state_size(int index) const { return index == 0 ? num_output : hidden_size; }

    const int gates_, bias_rows_;
    const bool has_cell_;
};

// Base of the three operators; they add update().
template <class T>
class RecurrentOperator : public Operator<T>, public Recurrent {
public:
    using Recurrent::Recurrent;
    static void params(T& s, ParamVisitor& v) { recurrent(s).recurrent_params(v); }
    static void weights(T& s, WeightVisitor& v) { recurrent(s).recurrent_weights(v); }
    static int shape(const T& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
        return static_cast<const RecurrentOperator&>(s).recurrent_shape(s, in, out);
    }
    int load_param(const ParamDict& pd) override {
        QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
        return check_params(*this);
    }
    int load_model(const ModelBin& mb) override {
        QUOLL_RETURN_IF_ERROR(load_weights_by_schema(*this, mb));
        return check_weights(*this);
    }
    int forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                const Option& opt) const override {
        return recurrent_forward(*this, bottom_blobs, top_blobs, opt);
    }
    int64_t macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const override {
        return first_sizes_known(in, out) ? weights_per_step() * row_count(in[0]) : -1;
    }

private:
    static RecurrentOperator& recurrent(T& s) { return s; }
};

inline double sigmoid_of(double x) { return 1.0 / (1.0 + exp(-x)); }

}  // namespace quoll

#endif
