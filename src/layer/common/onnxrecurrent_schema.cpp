// The activations, parameters and weights of ONNX's recurrent operators.
#include <math.h>

#include <algorithm>

#include "layer/common/onnxrecurrent.h"

namespace quoll {

// ---------------------------------------------------------------- activations

double OnnxRecurrent::Function::operator()(double x, float clip) const {
    if (clip > 0) x = std::min((double)clip, std::max(-(double)clip, x));
    switch (type) {
        case kOnnxRelu:
            return std::max(0.0, x);
        case kOnnxTanh:
            return tanh(x);
        case kOnnxSigmoid:
            return 1 / (1 + exp(-x));
        case kOnnxAffine:
            return alpha * x + beta;
        case kOnnxLeakyRelu:
            return x >= 0 ? x : alpha * x;
        case kOnnxThresholdedRelu:
            return x >= alpha ? x : 0;
        case kOnnxScaledTanh:
            return alpha * tanh(beta * x);
        case kOnnxHardSigmoid:
            return std::min(1.0, std::max(0.0, alpha * x + beta));
        case kOnnxElu:
            return x >= 0 ? x : alpha * (exp(x) - 1);
        case kOnnxSoftsign:
            return x / (1 + fabs(x));
        default:  // kOnnxSoftplus
            return std::max(0.0, x) + log1p(exp(-fabs(x)));
    }
}

// Which activations have an alpha or a beta, and their defaults.
struct FunctionWords {
    bool has_alpha, has_beta;
    float alpha, beta;
};
static FunctionWords words_of(int type) {
    switch (type) {
        case kOnnxAffine:
            return {true, true, 1.f, 0.f};
        case kOnnxLeakyRelu:
            return {true, false, 0.01f, 0.f};
        case kOnnxThresholdedRelu:
        case kOnnxElu:
            return {true, false, 1.f, 0.f};
        case kOnnxScaledTanh:
            return {true, true, 1.f, 1.f};
        case kOnnxHardSigmoid:
            return {true, true, 0.2f, 0.5f};
    }
    return {false, false, 0.f, 0.f};
}

// The activations of direction d.
void OnnxRecurrent::functions_of(int d, Function* f) const {
    int alphas = 0, betas = 0;
    for (int i = 0; i < (d + 1) * functions_; i++) {
        const bool gate = functions_ > 1 && i % functions_ == 0;
        const int type = !activations.empty() ? ((const int*)activations.data)[i]
                         : gate               ? kOnnxSigmoid
                                              : kOnnxTanh;
        const FunctionWords words = words_of(type);
        Function& current = f[i % functions_];
        current = {type, words.alpha, words.beta};
        if (words.has_alpha && alphas < activation_alpha.w)
            current.alpha = activation_alpha[alphas++];
        if (words.has_beta && betas < activation_beta.w) current.beta = activation_beta[betas++];
    }
}

bool OnnxRecurrent::is_plain() const {
    for (int d = 0; d < num_directions(); d++) {
        Function f[3];
        functions_of(d, f);
        for (int i = 0; i < functions_; i++)
            if (f[i].type != (functions_ > 1 && i == 0 ? kOnnxSigmoid : kOnnxTanh)) return false;
    }
    return clip == 0 && !peephole && !(has_cell_ && variant);
}

// ---------------------------------------------------------------- schema

void OnnxRecurrent::onnx_params(ParamVisitor& v, const char* variant_name,
                                const char* variant_doc) {
    const Range flag = between(0, 1);
    // Larger sizes can only be mistakes; the bound keeps products within 64 bits.
    v(0, "hidden_size", hidden_size, 0, "values of a state", between(1, 1 << 20));
    v(1, "weight_data_size", weight_data_size, 0, "scalars of W; not with dynamic_weight",
      at_least(0));
    v(2, "direction", direction, 0, "0 forward, 1 reverse, 2 bidirectional", between(0, 2));
    v(3, "layout", layout, 0, "0: X is [seq, batch, input], 1: [batch, seq, input]", flag);
    if (*variant_name) v(4, variant_name, variant, 0, variant_doc, flag);
    v(5, "clip", clip, 0.f, "bound of what enters an activation, 0: none", at_least(0));
    v(6, "bias_term", bias_term, 0, "1: B is there", flag);
    if (has_cell_) v(7, "peephole", peephole, 0, "1: P is there", flag);
    v(8, "sequence_lens", sequence_lens, 0, "1: an input has the lengths (s32 or f32)", flag);
    v(9, "initial_h", initial_h, 0, "1: an input has the first state", flag);
    if (has_cell_) v(10, "initial_c", initial_c, 0, "1: an input has the first cell", flag);
    v(11, "dynamic_weight", dynamic_weight, 0, "1: W, R, B and P are inputs", flag);
    v.ints(12, "activations", activations,
           "a direction: 0 Relu, 1 Tanh, 2 Sigmoid, 3 Affine, 4 LeakyRelu, 5 ThresholdedRelu, 6 "
           "ScaledTanh, 7 HardSigmoid, 8 Elu, 9 Softsign, 10 Softplus",
           between(0, kNumOnnxActivations - 1));
    v.floats(13, "activation_alpha", activation_alpha, "of the activations that have one");
    v.floats(14, "activation_beta", activation_beta, "of the activations that have one");
    if (has_cell_)
        v(15, "round_inputs", round_inputs, 0,
          "1: X, and the states of a step, are rounded to 8 bits (256 even steps from the smallest "
          "of "
          "all to the largest, 0 among them) before they are multiplied",
          flag);
    if (has_cell_)
        v(16, "int8_scale_term", int8_scale_term, 0,
          "1: W and R are int8, each row with a scale; with round_inputs", flag);
}

void OnnxRecurrent::onnx_weights(WeightVisitor& v) {
    const bool fixed = !dynamic_weight;
    const int64_t cells = (int64_t)num_directions() * hidden_size;
    v(fixed, "weight_data", weight_data, weight_data_size, WeightKind::kTagged,
      "W [directions][gates][hidden_size][input]");
    v(fixed, "recurrent_data", recurrent_data, cells * gates_ * hidden_size, WeightKind::kTagged,
      "R [directions][gates][hidden_size][hidden_size]");
    v(fixed && bias_term, "bias_data", bias_data, cells * gates_ * 2, WeightKind::kRaw,
      "B [directions][2][gates][hidden_size]");
    v(fixed && peephole, "peephole_data", peephole_data, cells * 3, WeightKind::kRaw,
      "P [directions][3][hidden_size]");
    for (Mat* scales : {&weight_data_int8_scales, &recurrent_data_int8_scales})
        v(fixed && int8_scale_term,
          scales == &weight_data_int8_scales ? "weight_data_int8_scales"
                                             : "recurrent_data_int8_scales",
          *scales, cells * gates_, WeightKind::kRaw,
          "[directions][gates][hidden_size]: a value is its int8 / scale");
}

int OnnxRecurrent::check_params(const Layer& layer) const {
    const int64_t rows = (int64_t)num_directions() * hidden_size * gates_;
    if (!dynamic_weight && (weight_data_size < 1 || weight_data_size % rows != 0))
        return layer.fail("weight_data_size (1): expected a multiple of %lld, got %d",
                          (long long)rows, weight_data_size);
    if (int8_scale_term && (dynamic_weight || !round_inputs))
        return layer.fail("int8_scale_term (16): needs round_inputs and no dynamic_weight");
    const int functions = num_directions() * functions_;
    if (activations.empty() || activations.w == functions) return kOk;
    return layer.fail("activations (12): expected %d, got %d", functions, activations.w);
}

int OnnxRecurrent::check_weights(const Layer& layer) const {
    const DType wanted = int8_scale_term ? DType::s8 : DType::f32;
    if (weight_data.dtype == wanted && recurrent_data.dtype == wanted) return kOk;
    return layer.fail("weights: expected %s, got %s and %s", dtype_name(wanted),
                      dtype_name(weight_data.dtype), dtype_name(recurrent_data.dtype));
}

}  // namespace quoll
