// ONNX's LSTM, GRU and RNN (operator set 14) with all their attributes. OnnxLSTM, OnnxGRU and
// OnnxRNN differ in their gates and in how a step combines them. LSTM, GRU and RNN are ncnn's
// simpler operators.
#ifndef QUOLL_LAYER_ONNXRECURRENT_H
#define QUOLL_LAYER_ONNXRECURRENT_H

#include "layer/common/recurrent_steps.h"
#include "layer/common/schema.h"

namespace quoll {

// The activations of the ONNX operators. The numbers in brackets are the defaults of alpha and
// beta; without any, these are 1 and 0.
enum OnnxActivation {
    kOnnxRelu,
    kOnnxTanh,
    kOnnxSigmoid,
    kOnnxAffine,           // alpha x + beta
    kOnnxLeakyRelu,        // [0.01] x, or alpha x below 0
    kOnnxThresholdedRelu,  // [1] x from alpha on, else 0
    kOnnxScaledTanh,       // [1, 1] alpha tanh(beta x)
    kOnnxHardSigmoid,      // [0.2, 0.5] alpha x + beta within 0 and 1
    kOnnxElu,              // [1] x, or alpha (e^x - 1) below 0
    kOnnxSoftsign,         // x / (1 + |x|)
    kOnnxSoftplus,         // ln(1 + e^x)
    kNumOnnxActivations
};

// Blobs are ONNX's tensors with all axes: X [seq, batch, input], Y [seq, directions, batch,
// hidden], Y_h, Y_c and the initial states [directions, batch, hidden]; with layout 1 [batch, seq,
// input], [batch, seq, directions, hidden] and [batch, directions, hidden]. If X has two axes, it
// is one sequence without a batch axis, which the other blobs then lack, too. Inputs: X, with
// dynamic_weight W, R and B, then sequence_lens, initial_h, initial_c and, with dynamic_weight, P,
// each if the parameters say that it is there. Outputs: Y, Y_h, Y_c, or the first one or two of
// them. Steps beyond a sequence's length are 0 in Y.
class OnnxRecurrent {
public:
    OnnxRecurrent(int gates, int functions, bool has_cell);
    virtual ~OnnxRecurrent() {}

    int hidden_size;
    int weight_data_size;  // scalars of W
    int direction;         // 0 forward, 1 reverse, 2 bidirectional
    int layout;
    int variant;  // LSTM: input_forget, GRU: linear_before_reset
    float clip;   // bound of what enters activations; 0: none
    int bias_term, peephole;
    int sequence_lens, initial_h, initial_c;  // 1: there is such an input
    int dynamic_weight;
    int round_inputs;     // 1: X and states are rounded before they are multiplied
    int int8_scale_term;  // 1: W and R are s8 with a scale for each row
    Mat activations;      // s32, OnnxActivation: `functions` a direction; none: Sigmoid, Tanh, Tanh
    // Taken one after another by the activations that have such a parameter.
    Mat activation_alpha, activation_beta;

    Mat weight_data;     // W: 1-D [directions][gates][hidden_size][input]
    Mat recurrent_data;  // R: [directions][gates][hidden_size][hidden_size]
    Mat bias_data;       // B: [directions][2][gates][hidden_size]
    Mat peephole_data;   // P: [directions][3][hidden_size]
    // Of s8 weights, [directions][gates][hidden_size]: their values are code / scale.
    Mat weight_data_int8_scales, recurrent_data_int8_scales;

    int num_directions() const { return direction == 2 ? 2 : 1; }
    // Weights, other than inputs, that a step multiplies with.
    int64_t weights_per_step() const {
        const int64_t state = (int64_t)num_directions() * gates_ * hidden_size * hidden_size;
        return dynamic_weight ? 0 : weight_data_size + state;
    }

    struct Function {
        int type;
        float alpha, beta;
        double operator()(double x, float clip) const;
    };
    // The state of one item, and what a step needs to update it. x and h hold the gates' sums with
    // biases (h lacks the last gate if that has a separate product).
    struct Step {
        const float *x, *h;
        const float* peephole;  // null: none
        float *hidden, *cell;
        const Function* f;
    };
    // True for ONNX's default activations without clip, peepholes and input_forget.
    bool is_plain() const;

protected:
    enum Product { kInput, kHidden, kLastGate, kNumProducts };
    // A row-major matrix, and what is added to its products (null: nothing). Without `weight` it is
    // codes[i] / scales[row].
    struct Matrix {
        int rows, columns;
        const float *weight, *bias;
        const signed char* codes;
        const float* scales;
    };
    // The weights of one direction, and the biases that follow from B.
    struct Weights {
        Matrix product[kNumProducts];
        const float* peephole;
        Mat bias;  // owns the biases
    };

