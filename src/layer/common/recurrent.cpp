#include "layer/common/recurrent.h"

#include <string.h>

#include <algorithm>

namespace quoll {

Recurrent::Recurrent(int gates, int bias_rows, bool has_cell)
    : num_output(0),
      weight_data_size(0),
      direction(0),
      hidden_size(0),
      int8_scale_term(0),
      gates_(gates),
      bias_rows_(bias_rows),
      has_cell_(has_cell) {}

void Recurrent::recurrent_params(ParamVisitor& v) {
    // Larger sizes can only be mistakes; the bound keeps products within 64 bits.
    const Range size = between(1, 1 << 20);
    v(0, "num_output", num_output, 0, "values of an output row and direction", size);
    v(1, "weight_data_size", weight_data_size, 0, "scalars of weight_xc_data", at_least(1));
    v(2, "direction", direction, 0, "0 forward, 1 reverse, 2 bidirectional", between(0, 2));
    if (has_cell_)
        v(3, "hidden_size", hidden_size, num_output,
          "values of the cell; if not num_output, outputs are a projection", size);
    else
        hidden_size = num_output;
    v(8, "int8_scale_term", int8_scale_term, 0, "not 0: int8 weights with scales", at_least(0));
}

void Recurrent::recurrent_weights(WeightVisitor& v) {
    const bool int8 = int8_scale_term != 0;
    const int64_t cells = (int64_t)num_directions() * hidden_size;
    v(true, "weight_xc_data", weight_xc_data, weight_data_size, WeightKind::kTagged,
      "[directions][gates][hidden_size][size]");
    v(true, "bias_c_data", bias_c_data, cells * bias_rows_, WeightKind::kTagged,
      "[directions][gates (GRU: and one more)][hidden_size]");
    v(true, "weight_hc_data", weight_hc_data, cells * gates_ * num_output, WeightKind::kTagged,
      "[directions][gates][hidden_size][num_output]");
    v(has_projection(), "weight_hr_data", weight_hr_data, cells * num_output, WeightKind::kTagged,
      "[directions][num_output][hidden_size]");
    v(int8, "weight_xc_data_int8_scales", weight_xc_data_int8_scales, cells * gates_,
      WeightKind::kRaw, "[directions][gates][hidden_size]");
    v(int8, "weight_hc_data_int8_scales", weight_hc_data_int8_scales, cells * gates_,
      WeightKind::kRaw, "[directions][gates][hidden_size]");
}

int Recurrent::check_params(const Layer& layer) const {
    const int64_t rows = (int64_t)num_directions() * hidden_size * gates_;
    if (weight_data_size % rows == 0) return kOk;
    return layer.fail("weight_data_size (1): expected a multiple of %lld, got %d", (long long)rows,
                      weight_data_size);
}

int Recurrent::check_weights(const Layer& layer) const {
    const DType wanted = int8_scale_term ? DType::s8 : DType::f32;
    if (weight_xc_data.dtype != wanted || weight_hc_data.dtype != wanted)
        return layer.fail("weights: expected %s, got %s and %s", dtype_name(wanted),
                          dtype_name(weight_xc_data.dtype), dtype_name(weight_hc_data.dtype));
    if (bias_c_data.dtype != DType::f32 || weight_hr_data.dtype != DType::f32)
        return layer.fail("bias_c_data and weight_hr_data: expected f32");
    return kOk;
}

int Recurrent::recurrent_shape(const Layer& layer, const std::vector<Shape>& in,
                               std::vector<Shape>& out) const {
    const size_t states = has_cell_ ? 2 : 1;
    const size_t outputs = output_count(layer, out);
    if ((in.size() != 1 && in.size() != 1 + states) || (outputs != 1 && outputs != 1 + states))
        return layer.fail("expected 1 or %zu inputs and outputs, got %zu and %zu", 1 + states,
                          in.size(), outputs);
    for (const Shape& s : in)
        if (s.dtype != in[0].dtype || !accepts_float(layer, s.dtype) || s.n != in[0].n)
            return layer.fail("expected inputs of f32, got %s", dtype_name(s.dtype));
    if (in[0].dims < 1 || in[0].dims > 2 || in[0].w != size())
        return layer.fail("expected rows of %d values, got %s", size(), shape_text(in[0]).c_str());
    out.assign(outputs, Shape(num_output * num_directions(), in[0].h, in[0].dtype));
    for (size_t i = 1; i < std::max(in.size(), outputs); i++) {
        Shape state(state_size((int)i - 1), num_directions(), in[0].dtype);
        if (i < in.size()) {
            if (in[i].w != state.w || in[i].h != state.h || in[i].dims < 1 || in[i].dims > 2)
                return layer.fail("input %zu, a state: expected %s, got %s", i,
                                  shape_text(state).c_str(), shape_text(in[i]).c_str());
            state = in[i];
        }
        if (i < outputs) out[i] = state;
    }
    for (Shape& s : out) s.n = in[0].n;
    return kOk;
}

RecurrentMatrix Recurrent::matrix(Weight which, int d) const {
    const Mat& weight = which == kInput    ? weight_xc_data
                        : which == kHidden ? weight_hc_data
                                           : weight_hr_data;
    RecurrentMatrix m = {};
    m.rows = which == kProjection ? num_output : gates_ * hidden_size;
    m.columns = which == kInput ? size() : which == kHidden ? num_output : hidden_size;
    const size_t begin = (size_t)d * m.rows * m.columns;
    if (weight.dtype == DType::s8) {
        const Mat& scales =
            which == kInput ? weight_xc_data_int8_scales : weight_hc_data_int8_scales;
        m.weight_int8 = (const signed char*)weight + begin;
        m.scales = (const float*)scales + (size_t)d * m.rows;
    } else {
        m.weight = (const float*)weight + begin;
    }
    // The biases of the gates are added to the input's product; a fourth one (GRU) belongs to the
    // state's product of the last gate.
    const float* bias = (const float*)bias_c_data + (size_t)d * bias_rows_ * hidden_size;
    m.first_bias = m.rows;
    if (which == kInput) m.first_bias = 0, m.bias = bias;
    if (which == kHidden && bias_rows_ > gates_)
        m.first_bias = (gates_ - 1) * hidden_size, m.bias = bias + gates_ * hidden_size;
    return m;
}

// Rounds x to int8 so that the largest magnitude becomes 127. Returns the quantisation step.
static float quantize_row(const float* x, int count, signed char* rounded) {
    float most = 0.f;
    for (int i = 0; i < count; i++) most = std::max(most, fabsf(x[i]));
    const float scale = most == 0.f ? 1.f : 127.f / most;
    for (int i = 0; i < count; i++) rounded[i] = float2int8(x[i] * scale);
    return 1.f / scale;
}

int Recurrent::multiply(Weight which, int d, const float* x, int count, float* out,
                        signed char* scratch, const Option&) const {
    const RecurrentMatrix m = matrix(which, d);
    for (int t = 0; t < count; t++, x += m.columns) {
        const float step = m.weight ? 1.f : quantize_row(x, m.columns, scratch);
        for (int row = 0; row < m.rows; row++) {
            const size_t begin = (size_t)row * m.columns;
            if (m.weight) {
                double sum = m.bias_of(row);
                for (int i = 0; i < m.columns; i++) sum += (double)m.weight[begin + i] * x[i];
                *out++ = (float)sum;
            } else {
                int64_t sum = 0;
                for (int i = 0; i < m.columns; i++) sum += m.weight_int8[begin + i] * scratch[i];
                *out++ = m.bias_of(row) + (float)sum * (step * (1.f / m.scales[row]));
            }
        }
    }
    return kOk;
}

int Recurrent::make_state(int index, const std::vector<Mat>& bottoms, const std::vector<Mat>& tops,
                          const Option& opt, Mat* state) const {
    if (tops.size() > 1)
        *state = tops[1 + index];
    else
        state->create(state_size(index), num_directions(), (size_t)4u, opt.workspace_allocator);
    if (state->empty()) return kOutOfMemory;
    const size_t bytes = (size_t)state_size(index) * num_directions() * sizeof(float);
    if (bottoms.size() > 1)
        memcpy(state->data, bottoms[1 + index].data, bytes);
    else
        memset(state->data, 0, bytes);
    return kOk;
}

// Common to the directions of a call.
struct Recurrent::Sequence {
    const Mat* input;
    Mat* output;
    Mat* hidden;
    Mat* cell;
    float* x_gates;  // of all steps
    float* h_gates;
    float* unprojected;  // hidden_size values
    signed char* scratch;
};

int Recurrent::run_direction(int d, const Sequence& s, const Option& opt) const {
    const int steps = s.input->h;
    float* hidden = (float*)s.hidden->data + (size_t)d * num_output;
    float* cell = has_cell_ ? (float*)s.cell->data + (size_t)d * hidden_size : nullptr;
    float* next = has_projection() ? s.unprojected : hidden;
    QUOLL_RETURN_IF_ERROR(multiply(kInput, d, *s.input, steps, s.x_gates, s.scratch, opt));
    const bool reverse = direction == 1 || d == 1;
    const size_t x_row = (size_t)gates_ * hidden_size;
    if constexpr (kMayRunWhole) {
        const RecurrentSteps all = {1,
                                    &steps,
                                    reverse,
                                    s.x_gates,
                                    0,
                                    x_row,
                                    0,
                                    hidden,
                                    cell,
                                    s.output->row(0) + (size_t)d * num_output,
                                    (size_t)s.output->w,
                                    0};
        int result = kOk;
        if (run_whole(d, all, opt, &result)) return result;
    }
    for (int i = 0; i < steps; i++) {
        const int t = reverse ? steps - 1 - i : i;
        QUOLL_RETURN_IF_ERROR(multiply(kHidden, d, hidden, 1, s.h_gates, s.scratch, opt));
        update(s.x_gates + t * x_row, s.h_gates, next, cell);
        if (has_projection())
            QUOLL_RETURN_IF_ERROR(multiply(kProjection, d, next, 1, hidden, s.scratch, opt));
        memcpy(s.output->row(t) + (size_t)d * num_output, hidden, num_output * sizeof(float));
    }
    return kOk;
}

int Recurrent::recurrent_forward(const Layer& layer, const std::vector<Mat>& bottoms,
                                 std::vector<Mat>& tops, const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tops(layer, bottoms, tops, opt));
    Mat hidden, cell;
    QUOLL_RETURN_IF_ERROR(make_state(0, bottoms, tops, opt, &hidden));
    if (has_cell_) QUOLL_RETURN_IF_ERROR(make_state(1, bottoms, tops, opt, &cell));
    Mat x_gates(gates_ * hidden_size, bottoms[0].h, (size_t)4u, opt.workspace_allocator);
    Mat h_gates((gates_ + 1) * hidden_size, (size_t)4u, opt.workspace_allocator);
    Mat scratch(std::max(size(), num_output), (size_t)1u, opt.workspace_allocator);
    if (x_gates.empty() || h_gates.empty() || scratch.empty()) return kOutOfMemory;
    const Sequence s = {&bottoms[0],
                        &tops[0],
                        &hidden,
                        &cell,
                        x_gates,
                        h_gates,
                        (float*)h_gates + gates_ * hidden_size,
                        scratch};
    for (int d = 0; d < num_directions(); d++) QUOLL_RETURN_IF_ERROR(run_direction(d, s, opt));
    return kOk;
}

}  // namespace quoll
