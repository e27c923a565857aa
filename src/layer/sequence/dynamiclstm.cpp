#include "layer/sequence/dynamiclstm.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include <algorithm>

namespace quoll {

DynamicLSTM::DynamicLSTM()
    : prev_out_delay(0),
      prev_cell_delay(0),
      prev_out_offset(0),
      prev_out_dim(0),
      prev_cell_dim(0),
      num_output(0),
      weight_data_size(0),
      bias_a(1),
      bias_b(1),
      scale(1.f),
      subsample_factor(1) {}

void DynamicLSTM::params(DynamicLSTM& s, ParamVisitor& v) {
    // Larger sizes can only be mistakes; the bound keeps products within 64 bits.
    const double most = 1 << 20;
    const Range size = between(1, most), delay = between(-most, -1), flag = between(0, 1);
    const Range index = between(0, INT_MAX);
    v(0, "prev_out_delay", s.prev_out_delay, 0, "frames back of the recurrent out, negative",
      delay);
    v(1, "prev_cell_delay", s.prev_cell_delay, 0, "frames back of the cell, negative", delay);
    v(2, "prev_out_offset", s.prev_out_offset, 0, "first output that recurs", between(0, most));
    v(3, "prev_out_dim", s.prev_out_dim, 0, "outputs that recur", size);
    v(4, "prev_cell_dim", s.prev_cell_dim, 0, "values of the cell", size);
    v(5, "num_output", s.num_output, 0, "values of an output frame", size);
    v(6, "weight_data_size", s.weight_data_size, 0, "scalars of weights_a", at_least(1));
    v(7, "bias_a", s.bias_a, 1, "1: bias_a_data is there", flag);
    v(8, "bias_b", s.bias_b, 1, "1: bias_b_data is there", flag);
    v(9, "scale", s.scale, 1.f, "factor of what is kept for later frames");
    v(10, "subsample_factor", s.subsample_factor, 1, "frames of the stream a frame run", size);
    v.ints(11, "forward_indexes", s.forward_indexes, "frames to run; none: all", index);
    v.ints(12, "out_cache_indexes", s.out_cache_indexes, "frames run whose out is kept", index);
    v.ints(13, "cell_cache_indexes", s.cell_cache_indexes, "frames run whose cell is kept", index);
}

void DynamicLSTM::weights(DynamicLSTM& s, WeightVisitor& v) {
    const int64_t cells = s.prev_cell_dim;
    v(true, "weights_a_data", s.weights_a_data, s.weight_data_size, WeightKind::kTagged,
      "[4][prev_cell_dim][input_dim + prev_out_dim]");
    v(true, "params_data", s.params_data, 3 * cells, WeightKind::kRaw, "[3][prev_cell_dim]");
    v(true, "weights_b_data", s.weights_b_data, cells * s.num_output, WeightKind::kTagged,
      "[num_output][prev_cell_dim]");
    v(s.bias_a != 0, "bias_a_data", s.bias_a_data, 4 * cells, WeightKind::kRaw,
      "[4][prev_cell_dim]");
    v(s.bias_b != 0, "bias_b_data", s.bias_b_data, s.num_output, WeightKind::kRaw, "[num_output]");
}

int DynamicLSTM::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    if (prev_out_delay % subsample_factor != 0 || prev_cell_delay % subsample_factor != 0)
        return fail("delays %d and %d: expected multiples of subsample_factor %d", prev_out_delay,
                    prev_cell_delay, subsample_factor);
    if (prev_out_offset + prev_out_dim > num_output)
        return fail("prev_out_offset %d and prev_out_dim %d exceed num_output %d", prev_out_offset,
                    prev_out_dim, num_output);
    if (weight_data_size % (4 * prev_cell_dim) != 0 || input_dim() < 1)
        return fail(
            "weight_data_size (6): expected a multiple of %d with rows of more than %d, got %d",
            4 * prev_cell_dim, prev_out_dim, weight_data_size);
    return kOk;
}

int DynamicLSTM::load_model(const ModelBin& mb) {
    QUOLL_RETURN_IF_ERROR(load_weights_by_schema(*this, mb));
    if (weights_a_data.dtype == DType::f32 && weights_b_data.dtype == DType::f32) return kOk;
    return fail("weights: expected f32");
}

int DynamicLSTM::check_indexes(const char* name, const Mat& indexes, int count, int below) const {
    if (count >= 0 && !indexes.empty() && indexes.w != count)
        return fail("%s: expected %d, got %d", name, count, indexes.w);
    for (int i = 0; i < indexes.w; i++)
        if (((const int*)indexes.data)[i] >= below)
            return fail("%s: expected indexes below %d, got %d", name, below,
                        ((const int*)indexes.data)[i]);
    return kOk;
}