    void onnx_params(ParamVisitor& v, const char* variant_name, const char* variant_doc);
    void onnx_weights(WeightVisitor& v);
    int check_params(const Layer& layer) const;
    int check_weights(const Layer& layer) const;
    int prepare_weights(const Layer& layer);
    int onnx_shape(const Layer& layer, const std::vector<Shape>& in, std::vector<Shape>& out) const;
    int onnx_forward(const Layer& layer, const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                     const Option& opt) const;

    // out = weight x + bias for `count` rows of x, x_row apart.
    virtual int multiply(const Weights& w, Product which, int d, const float* x, size_t x_row,
                         int count, float* out, const Option& opt) const;
    // True if multiply() rounds all rows that it is given itself; they have no gaps then.
    virtual bool rounds_rows() const { return false; }
    // Updates the state. last: the product of the last gate, if that has a separate one.
    virtual void update(const Step& s, const float* last) const = 0;
    // Calls run(context, i) for the items 0 <= i < count of a step, which may be at the same time.
    typedef void (*ItemRun)(const void* context, int i);
    virtual void for_each_item(int count, ItemRun run, const void* context, const Option&) const {
        for (int i = 0; i < count; i++) run(context, i);
    }
    // Calls run(context, d, opt) for both directions, which may be at the same time; opt has the
    // threads of each. Of `work` multiply-adds each.
    typedef void (*DirectionRun)(const void* context, int d, const Option& opt);
    virtual void for_both_directions(double, DirectionRun run, const void* context,
                                     const Option& opt) const {
        for (int d = 0; d < 2; d++) run(context, d, opt);
    }
    // Runs the steps from `first` to `end` as a whole and returns true, with 0 or a negative code
    // in *result; or returns false, and they are run product by product.
    virtual bool run_whole(int, const RecurrentSteps&, int, int, const Option&, int*) const {
        return false;
    }
    // True for a GRU, in whose last gate the bias of the state's product is not merged with the
    // input's.
    virtual bool keeps_last_bias() const { return false; }
    // True for a GRU with !variant, where the product of the last gate takes the result of reset()
    // instead of the state.
    virtual bool splits_last_gate() const { return false; }
    virtual void reset(const Step&, float*) const {}

    const int gates_, functions_;
    const bool has_cell_;
    Weights fixed_[2];  // of the directions, unless dynamic_weight

private:
    struct Geometry;
    struct Buffers;
    int geometry(const Layer& layer, const std::vector<Shape>& in, Geometry* g) const;
    int check_shape(const Layer& layer, const Shape& got, const Shape& want,
                    const char* name) const;
    int check_dynamic(const Layer& layer, const std::vector<Shape>& in, int input) const;
    int lengths(const Layer& layer, const Mat* input, const Geometry& g, int* lens) const;
    // Of direction d; `flat` are W, R, B and P as 1-D Mats, the last two may be empty.
    int make_weights(const Mat flat[4], int d, Allocator* allocator, Weights* weights) const;
    void functions_of(int d, Function* f) const;
    int input_products(const Weights& w, int d, const Mat& x, int first, int end, float* out,
                       const Option& opt) const;
    int kept_steps(const Mat& x, const Geometry& g) const;
    int round_input(const Layer& layer, const Option& opt, Mat* x) const;
    int run_step(const Weights& w, int d, int step, const RecurrentSteps& s, const Buffers& b,
                 const Option& opt) const;
    int run_steps(const Weights& w, int d, const Mat& x, const Buffers& b, const Geometry& g,
                  const Option& opt) const;
    int run_direction(const Weights& w, int d, const Mat& x, const std::vector<Mat>& bottoms,
                      std::vector<Mat>& tops, const int* lens, const Geometry& g,
                      const Option& opt) const;
};

// Base of the three operators; they add params(), update() and the like.
template <class T>
class OnnxRecurrentOperator : public Operator<T>, public OnnxRecurrent {
public:
    using OnnxRecurrent::OnnxRecurrent;
    static void weights(T& s, WeightVisitor& v) {
        static_cast<OnnxRecurrentOperator&>(s).onnx_weights(v);
    }
    static int shape(const T& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
        return static_cast<const OnnxRecurrentOperator&>(s).onnx_shape(s, in, out);
    }
    int load_param(const ParamDict& pd) override {
        QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
        return check_params(*this);
    }
    int load_model(const ModelBin& mb) override {
        QUOLL_RETURN_IF_ERROR(load_weights_by_schema(*this, mb));
        return check_weights(*this);
    }
    int create_pipeline(const Option&) override { return prepare_weights(*this); }
    int forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                const Option& opt) const override {
        return onnx_forward(*this, bottom_blobs, top_blobs, opt);
    }
    int64_t macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const override {
        return first_sizes_known(in, out) ? weights_per_step() * row_count(in[0]) : -1;
    }
};

}  // namespace quoll

#endif
