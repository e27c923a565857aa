#include "quantize/weight_kinds.h"

#include <math.h>
#include <string.h>

#include <algorithm>
#include <set>
#include <vector>

#include "common/layer_fields.h"
#include "layer/common/block_quant.h"
#include "layer/common/schema.h"
#include "layer/nn/convolution.h"
#include "layer/nn/embed.h"
#include "layer/nn/gemm.h"
#include "layer/nn/innerproduct.h"
#include "layer/sequence/gru.h"
#include "layer/sequence/lstm.h"
#include "layer/sequence/rnn.h"
#include "quantize/gemm_rows.h"
#include "quantize/targets.h"
#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

namespace {

// What "block4x64z" says.
struct BlockKind {
    int bits = 0, block = 64;
    bool zeros = false;

    // BlockQuant's quantize_term.
    int term() const {
        return bits * 100 + (block == 16 ? 3 : block == 32 ? 0 : block == 64 ? 1 : 2);
    }
};

// False for what is no such kind.
bool parse_block(std::string kind, BlockKind* k) {
    k->zeros = !kind.empty() && kind.back() == 'z';
    if (k->zeros) kind.pop_back();
    char rest = 0;
    const int read = sscanf(kind.c_str(), "block%dx%d%c", &k->bits, &k->block, &rest);
    const bool form = read == 2 || (read == 1 && kind == "block" + std::to_string(k->bits));
    return form && (k->bits == 3 || k->bits == 4 || k->bits == 6 || k->bits == 8) &&
           (k->block == 16 || k->block == 32 || k->block == 64 || k->block == 128);
}

bool all_finite(const Mat& m) {
    for (int i = 0; i < m.w; i++)
        if (!std::isfinite(m[i])) return false;
    return true;
}

float largest(const float* p, int count) {
    float most = 0.f;
    for (int i = 0; i < count; i++) most = std::max(most, fabsf(p[i]));
    return most;
}

Mat to_mat(const std::vector<float>& values) {
    Mat m((int)values.size());
    std::copy(values.begin(), values.end(), (float*)m);
    return m;
}

Mat bytes_mat(int count) { return Mat(Shape(count, DType::s8), 1); }

// The names of weights whose storage the file says.
class TaggedWeights : public WeightVisitor {
public:
    std::set<std::string> names;
    void operator()(bool present, const char* name, Mat&, WeightSize, WeightKind kind,
                    const char*) override {
        if (present && kind == WeightKind::kTagged) names.insert(name);
    }
};

int narrow(DType dtype, ModelWeight* weight) {
    const Mat wide = weight->stored.data.reshape((int)weight->stored.data.logical_shape().total());
    Mat m;
    if (dtype == DType::f16 && largest(wide, wide.w) > 65504.f) return kOk;
    if (dtype == DType::f16)
        cast_float32_to_float16(wide, m);
    else
        cast_float32_to_bfloat16(wide, m);
    if (m.empty()) return kOutOfMemory;
    weight->stored = StoredWeight(m);
    return kOk;
}

// Rows of s8 with a scale each.
int narrow_rows(int rows, ModelWeight* weight) {
    const Mat wide = weight->stored.data.reshape((int)weight->stored.data.logical_shape().total());
    Mat values = bytes_mat(wide.w), scales(rows);
    if (values.empty() || scales.empty()) return kOutOfMemory;
    const int each = wide.w / rows;
    signed char* to = values;
    for (int r = 0; r < rows; r++) {
        const float* from = (const float*)wide + (size_t)r * each;
        const float most = largest(from, each);
        scales[r] = most > 0.f ? most / 127.f : 1.f;
        for (int i = 0; i < each; i++) to[(size_t)r * each + i] = float2int8(from[i] / scales[r]);
    }
    weight->stored = StoredWeight::int8(values, scales, false);
    return kOk;
}

// 256 values that are near the weights: quantiles to begin with, then Lloyd's iterations on the
// sorted weights.
int narrow_table(ModelWeight* weight) {
    const Mat wide = weight->stored.data.reshape((int)weight->stored.data.logical_shape().total());
    std::vector<float> sorted((const float*)wide, (const float*)wide + wide.w);
    std::sort(sorted.begin(), sorted.end());
    std::vector<double> sums(sorted.size() + 1, 0);
    for (size_t i = 0; i < sorted.size(); i++) sums[i + 1] = sums[i] + sorted[i];
    const int kEntries = 256;
    const float low = sorted.front(), high = sorted.back();
    std::vector<float> table(kEntries);
    for (int i = 0; i < kEntries; i++) {
        // Half by place and half by value, so that tails have entries too.
        const float even = low + (high - low) * i / (kEntries - 1);
        table[i] = 0.5f * (even + sorted[sorted.size() * i / kEntries]);
    }
    table.front() = low, table.back() = high;
    std::sort(table.begin(), table.end());
    for (int round = 0; round < 30; round++) {
        size_t from = 0;
        for (int i = 0; i < kEntries; i++) {
            const float edge = i + 1 < kEntries ? 0.5f * (table[i] + table[i + 1]) : INFINITY;
            const size_t to =
                (size_t)(std::upper_bound(sorted.begin(), sorted.end(), edge) - sorted.begin());
            if (to > from) table[i] = (float)((sums[to] - sums[from]) / (double)(to - from));
            from = std::max(from, to);
        }
        std::sort(table.begin(), table.end());
    }
    Mat indexes(Shape(wide.w, DType::u8), 1), entries(kEntries);
    if (indexes.empty() || entries.empty()) return kOutOfMemory;
    std::copy(table.begin(), table.end(), (float*)entries);
    unsigned char* to = indexes;
    for (int i = 0; i < wide.w; i++) {
        const auto next = std::lower_bound(table.begin(), table.end(), wide[i]);
        int at = (int)(next - table.begin());
        if (at == kEntries || (at > 0 && wide[i] - table[at - 1] < table[at] - wide[i])) at--;
        to[i] = (unsigned char)at;
    }
    weight->stored = StoredWeight(indexes);
    weight->stored.table = entries;
    return kOk;
}

// Rows that share nothing: outputs of products and convolutions, words of tables.
int row_count_of(const ModelLayer& layer) {
    const std::unique_ptr<Layer> op = layer.make_operator();
    const int rows = op ? int_field(op.get(), "num_output") : 0;
    if (const Gemm* gemm = as<Gemm>(op.get()))
        return gemm->transB ? gemm->constantN : gemm->constantK;
    if (const Embed* embed = as<Embed>(op.get())) return embed->input_dim;
    return rows;
}

// A product's weights as rows of one output each, and the Gemm that is to have them.
struct Product {
    Mat weight;
    int n = 0, k = 0;
    ModelLayer gemm;
};

int read_inner_product(const InnerProduct& op, const ModelLayer& layer, const Shape& input,
                       Product* p, std::string* why) {
    p->n = op.num_output, p->k = op.weight_data_size / op.num_output;
    if (op.activation_type != 0 || op.int8_scale_term != 0)
        return *why = "an inner product with activation has no blocks of weights", kOk;
    // With other inputs the product would be a blob of more axes.
    if (input.dims != 2 || input.w != p->k)
        return *why = "blocks of weights take rows: its input is not known to have 2 axes", kOk;
    p->weight = float_weight(layer, "weight_data");
    const Mat bias = float_weight(layer, "bias_data");
    p->gemm = layer;
    p->gemm.type = "Gemm", p->gemm.params = ParamDict(), p->gemm.weights.clear();
    p->gemm.set("constantC", 1);
    p->gemm.set("constant_broadcast_type_C", bias.empty() ? -1 : 4);
    p->gemm.set("constantN", p->n), p->gemm.set("constantK", p->k);
    if (!bias.empty()) p->gemm.set_weight("C_data", bias);
    return kOk;
}

int read_gemm(const Gemm& op, const ModelLayer& layer, Product* p, std::string* why) {
    const bool fits = op.constantB && !op.constantA && !op.transA && !op.output_N1M &&
                      !op.output_transpose && op.quantize_term == 0;
    if (!fits) return *why = "this form of Gemm has no blocks of weights", kOk;
    p->n = op.constantN, p->k = op.constantK;
    p->gemm = layer;
    p->weight = gemm_rows(op, layer);
    return kOk;
}

// Rounded so that one unit of the integers is an f16 value, if it is not too small or too large for
// that: such weights take a tenth less memory.
float half_scale(float unit) {
    const bool normal = unit >= 0x1p-14f && unit < 65504.f;
    return 1.f / (normal ? float16_to_float32(float32_to_float16(unit)) : unit);
}

// A block's scale, and its zero point where it has one: those that cost least, of those that may
// clip the outermost values.
void fit_block(WeightGrid* grid, int row, int first, int count, bool zeros) {
    const float* values = (const float*)grid->weight + (size_t)row * grid->width + first;
    const float limit = largest(values, count);
    const auto ends = std::minmax_element(values, values + count);
    const float low = std::min(*ends.first, 0.f), high = std::max(*ends.second, 0.f);
    const float widest =
        zeros ? (high - low) / (float)(grid->most - grid->least) : limit / (float)grid->most;
    const size_t at = grid->stretch_of(row, first);
    double least = INFINITY;
    float best_scale = 1.f, best_zero = 0.f;
    for (int step = 0; step < 16 && widest > 0.f; step++) {
        const float shrink = 1.f - 0.03f * (float)step;
        grid->scales[at] = half_scale(widest * shrink);
        if (zeros) grid->zeros[at] = roundf((float)grid->least - low * shrink * grid->scales[at]);
        double error = 0;
        for (int i = 0; i < count; i++) {
            const float got = grid->value(row, first + i, grid->nearest(row, first + i, values[i]));
            error += ((double)values[i] - got) * ((double)values[i] - got);
        }
        if (error >= least) continue;
        least = error, best_scale = grid->scales[at];
        if (zeros) best_zero = grid->zeros[at];
    }
    grid->scales[at] = best_scale;
    if (zeros) grid->zeros[at] = best_zero;
}

void fit_blocks(WeightGrid* grid, bool zeros) {
    const size_t count = (size_t)grid->rows * ((grid->width + grid->stretch - 1) / grid->stretch);
    grid->scales.assign(count, 1.f);
    grid->zeros.assign(zeros ? count : 0, 0.f);
    for (int row = 0; row < grid->rows; row++)
        for (int first = 0; first < grid->width; first += grid->stretch)
            fit_block(grid, row, first, std::min(grid->stretch, grid->width - first), zeros);
}

// A scale for each block of each row.
WeightGrid grid_of(const BlockKind& kind, const Product& p) {
    WeightGrid grid;
    grid.weight = p.weight, grid.rows = p.n, grid.width = p.k, grid.stretch = kind.block;
    grid.most = (1 << (kind.bits - 1)) - 1, grid.least = -grid.most - 1;
    const bool zeros = kind.zeros;
    grid.fit = [zeros](WeightGrid* of) { fit_blocks(of, zeros); };
    grid.fit(&grid);
    return grid;
}

// Rows of integers as BlockQuant has them. rounded: or null, for the nearest.
void pack_blocks(const BlockQuant& quant, const WeightGrid& grid, const signed char* rounded,
                 Mat* values) {
    const int64_t bytes = quant.row_bytes(grid.width);
    memset(values->data, 0, (size_t)(grid.rows * bytes));
    for (int row = 0; row < grid.rows; row++) {
        unsigned char* to = (unsigned char*)values->data + row * bytes;
        for (int i = 0; i < grid.width; i++) {
            const size_t at = (size_t)row * grid.width + i;
            const int q = rounded ? rounded[at] : (int)grid.nearest(row, i, grid.weight[at]);
            const int64_t bit = (int64_t)i * quant.bits;
            const unsigned word = ((unsigned)q & ((1u << quant.bits) - 1)) << bit % 8;
            to[bit / 8] |= (unsigned char)word;
            if (word > 255) to[bit / 8 + 1] |= (unsigned char)(word >> 8);
        }
    }
}

// The product that a layer is, if it can have weights in blocks.
int read_product(const Shape& input, const ModelLayer& layer, Product* p, std::string* why) {
    const std::unique_ptr<Layer> op = layer.make_operator();
    if (const InnerProduct* product = as<InnerProduct>(op.get()))
        QUOLL_RETURN_IF_ERROR(read_inner_product(*product, layer, input, p, why));
    else if (const Gemm* gemm = as<Gemm>(op.get()))
        QUOLL_RETURN_IF_ERROR(read_gemm(*gemm, layer, p, why));
    else
        *why = layer.type + " has no blocks of weights";
    if (why->empty() && (p->weight.empty() || !all_finite(p->weight)))
        *why = "its weights are not there as finite numbers";
    return kOk;
}

int set_blocks(const BlockKind& kind, const Shape& input, const RoundedLayer* rounded,
               ModelLayer* layer, std::string* why) {
    Product p;
    QUOLL_RETURN_IF_ERROR(read_product(input, *layer, &p, why));
    if (!why->empty()) return kOk;
    if (rounded && rounded->values.size() != (size_t)p.n * p.k) rounded = nullptr;
    const bool factors = rounded && !rounded->inputs.empty();
    if (factors) {
        p.weight = p.weight.clone();
        for (int i = 0; i < p.weight.w; i++) p.weight[i] /= rounded->inputs[(size_t)(i % p.k)];
    }
    const int term = kind.term() + (factors ? 10 : 0);
    const BlockQuant quant(term);
    const WeightGrid grid = grid_of(kind, p);
    Mat values = bytes_mat((int)(p.n * quant.row_bytes(p.k)));
    if (values.empty()) return kOutOfMemory;
    pack_blocks(quant, grid, rounded ? rounded->values.data() : nullptr, &values);
    p.gemm.set("transB", 1), p.gemm.set("constantB", 1);
    p.gemm.set("quantize_term", term);
    p.gemm.set_weight("B_data", values);
    p.gemm.set_weight("B_data_quantize_scales", to_mat(grid.scales));
    if (kind.zeros) {
        p.gemm.set("quantize_zeros", 1);
        p.gemm.set_weight("B_data_quantize_zeros", to_mat(grid.zeros));
    }
    if (factors) p.gemm.set_weight("B_data_input_scales", to_mat(rounded->inputs));
    *layer = p.gemm;
    return kOk;
}

// Int8 with a scale for each of `rows`, by which they are divided.
int round_rows(const Mat& weight, int rows, Mat* values, Mat* scales) {
    scales->create(rows);
    if (scales->empty()) return kOutOfMemory;
    const int each = weight.w / rows;
    for (int p = 0; p < rows; p++) {
        const float most = largest((const float*)weight + (size_t)p * each, each);
        (*scales)[p] = most > 0.f ? 127.f / most : 1.f;
    }
    *values = quantize_weight(weight, *scales);
    return values->empty() ? kOutOfMemory : kOk;
}

const Recurrent* recurrent_of(const Layer* op) {
    if (const LSTM* lstm = as<LSTM>(op)) return lstm;
    if (const GRU* gru = as<GRU>(op)) return gru;
    return as<RNN>(op);
}

int set_dynamic_recurrent(const Recurrent& op, ModelLayer* layer, std::string* why) {
    if (op.int8_scale_term != 0) return kOk;
    const int rows = op.num_directions() * op.gates() * op.hidden_size;
    Mat values[2], scales[2];
    const char* const names[] = {"weight_xc_data", "weight_hc_data"};
    for (int i = 0; i < 2; i++) {
        const Mat weight = float_weight(*layer, names[i]);
        if (weight.empty() || !all_finite(weight))
            return *why = "its weights are not there as finite numbers", kOk;
        QUOLL_RETURN_IF_ERROR(round_rows(weight, rows, &values[i], &scales[i]));
    }
    layer->set("int8_scale_term", 2);
    for (int i = 0; i < 2; i++) {
        layer->set_weight(names[i], values[i]);
        layer->set_weight((std::string(names[i]) + "_int8_scales").c_str(), scales[i]);
    }
    return kOk;
}

int set_dynamic(ModelLayer* layer, std::string* why) {
    const std::unique_ptr<Layer> op = layer->make_operator();
    if (const Recurrent* recurrent = recurrent_of(op.get()))
        return set_dynamic_recurrent(*recurrent, layer, why);
    if (const InnerProduct* product = as<InnerProduct>(op.get())) {
        if (product->int8_scale_term != 0) return kOk;
        const Mat weight = float_weight(*layer, "weight_data");
        if (weight.empty() || !all_finite(weight))
            return *why = "its weights are not there as finite numbers", kOk;
        Mat values, scales;
        QUOLL_RETURN_IF_ERROR(round_rows(weight, product->num_output, &values, &scales));
        layer->set("int8_scale_term", 2);
        layer->set("int8_affine", 2);
        layer->set_weight("weight_data", values);
        layer->set_weight("weight_data_int8_scales", scales);
        return kOk;
    }
    if (const Gemm* gemm = as<Gemm>(op.get())) {
        if (gemm->quantize_term != 0) return kOk;
        if (!gemm->constantB || gemm->constantA)
            return *why = "only Gemm with constant B is made dynamic", kOk;
        const Mat weight = float_weight(*layer, "B_data");
        if (weight.empty() || !all_finite(weight))
            return *why = "its weights are not there as finite numbers", kOk;
        const float most = largest(weight, weight.w);
        Mat scale(1);
        scale[0] = most > 0.f ? 127.f / most : 1.f;
        const Mat values = quantize_weight(weight, scale);
        if (values.empty()) return kOutOfMemory;
        layer->set("quantize_term", 1);
        layer->set_weight("B_data", values);
        layer->set_weight("B_data_int8_scale", scale);
        return kOk;
    }
    return *why = layer->type + " has no int8 form with scales of each run", kOk;
}

}  // namespace

