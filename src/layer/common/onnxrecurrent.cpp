#include "layer/common/onnxrecurrent.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include <algorithm>

#include "layer/common/conv_window.h"

namespace quoll {

OnnxRecurrent::OnnxRecurrent(int gates, int functions, bool has_cell)
    : hidden_size(0),
      weight_data_size(0),
      direction(0),
      layout(0),
      variant(0),
      clip(0.f),
      bias_term(0),
      peephole(0),
      sequence_lens(0),
      initial_h(0),
      initial_c(0),
      dynamic_weight(0),
      round_inputs(0),
      int8_scale_term(0),
      gates_(gates),
      functions_(functions),
      has_cell_(has_cell) {}

// ---------------------------------------------------------------- sizes

// The sizes of a call, and where things lie. Steps count floats.
struct OnnxRecurrent::Geometry {
    int steps, batch, input;
    int lens, hidden, cell;   // index of the input, 0: there is none
    int w, r, b, p;           // of the dynamic weights
    size_t y_t, y_d, y_b;     // in Y, whose channels are y_step apart
    size_t state_d, state_b;  // in states without gaps
    Shape y, state;
};

int OnnxRecurrent::check_shape(const Layer& layer, const Shape& got, const Shape& want,
                               const char* name) const {
    if (got == want) return kOk;
    return layer.fail("%s: expected %s of f32, got %s of %s", name, shape_text(want).c_str(),
                      shape_text(got).c_str(), dtype_name(got.dtype));
}

int OnnxRecurrent::geometry(const Layer& layer, const std::vector<Shape>& in, Geometry* g) const {
    int next = 1;
    const auto index = [&next](bool present) { return present ? next++ : 0; };
    g->w = index(dynamic_weight), g->r = index(dynamic_weight);
    g->b = index(dynamic_weight && bias_term);
    g->lens = index(sequence_lens), g->hidden = index(initial_h), g->cell = index(initial_c);
    g->p = index(dynamic_weight && peephole);
    if ((int)in.size() != next) return layer.fail("expected %d inputs, got %zu", next, in.size());
    const Shape& x = in[0];
    if ((x.dims != 2 && x.dims != 3) || !accepts_float(layer, x.dtype))
        return layer.fail("X: expected 2 or 3 axes of f32, got %s of %s", shape_text(x).c_str(),
                          dtype_name(x.dtype));
    const int directions = num_directions();
    const bool flat = x.dims == 2, batch_first = layout == 1;
    g->input = x.w;
    g->steps = flat || batch_first ? x.h : x.c;
    g->batch = flat ? 1 : batch_first ? x.c : x.h;
    g->state = flat          ? Shape(hidden_size, directions)
               : batch_first ? Shape(hidden_size, directions, g->batch)
                             : Shape(hidden_size, g->batch, directions);
    g->y = flat          ? Shape(hidden_size, directions, g->steps)
           : batch_first ? Shape(hidden_size, directions, g->steps, g->batch)
                         : Shape(hidden_size, g->batch, directions, g->steps);
    g->state.n = g->y.n = x.n;
    g->state_d = (size_t)hidden_size * (batch_first && !flat ? 1 : g->batch);
    g->state_b = (size_t)hidden_size * (batch_first && !flat ? directions : 1);
    return kOk;
}

int OnnxRecurrent::check_dynamic(const Layer& layer, const std::vector<Shape>& in,
                                 int input) const {
    Geometry g;
    QUOLL_RETURN_IF_ERROR(geometry(layer, in, &g));
    const int rows = gates_ * hidden_size, directions = num_directions();
    QUOLL_RETURN_IF_ERROR(check_shape(layer, in[g.w], Shape(input, rows, directions), "W"));
    QUOLL_RETURN_IF_ERROR(check_shape(layer, in[g.r], Shape(hidden_size, rows, directions), "R"));
    if (g.b) QUOLL_RETURN_IF_ERROR(check_shape(layer, in[g.b], Shape(2 * rows, directions), "B"));
    if (g.p)
        QUOLL_RETURN_IF_ERROR(check_shape(layer, in[g.p], Shape(3 * hidden_size, directions), "P"));
    return kOk;
}

int OnnxRecurrent::onnx_shape(const Layer& layer, const std::vector<Shape>& in,
                              std::vector<Shape>& out) const {
    Geometry g;
    QUOLL_RETURN_IF_ERROR(geometry(layer, in, &g));
    const size_t outputs = output_count(layer, out);
    if (outputs > (has_cell_ ? 3u : 2u)) return layer.fail("%zu outputs are too many", outputs);
    if (dynamic_weight) {
        QUOLL_RETURN_IF_ERROR(check_dynamic(layer, in, g.input));
    } else if (weight_data_size / num_directions() / hidden_size / gates_ != g.input) {
        return layer.fail("X: expected %d values a step, got %s",
                          weight_data_size / num_directions() / hidden_size / gates_,
                          shape_text(in[0]).c_str());
    }
    if (g.lens && (in[g.lens].dims != 1 || in[g.lens].total() != (size_t)g.batch * in[g.lens].n ||
                   (in[g.lens].dtype != DType::s32 && in[g.lens].dtype != DType::f32)))
        return layer.fail("sequence_lens: expected %d values of s32 or f32, got %s of %s", g.batch,
                          shape_text(in[g.lens]).c_str(), dtype_name(in[g.lens].dtype));
    if (g.hidden) QUOLL_RETURN_IF_ERROR(check_shape(layer, in[g.hidden], g.state, "initial_h"));
    if (g.cell) QUOLL_RETURN_IF_ERROR(check_shape(layer, in[g.cell], g.state, "initial_c"));
    out.assign(outputs, g.state);
    out[0] = g.y;
    return kOk;
}

// ---------------------------------------------------------------- weights

int OnnxRecurrent::make_weights(const Mat flat[4], int d, Allocator* allocator,
                                Weights* weights) const {
    const int rows = gates_ * hidden_size, last = rows - hidden_size;
    const int split = splits_last_gate() ? last : rows, joined = keeps_last_bias() ? last : rows;
    const int input = (int)(flat[0].w / num_directions() / rows);
    weights->bias.create(2 * rows, (size_t)4u, allocator);
    if (weights->bias.empty()) return kOutOfMemory;
    weights->bias.fill(0.f);
    float *bias = weights->bias, *state_bias = bias + rows;
    if (!flat[2].empty()) {
        const float* b = (const float*)flat[2] + (size_t)d * 2 * rows;
        for (int i = 0; i < rows; i++) bias[i] = b[i] + (i < joined ? b[rows + i] : 0.f);
        for (int i = joined; i < rows; i++) state_bias[i] = b[rows + i];
    }
    const auto part = [&](int data, int begin, int count, int columns, const float* b) {
        Matrix m = {count, columns, nullptr, b, nullptr, nullptr};
        const size_t first = ((size_t)d * rows + begin) * columns;
        if (flat[data].dtype == DType::s8) {
            const Mat& scales = data == 0 ? weight_data_int8_scales : recurrent_data_int8_scales;
            m.codes = (const signed char*)flat[data] + first;
            m.scales = (const float*)scales + (size_t)d * rows + begin;
        } else {
            m.weight = (const float*)flat[data] + first;
        }
        return m;
    };
    weights->product[kInput] = part(0, 0, rows, input, bias);
    weights->product[kHidden] =
        part(1, 0, split, hidden_size, joined < split ? state_bias : nullptr);
    weights->product[kLastGate] = part(1, split, rows - split, hidden_size, state_bias + split);
    weights->peephole =
        flat[3].empty() ? nullptr : (const float*)flat[3] + (size_t)d * 3 * hidden_size;
    return kOk;
}

int OnnxRecurrent::prepare_weights(const Layer& layer) {
    const Mat flat[4] = {weight_data, recurrent_data, bias_data, peephole_data};
    for (int d = 0; d < num_directions() && !dynamic_weight; d++) {
        if (make_weights(flat, d, nullptr, &fixed_[d]) == kOk) continue;
        layer.fail("out of memory for the biases");
        return kOutOfMemory;
    }
    return kOk;
}

int OnnxRecurrent::multiply(const Weights& w, Product which, int, const float* x, size_t x_row,
                            int count, float* out, const Option&) const {
    const Matrix& m = w.product[which];
    for (int i = 0; i < count; i++, x += x_row) {
        for (int row = 0; row < m.rows; row++) {
            const size_t k = (size_t)row * m.columns;
            double sum = 0;
            if (m.weight) {
                for (int j = 0; j < m.columns; j++) sum += (double)m.weight[k + j] * x[j];
            } else {
                for (int j = 0; j < m.columns; j++) sum += (double)m.codes[k + j] * x[j];
                sum /= m.scales[row];
            }
            *out++ = (float)(sum + (m.bias ? m.bias[row] : 0.f));
        }
    }
    return kOk;
}

// ---------------------------------------------------------------- running

namespace {

// Rounds values to the 8-bit values of DynamicQuantizeLinear, so that sums are those of models with
// int8 weights and dynamically quantised activations.
class ByteRounding {
public:
    void add(const float* x, size_t count) {
        for (size_t i = 0; i < count; i++)
            low_ = std::min(low_, x[i]), high_ = std::max(high_, x[i]);
    }
    void round(const float* x, size_t count, float* to) const {
        const float scale = high_ > low_ ? (high_ - low_) / 255 : 1.f;
        const float zero = nearbyintf(-low_ / scale);
        for (size_t i = 0; i < count; i++) {
            const float code = nearbyintf(x[i] / scale) + zero;
            to[i] = (std::max(0.f, std::min(255.f, code)) - zero) * scale;
        }
    }

private:
    float low_ = 0.f, high_ = 0.f;
};

}  // namespace

// Replaces *x by its rows without gaps, rounded unless multiply() does that.
int OnnxRecurrent::round_input(const Layer& layer, const Option& opt, Mat* x) const {
    const size_t plane = (size_t)x->w * x->h;
    if (rounds_rows() && x->c == 1) {
        *x = Mat(x->w, x->h, x->data, (size_t)4u);  // one channel has no gaps before its end
        return kOk;
    }
    Mat rounded(x->w, x->h * x->c, (size_t)4u, opt.workspace_allocator);
    if (rounded.empty() && !x->empty()) {
        layer.fail("out of memory");
        return kOutOfMemory;
    }
    ByteRounding bytes;
    for (int q = 0; q < x->c && !rounds_rows(); q++) bytes.add(x->channel(q), plane);
    for (int q = 0; q < x->c; q++) {
        float* const to = (float*)rounded.data + q * plane;
        if (rounds_rows())
            memcpy(to, x->channel(q), plane * sizeof(float));
        else
            bytes.round(x->channel(q), plane, to);
    }
    *x = rounded;
    return kOk;
}

struct OnnxRecurrent::Buffers {
    float* x;       // [rows of X, or of kept_steps()][gates][hidden_size]
    float* h;       // [batch][gates][hidden_size]
    float* rest;    // [batch][hidden_size]: input, then product of a last gate of its own
    float* hidden;  // [batch][hidden_size]
    float* cell;
    float* y;
    const int* lens;  // one a sequence
};

enum { kProductRows = 64 };

// So many of X's channels without gaps that their products stay in cache.
static int channels_in_cache(const Mat& x) {
    return x.cstep == (size_t)x.w * x.h && x.h > 0 ? std::max(1, kProductRows / x.h) : 1;
}

// The products of the rows of X's channels from `first` to `end`, in the order of its memory
// without gaps.
int OnnxRecurrent::input_products(const Weights& w, int d, const Mat& x, int first, int end,
                                  float* out, const Option& opt) const {
    const size_t rows = (size_t)gates_ * hidden_size;
    const float* const from = x;
    if (x.dims == 3 && x.h == 1)
        return multiply(w, kInput, d, from + first * x.cstep, x.cstep, end - first, out, opt);
    const int some = channels_in_cache(x);
    for (int q = first; q < end; q += some)
        QUOLL_RETURN_IF_ERROR(multiply(w, kInput, d, from + q * x.cstep, x.w,
                                       x.h * std::min(some, end - q),
                                       out + (size_t)(q - first) * x.h * rows, opt));
    return kOk;
}

enum { kFewestSteps = 4 };

// Steps whose products of the input are made at a time: few, which then stay in cache, where X's
// channels are those of one time.
int OnnxRecurrent::kept_steps(const Mat& x, const Geometry& g) const {
    if (x.dims != 3 || x.h == 1 || layout == 1 || (g.lens && direction != 0)) return g.steps;
    const int some = channels_in_cache(x);
    return std::min(g.steps, (kFewestSteps + some - 1) / some * some);
}

int OnnxRecurrent::run_step(const Weights& w, int d, int step, const RecurrentSteps& all,
                            const Buffers& b, const Option& opt) const {
    const int items = all.items;
    const size_t h_rows = (size_t)w.product[kHidden].rows;
    Function f[3];
    functions_of(d, f);
    const auto state_of = [&](int i) {
        return Step{all.input(i, step),
                    b.h + i * h_rows,
                    w.peephole,
                    b.hidden + (size_t)i * hidden_size,
                    b.cell + (size_t)i * hidden_size,
                    f};
    };
    const size_t values = (size_t)items * hidden_size;
    const bool rounds = round_inputs && !rounds_rows();
    if (rounds) {
        ByteRounding bytes;
        bytes.add(b.hidden, values);
        bytes.round(b.hidden, values, b.rest);
    }
    QUOLL_RETURN_IF_ERROR(
        multiply(w, kHidden, d, rounds ? b.rest : b.hidden, hidden_size, items, b.h, opt));
    float* const products = b.rest + values;
    if (splits_last_gate()) {
        memcpy(b.rest, b.hidden, values * sizeof(float));
        for (int i = 0; i < items; i++)
            if (step < b.lens[i]) reset(state_of(i), b.rest + (size_t)i * hidden_size);
        QUOLL_RETURN_IF_ERROR(multiply(w, kLastGate, d, b.rest, hidden_size, items, products, opt));
    }
    const auto update_item = [&](int i) {
        if (step >= b.lens[i]) return;
        const Step s = state_of(i);
        update(s, products + (size_t)i * hidden_size);
        memcpy(all.output(i, step), s.hidden, hidden_size * sizeof(float));
    };
    typedef decltype(update_item) UpdateItem;
    for_each_item(
        items, [](const void* update, int i) { (*(const UpdateItem*)update)(i); }, &update_item,
        opt);
    return kOk;
}

// All steps, from the states in b.hidden and b.cell.
int OnnxRecurrent::run_steps(const Weights& w, int d, const Mat& x, const Buffers& b,
                             const Geometry& g, const Option& opt) const {
    const size_t rows = (size_t)gates_ * hidden_size;
    const bool batch_first = layout == 1, reverse = direction == 1 || d == 1;
    RecurrentSteps all = {g.batch,
                          b.lens,
                          reverse,
                          b.x,
                          0,
                          batch_first ? rows : rows * g.batch,
                          batch_first ? rows * g.steps : rows,
                          b.hidden,
                          has_cell_ ? b.cell : nullptr,
                          b.y + d * g.y_d,
                          g.y_t,
                          g.y_b};
    const int kept = kept_steps(x, g);
    for (int first = 0; first < g.steps; first += kept) {
        const int end = std::min(g.steps, first + kept);
        if (kept < g.steps) {
            all.x_first = reverse ? g.steps - end : first;
            QUOLL_RETURN_IF_ERROR(
                input_products(w, d, x, all.x_first, all.x_first + end - first, b.x, opt));
        } else {
            QUOLL_RETURN_IF_ERROR(input_products(w, d, x, 0, x.c, b.x, opt));
        }
        int result = kOk;
        if (!kMayRunWhole || !run_whole(d, all, first, end, opt, &result))
            for (int step = first; step < end && result == kOk; step++)
                result = run_step(w, d, step, all, b, opt);
        QUOLL_RETURN_IF_ERROR(result);
    }
    return kOk;
}

// Value `at` of a blob, counted as if its channels had no gaps.
static float* value_at(const Mat& blob, size_t at) {
    const size_t plane = (size_t)blob.w * blob.h;
    return (float*)blob.data + at / plane * blob.cstep + at % plane;
}

int OnnxRecurrent::run_direction(const Weights& w, int d, const Mat& x,
                                 const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                                 const int* lens, const Geometry& g, const Option& opt) const {
    Allocator* const a = opt.workspace_allocator;
    const int n = hidden_size, rows = gates_ * n;
    Mat products(rows, kept_steps(x, g), g.batch, (size_t)4u, a), h(rows, g.batch, (size_t)4u, a);
    Mat memory(n, g.batch, 4, (size_t)4u, a);
    if (products.empty() || h.empty() || memory.empty()) return kOutOfMemory;
    const size_t state = (size_t)g.batch * n, bytes = n * sizeof(float);
    float* const base = memory;
    const Buffers b = {products, h, base, base + 2 * state, base + 3 * state, tops[0], lens};
    float* const states[] = {b.hidden, b.cell};
    const int inputs[] = {g.hidden, g.cell};
    for (int k = 0; k < (has_cell_ ? 2 : 1); k++) {
        memset(states[k], 0, g.batch * bytes);
        for (int i = 0; i < g.batch && inputs[k]; i++)
            memcpy(states[k] + (size_t)i * hidden_size,
                   value_at(bottoms[inputs[k]], d * g.state_d + i * g.state_b), bytes);
    }
    QUOLL_RETURN_IF_ERROR(run_steps(w, d, x, b, g, opt));
    for (size_t k = 1; k < tops.size(); k++)
        for (int i = 0; i < g.batch; i++)
            memcpy(value_at(tops[k], d * g.state_d + i * g.state_b),
                   states[k - 1] + (size_t)i * hidden_size, bytes);
    return kOk;
}

int OnnxRecurrent::lengths(const Layer& layer, const Mat* input, const Geometry& g,
                           int* lens) const {
    for (int i = 0; i < g.batch; i++) {
        lens[i] = g.steps;
        if (!input) continue;
        const double given =
            input->dtype == DType::s32 ? ((const int*)input->data)[i] : (*input)[i];
        if (!(given >= 0 && given <= g.steps))
            return layer.fail("sequence_lens[%d]: expected 0 to %d, got %g", i, g.steps, given);
        lens[i] = (int)given;
    }
    return kOk;
}

int OnnxRecurrent::onnx_forward(const Layer& layer, const std::vector<Mat>& bottoms,
                                std::vector<Mat>& tops, const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tops(layer, bottoms, tops, opt));
    std::vector<Shape> in = shapes_of(bottoms);
    Mat input = bottoms[0];
    if (round_inputs) QUOLL_RETURN_IF_ERROR(round_input(layer, opt, &input));
    Geometry g;
    QUOLL_RETURN_IF_ERROR(geometry(layer, in, &g));
    Mat flat[4];
    const int inputs[4] = {g.w, g.r, g.b, g.p};
    for (int i = 0; i < 4 && dynamic_weight; i++)
        if (inputs[i]) QUOLL_RETURN_IF_ERROR(flat_weight(layer, bottoms[inputs[i]], opt, &flat[i]));
    Allocator* const a = opt.workspace_allocator;
    const int n = hidden_size;
    Mat lens(Shape(g.batch, DType::s32), 1, a);
    if (lens.empty()) return kOutOfMemory;
    QUOLL_RETURN_IF_ERROR(lengths(layer, g.lens ? &bottoms[g.lens] : nullptr, g, lens));
    g.y_d = (size_t)n * (tops[0].dims == 3 || layout == 1 ? 1 : g.batch);
    const bool batch_first = tops[0].dims == 4 && layout == 1;
    g.y_t = batch_first ? (size_t)n * num_directions() : tops[0].cstep;
    g.y_b = batch_first ? tops[0].cstep : n;
    if (g.lens) tops[0].fill(0.f);
    int results[2] = {kOk, kOk};
    const auto run = [&](int d, const Option& own) {
        Weights made;
        if (dynamic_weight) results[d] = make_weights(flat, d, a, &made);
        if (results[d] == kOk)
            results[d] = run_direction(dynamic_weight ? made : fixed_[d], d, input, bottoms, tops,
                                       lens, g, own);
    };
    typedef decltype(run) Run;
    const double work = (double)g.steps * g.batch * gates_ * n * (n + g.input);
    if (num_directions() == 1)
        run(0, opt);
    else
        for_both_directions(
            work, [](const void* f, int d, const Option& own) { (*(const Run*)f)(d, own); }, &run,
            opt);
    return results[0] != kOk ? results[0] : results[1];
}

}  // namespace quoll
