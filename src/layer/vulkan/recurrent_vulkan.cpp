// LSTM, GRU and RNN, and ONNX's in their plain forms.
#include "layer/sequence/gru.h"
#include "layer/sequence/lstm.h"
#include "layer/sequence/onnxgru.h"
#include "layer/sequence/onnxlstm.h"
#include "layer/sequence/onnxrnn.h"
#include "layer/sequence/rnn.h"
#include "layer/vulkan/vulkan_layer.h"

namespace quoll {

namespace {

const int kLargestState = 1024;  // of the shader

// The sizes and weights of both kinds of layers; gates are in the order of the shader.
struct RecurrentForm {
    int gates, size, input, directions, direction;
    bool onnx, batch_first;
    std::vector<float> input_weights, state_weights, bias, last_bias;
};

// How a call's blobs lie.
struct Geometry {
    uint32_t steps, items;
    uint32_t x_step, x_item, y_step, y_item, y_direction, state_item, state_direction;
};

// Reorders [direction][gate][state][columns] to [direction][columns][gate][state], where gate g of
// the shader is `order[g]` of the layer.
std::vector<float> transposed(const float* weights, const RecurrentForm& f, int columns,
                              const int* order) {
    std::vector<float> made;
    for (int d = 0; d < f.directions; d++)
        for (int k = 0; k < columns; k++)
            for (int g = 0; g < f.gates; g++)
                for (int q = 0; q < f.size; q++)
                    made.push_back(
                        weights[(((size_t)d * f.gates + order[g]) * f.size + q) * columns + k]);
    return made;
}

class RecurrentVulkan : public VulkanLayer {
public:
    int load(RecurrentForm form, VulkanContext& context) {
        form_ = std::move(form);
        largest_binding_ = context.device.limits().maxStorageBufferRange;
        WeightStore& to = context.weights;
        QUOLL_RETURN_IF_ERROR(to.add(form_.input_weights, context.storage, &input_weights_));
        QUOLL_RETURN_IF_ERROR(to.add(form_.state_weights, context.storage, &state_weights_));
        QUOLL_RETURN_IF_ERROR(to.add(form_.bias, Storage::f32, &bias_));
        if (form_.last_bias.empty()) form_.last_bias.push_back(0.f);  // a binding has values
        QUOLL_RETURN_IF_ERROR(to.add(form_.last_bias, Storage::f32, &last_bias_));
        for (std::vector<float>* values :
             {&form_.input_weights, &form_.state_weights, &form_.bias, &form_.last_bias})
            std::vector<float>().swap(*values);
        return kOk;
    }

    bool supports(const Shapes& in, const Shapes& out) const override {
        // The states of one item would be read beyond their end for a batch.
        for (const Shape& shape : in)
            if (shape.n != in[0].n) return false;
        const size_t states = form_.gates == 4 ? 2 : 1;
        const bool outputs = out.size() == 1 || out.size() == 1 + states;
        return (in.size() == 1 || in.size() == 1 + states) && outputs &&
               (!form_.onnx || in[0].n == 1) && geometry(in[0]).items <= 65535 &&
               4. * sums(geometry(in[0])) <= largest_binding_;
    }

    int record(Recorder& r, const Values& in, const Values& out) const override {
        const Geometry g = geometry(in[0].shape);
        const uint32_t rows = (uint32_t)(form_.gates * form_.size);
        const uint32_t count = (uint32_t)sums(g);
        const int inputs = r.make_block((size_t)count * 4);
        r.dispatch_linear(
            Shader::recurrent_input, {},
            {r.read(in[0]), input_weights_, bias_, r.write_block(inputs)},
            {count, rows, g.steps, g.items, form_.input, in[0].first, g.x_step, g.x_item}, count);
        const bool lstm = form_.gates == 4, given = in.size() > 1, made = out.size() > 1;
        const Value &hidden = in[given ? 1 : 0], &cell = in[given && lstm ? 2 : 0];
        const Value &last = out[made ? 1 : 0], &last_cell = out[made && lstm ? 2 : 0];
        r.dispatch(Shader::recurrent, {form_.gates, given, made, form_.direction},
                   {r.read_block(inputs), state_weights_, last_bias_, r.read(hidden), r.read(cell),
                    r.write(out[0]), r.write(last), r.write(last_cell)},
                   {form_.size, g.steps, g.items, out[0].first, g.y_step, g.y_item, g.y_direction,
                    hidden.first, cell.first, last.first, last_cell.first, g.state_item,
                    g.state_direction},
                   (uint32_t)form_.directions, g.items);
        return kOk;
    }

private:
    // Of all gates, steps and items: what they get from the input.
    double sums(const Geometry& g) const {
        return (double)form_.gates * form_.size * form_.directions * g.steps * g.items;
    }
    Geometry geometry(const Shape& x) const {
        const uint32_t size = (uint32_t)form_.size, directions = (uint32_t)form_.directions;
        const uint32_t input = (uint32_t)form_.input;
        if (!form_.onnx) {
            const uint32_t steps = (uint32_t)x.h;
            return {steps,         (uint32_t)x.n,     input,
                    input * steps, size * directions, size * directions * steps,
                    size,          size * directions, size};
        }
        const bool flat = x.dims == 2, first = form_.batch_first && !flat;
        const uint32_t steps = (uint32_t)(flat || first ? x.h : x.c);
        const uint32_t batch = (uint32_t)(flat ? 1 : first ? x.c : x.h);
        if (first)
            return {steps,
                    batch,
                    input,
                    input * steps,
                    size * directions,
                    size * directions * steps,
                    size,
                    size * directions,
                    size};
        return {steps, batch,        input * batch, input,       size * batch * directions,
                size,  size * batch, size,          size * batch};
    }