bool is_weight_kind(const std::string& kind) {
    BlockKind block;
    for (const char* known :
         {"float", "int8", "affine", "a16w8", "fp16", "bf16", "weights8", "table8", "dynamic"})
        if (kind == known) return true;
    return parse_block(kind, &block);
}

std::string weight_kind_names() {
    return "int8, affine, a16w8, dynamic, weights8, table8, block3, block4, block6, block8 (x16, "
           "x32, "
           "x64, x128, "
           "then z: "
           "zero points), fp16, "
           "bf16, "
           "float";
}

bool block_grid(const std::string& kind, const Shape& input, const ModelLayer& layer,
                WeightGrid* grid) {
    BlockKind block;
    Product p;
    std::string why;
    if (layer.custom() || !parse_block(kind, &block) || read_product(input, layer, &p, &why) ||
        !why.empty())
        return false;
    *grid = grid_of(block, p);
    return true;
}

int store_weight_kind(const std::string& kind, const Shape& input, const RoundedLayer* rounded,
                      ModelLayer* layer, std::string* why) {
    BlockKind block;
    if (layer->custom()) return *why = "it is a custom layer", kOk;
    if (parse_block(kind, &block)) return set_blocks(block, input, rounded, layer, why);
    if (kind == "dynamic") return set_dynamic(layer, why);
    const int rows = row_count_of(*layer);
    const std::unique_ptr<Layer> op = layer->make_operator();
    if (!op) return kError;
    TaggedWeights tagged;
    op->visit_weights(tagged);
    bool any = false;
    for (ModelWeight& weight : layer->weights) {
        const DType stored = weight.stored.data.dtype;
        const bool bytes = kind == "weights8" || kind == "table8";
        const bool half = bytes && (stored == DType::f16 || stored == DType::bf16);
        if (!tagged.names.count(weight.name) || (stored != DType::f32 && !half)) continue;
        const Mat flat = float_weight(*layer, weight.name.c_str());
        if (flat.empty()) return kOutOfMemory;
        if (!all_finite(flat)) continue;
        if (kind == "weights8" && (rows < 1 || flat.w % rows != 0)) continue;
        if (kind == "table8" && flat.w < 1024) continue;  // the table would be larger
        weight.stored = StoredWeight(flat);
        const int result = kind == "fp16"       ? narrow(DType::f16, &weight)
                           : kind == "bf16"     ? narrow(DType::bf16, &weight)
                           : kind == "weights8" ? narrow_rows(rows, &weight)
                                                : narrow_table(&weight);
        QUOLL_RETURN_IF_ERROR(result);
        any |= weight.stored.data.dtype != DType::f32;  // values beyond f16 stay as they are
    }
    if (!any) *why = "it has no weights that " + kind + " makes smaller";
    return kOk;
}

}  // namespace quoll