int DynamicLSTM::shape(const DynamicLSTM& s, const std::vector<Shape>& in,
                       std::vector<Shape>& out) {
    const size_t outputs = output_count(s, out);
    if ((in.size() != 1 && in.size() != 3) || (outputs != 1 && outputs != 3))
        return s.fail("expected 1 or 3 inputs and outputs, got %zu and %zu", in.size(), outputs);
    const DType dtype = in[0].dtype;
    if (!accepts_float(s, dtype) || in[0].dims != 2 || in[0].w != s.input_dim())
        return s.fail("expected frames of %d values of f32, got %s of %s", s.input_dim(),
                      shape_text(in[0]).c_str(), dtype_name(dtype));
    const int frames = s.forward_indexes.empty() ? in[0].h : s.forward_indexes.w;
    Shape caches[2] = {Shape(s.prev_out_dim, s.out_rows(), dtype),
                       Shape(s.prev_cell_dim, s.cell_rows(), dtype)};
    for (int i = 0; i < 2; i++) {
        caches[i].n = in[0].n;
        if (in.size() > 1 && in[1 + i] != caches[i])
            return s.fail("input %d: expected %s of f32, got %s of %s", 1 + i,
                          shape_text(caches[i]).c_str(), shape_text(in[1 + i]).c_str(),
                          dtype_name(in[1 + i].dtype));
    }
    QUOLL_RETURN_IF_ERROR(s.check_indexes("forward_indexes", s.forward_indexes, -1, in[0].h));
    QUOLL_RETURN_IF_ERROR(
        s.check_indexes("out_cache_indexes", s.out_cache_indexes, s.out_rows(), frames));
    QUOLL_RETURN_IF_ERROR(
        s.check_indexes("cell_cache_indexes", s.cell_cache_indexes, s.cell_rows(), frames));
    out.assign(1, Shape(s.num_output, frames, dtype));
    out[0].n = in[0].n;
    if (outputs == 3) out.insert(out.end(), caches, caches + 2);
    return kOk;
}

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }

// weight x + bias, where x is in two parts.
static void affine(const float* weight, const Mat& bias, int rows, const float* x, int x_count,
                   const float* more, int more_count, float* out) {
    for (int row = 0; row < rows; row++) {
        double sum = bias.empty() ? 0.f : bias[row];
        for (int i = 0; i < x_count; i++) sum += (double)*weight++ * x[i];
        for (int i = 0; i < more_count; i++) sum += (double)*weight++ * more[i];
        out[row] = (float)sum;
    }
}

void DynamicLSTM::run_frame(const float* x, const float* out, const float* cell, float* gates,
                            float* y, float* next_cell) const {
    const int n = prev_cell_dim;
    affine(weights_a_data, bias_a_data, 4 * n, x, input_dim(), out, prev_out_dim, gates);
    const float* peephole = params_data;
    for (int q = 0; q < n; q++) {
        const double before = cell[q];
        const double i = sigmoid(gates[q] + peephole[q] * before);
        const double f = sigmoid(gates[n + q] + peephole[n + q] * before);
        const double c = f * before + i * tanh(gates[2 * n + q]);
        const double o = sigmoid(gates[3 * n + q] + peephole[2 * n + q] * c);
        next_cell[q] = (float)c * scale;
        gates[q] = (float)(o * tanh(c));
    }
    affine(weights_b_data, bias_b_data, num_output, gates, n, nullptr, 0, y);
}

// Rows of a cache from `kept`, which begins with the rows that came in.
static void store_cache(const Mat& kept, const Mat& indexes, int frames, Mat& cache) {
    for (int k = 0; k < cache.h; k++) {
        const int row = indexes.empty() ? frames + k : cache.h + ((const int*)indexes.data)[k];
        memcpy(cache.row(k), kept.row(row), cache.w * sizeof(float));
    }
}

int DynamicLSTM::forward(const std::vector<Mat>& bottom_blobs, std::vector<Mat>& top_blobs,
                         const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tops(*this, bottom_blobs, top_blobs, opt));
    const Mat& x = bottom_blobs[0];
    Mat& y = top_blobs[0];
    const int frames = y.h, rows[2] = {out_rows(), cell_rows()};
    Allocator* const a = opt.workspace_allocator;
    if (frames > INT_MAX - (1 << 20)) return fail("%d frames are too many", frames);
    // What is kept of each frame, after the rows that come in.
    Mat kept[2] = {Mat(prev_out_dim, rows[0] + frames, (size_t)4u, a),
                   Mat(prev_cell_dim, rows[1] + frames, (size_t)4u, a)};
    Mat gates(4 * prev_cell_dim, (size_t)4u, a);
    if (kept[0].empty() || kept[1].empty() || gates.empty()) return kOutOfMemory;
    for (int i = 0; i < 2; i++) {
        const size_t bytes = (size_t)rows[i] * kept[i].w * sizeof(float);
        if (bottom_blobs.size() > 1)
            memcpy(kept[i].data, bottom_blobs[1 + i].data, bytes);
        else
            memset(kept[i].data, 0, bytes);
    }
    for (int i = 0; i < frames; i++) {
        const int frame = forward_indexes.empty() ? i : ((const int*)forward_indexes.data)[i];
        run_frame(x.row(frame), kept[0].row(i), kept[1].row(i), gates, y.row(i),
                  kept[1].row(rows[1] + i));
        float* out = kept[0].row(rows[0] + i);
        for (int k = 0; k < prev_out_dim; k++) out[k] = y.row(i)[prev_out_offset + k] * scale;
    }
    if (top_blobs.size() == 1) return kOk;
    store_cache(kept[0], out_cache_indexes, frames, top_blobs[1]);
    store_cache(kept[1], cell_cache_indexes, frames, top_blobs[2]);
    return kOk;
}

int64_t DynamicLSTM::macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const {
    if (!first_sizes_known(in, out)) return -1;
    const int64_t weights = weight_data_size + (int64_t)prev_cell_dim * num_output;
    return weights * row_count(in[0]);
}

QUOLL_DEFINE_LAYER(DynamicLSTM)

}  // namespace quoll