    RecurrentForm form_;
    uint32_t largest_binding_ = 0;  // bytes
    Binding input_weights_, state_weights_, bias_, last_bias_;
};

const int kOrders[3][4] = {{0, 1, 2, 3}, {0, 2, 1, 3}, {1, 0, 2, 3}};

// The form of ncnn's layers; bias: [direction][gates and, of GRU, one more][size].
bool form_of(const Recurrent& layer, RecurrentForm* f) {
    if (layer.int8_scale_term != 0 || layer.has_projection()) return false;
    *f = {layer.gates(),
          layer.num_output,
          layer.size(),
          layer.num_directions(),
          layer.direction,
          false,
          false,
          {},
          {},
          {},
          {}};
    const std::vector<float> bias = values_of(layer.bias_c_data);
    const size_t rows = (size_t)f->gates * f->size, more = f->gates == 3 ? f->size : 0;
    for (int d = 0; d < f->directions; d++) {
        const float* of = bias.data() + d * (rows + more);
        f->bias.insert(f->bias.end(), of, of + rows);
        f->last_bias.insert(f->last_bias.end(), of + rows, of + rows + more);
    }
    f->input_weights = transposed(layer.weight_xc_data, *f, f->input, kOrders[0]);
    f->state_weights = transposed(layer.weight_hc_data, *f, f->size, kOrders[0]);
    return true;
}

// The form of ONNX's layers, whose gates are i, o, f, c of an LSTM and z, r, h of a GRU.
bool form_of(const OnnxRecurrent& layer, int gates, RecurrentForm* f) {
    const bool resets_state = gates == 3 && !layer.variant;
    const bool states = gates != 4 || layer.initial_h == layer.initial_c;
    if (layer.dynamic_weight || layer.round_inputs || layer.sequence_lens || resets_state ||
        !states || !layer.is_plain())
        return false;
    const int input = layer.weight_data_size / layer.num_directions() / layer.hidden_size / gates;
    *f = {gates,
          layer.hidden_size,
          input,
          layer.num_directions(),
          layer.direction,
          true,
          layer.layout == 1,
          {},
          {},
          {},
          {}};
    const int* order = kOrders[gates == 4 ? 1 : gates == 3 ? 2 : 0];
    const size_t rows = (size_t)gates * f->size, last = rows - f->size;
    const std::vector<float> bias =
        layer.bias_term ? values_of(layer.bias_data) : std::vector<float>(2 * rows * f->directions);
    for (int d = 0; d < f->directions; d++) {
        const float* of = bias.data() + d * 2 * rows;
        for (int g = 0; g < gates; g++) {
            for (int q = 0; q < f->size; q++) {
                const size_t row = (size_t)order[g] * f->size + q;
                const bool joined = gates != 3 || g < 2;
                f->bias.push_back(of[row] + (joined ? of[rows + row] : 0.f));
            }
        }
        if (gates == 3) f->last_bias.insert(f->last_bias.end(), of + rows + last, of + 2 * rows);
    }
    f->input_weights = transposed(layer.weight_data, *f, input, order);
    f->state_weights = transposed(layer.recurrent_data, *f, f->size, order);
    return true;
}

}  // namespace

int make_recurrent_vulkan(const Layer& layer, VulkanContext& context, VulkanLayerPtr* made) {
    RecurrentForm form;
    bool has_form = false;
    if (const LSTM* lstm = as<LSTM>(&layer)) has_form = form_of(*lstm, &form);
    if (const GRU* gru = as<GRU>(&layer)) has_form = form_of(*gru, &form);
    if (const RNN* rnn = as<RNN>(&layer)) has_form = form_of(*rnn, &form);
    if (const OnnxLSTM* lstm = as<OnnxLSTM>(&layer)) has_form = form_of(*lstm, 4, &form);
    if (const OnnxGRU* gru = as<OnnxGRU>(&layer)) has_form = form_of(*gru, 3, &form);
    if (const OnnxRNN* rnn = as<OnnxRNN>(&layer)) has_form = form_of(*rnn, 1, &form);
    if (!has_form || form.size > kLargestState) return kOk;
    std::unique_ptr<RecurrentVulkan> recurrent(new RecurrentVulkan);
    QUOLL_RETURN_IF_ERROR(recurrent->load(std::move(form), context));
    *made = std::move(recurrent);
    return kOk;
}

}  // namespace quoll
