#include "onnx/block_weights.h"

#include <algorithm>

#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

namespace {

// The largest blocks of Gemm; larger ones are several with the same scale.
enum { kLargest = 128 };

// Scales (or zero points) of blocks of `have` values for blocks of `want`, a part of it.
std::vector<float> cut(const std::vector<float>& of, int64_t rows, int64_t k, int64_t have,
                       int64_t want) {
    if (have == want || of.empty()) return of;
    const int64_t from = (k + have - 1) / have, to = (k + want - 1) / want;
    std::vector<float> all;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t b = 0; b < to; b++) all.push_back(of[(size_t)(r * from + b * want / have)]);
    return all;
}

// Blocks as Gemm has them, and no zero points where all are 0.
void settle(BlockWeight* w, int64_t block) {
    w->block = (int)std::min<int64_t>(block, kLargest);
    w->scales = cut(w->scales, w->rows, w->k, block, w->block);
    w->zeros = cut(w->zeros, w->rows, w->k, block, w->block);
    if (std::all_of(w->zeros.begin(), w->zeros.end(), [](float z) { return z == 0.f; }))
        w->zeros.clear();
}

// Bits that the values of a type take, signed; *middle: what is taken off unsigned ones.
int bits_of(ElementType type, int* middle) {
    *middle = type == ElementType::kUint4 ? 8 : type == ElementType::kUint8 ? 128 : 0;
    if (type == ElementType::kUint4 || type == ElementType::kInt4) return 4;
    return type == ElementType::kUint8 || type == ElementType::kInt8 ? 8 : 0;
}

const Tensor* constant(const Converter& c, const Node& node, size_t i) {
    const Value* v =
        i < node.inputs.size() && !node.inputs[i].empty() ? c.find_value(node.inputs[i]) : nullptr;
    return v && v->is_constant() ? v->constant.get() : nullptr;
}

int64_t attribute(const Node& node, const char* name, int64_t def) {
    const auto found = node.attributes.find(name);
    return found == node.attributes.end() ? def : found->second.i;
}

// DequantizeLinear's axis and the sizes around it; false if scales do not fit.
struct Blocks {
    int64_t block, size, inner, count;  // count: blocks along the axis
    int axis;

    bool read(const Node& node, const Tensor& x, const Tensor& scale, const Tensor* zero) {
        block = attribute(node, "block_size", 0);
        int64_t a = attribute(node, "axis", 1);
        if (a < 0) a += x.rank();
        if (block < 1 || a < 0 || a >= x.rank()) return false;
        axis = (int)a;
        size = x.dims[(size_t)axis];
        count = size / block + (size % block != 0);
        std::vector<int64_t> dims = x.dims;
        dims[(size_t)axis] = count;
        inner = 1;
        for (size_t i = (size_t)axis + 1; i < dims.size(); i++) inner *= dims[i];
        return scale.dims == dims && is_float(scale.type) &&
               (!zero || (zero->dims == dims && !is_float(zero->type)));
    }
    // The block of value i.
    size_t of(size_t i) const {
        const int64_t in = (int64_t)i % inner, along = (int64_t)i / inner % size,
                      outer = (int64_t)i / inner / size;
        return (size_t)((outer * count + along / block) * inner + in);
    }
};

}  // namespace

bool BlockWeight::takes(int bits, int64_t block) {
    return (bits == 4 || bits == 8) && (block == 16 || block == 32 || block == 64 ||
                                        (block > 0 && block <= 1 << 20 && block % kLargest == 0));
}

bool dequantize_blocks(Op& op) {
    const Tensor *x = constant(op.c, op.node, 0), *scale = constant(op.c, op.node, 1),
                 *zero = constant(op.c, op.node, 2);
    Blocks b;
    if (!x || !scale || (op.has(2) && !zero) || is_float(x->type) ||
        !b.read(op.node, *x, *scale, zero))
        return false;
    Tensor out(ElementType::kFloat, x->dims);
    const std::vector<int64_t> codes = x->ints(),
                               zeros = zero ? zero->ints() : std::vector<int64_t>();
    const std::vector<float> scales = scale->floats();
    float* const values = (float*)out.bytes();
    for (size_t i = 0; i < codes.size(); i++) {
        const size_t at = b.of(i);
        values[i] = (float)(codes[i] - (zero ? zeros[at] : 0)) * scales[at];
    }
    return op.set_constant(0, out) != nullptr;
}

std::shared_ptr<const BlockWeight> read_block_weight(const Converter& c, const Node& node) {
    const Tensor *x = constant(c, node, 0), *scale = constant(c, node, 1),
                 *zero = constant(c, node, 2);
    Blocks b;
    int middle = 0;
    const int bits = x ? bits_of(x->type, &middle) : 0;
    if (!bits || !scale || x->rank() != 2 || !b.read(node, *x, *scale, zero) ||
        !BlockWeight::takes(bits, b.block))
        return nullptr;
    auto w = std::make_shared<BlockWeight>();
    w->columns = b.axis == 0;
    w->bits = bits;
    w->k = b.size, w->rows = x->dims[w->columns ? 1 : 0];
    for (int64_t r = 0; r < w->rows; r++) {
        for (int64_t i = 0; i < w->k; i++) {
            const size_t at = (size_t)(w->columns ? i * w->rows + r : r * w->k + i);
            w->values.push_back((signed char)(x->int_at(at) - middle));
            if (i % b.block != 0) continue;
            w->scales.push_back(scale->float_at(b.of(at)));
            w->zeros.push_back((float)((zero ? zero->int_at(b.of(at)) : 0) - middle));
        }
    }
    settle(w.get(), b.block);
    return w;
}

std::shared_ptr<const BlockWeight> transposed(const BlockWeight& weight) {
    auto other = std::make_shared<BlockWeight>(weight);
    other->columns = !weight.columns;
    return other;
}

void set_block_product(ModelLayer* layer, const BlockWeight& w, const Mat* bias) {
    const int rows = (int)w.rows, k = (int)w.k, count = (int)w.scales.size();
    const int64_t bytes = (w.k * w.bits + 7) / 8;
    Mat values((int)(w.rows * bytes), (size_t)1u), scales(count);
    values.fill((signed char)0);
    unsigned char* to = (unsigned char*)values.data;
    for (int64_t r = 0; r < w.rows; r++, to += bytes) {
        for (int64_t i = 0; i < w.k; i++) {
            const unsigned q = (unsigned char)w.values[(size_t)(r * w.k + i)];
            if (w.bits == 8)
                to[i] = (unsigned char)q;
            else
                to[i / 2] |= (unsigned char)((q & 15) << i % 2 * 4);
        }
    }
    for (int i = 0; i < count; i++) scales[i] = 1.f / w.scales[(size_t)i];
    const int size = w.block == 16 ? 3 : w.block == 32 ? 0 : w.block == 64 ? 1 : 2;
    layer->set("transB", 1);
    layer->set("constantB", 1);
    layer->set("constantC", 1);
    layer->set("constantN", rows);
    layer->set("constantK", k);
    layer->set("constant_broadcast_type_C", bias ? 4 : -1);
    layer->set("quantize_term", w.bits * 100 + size);
    layer->set_weight("B_data", values);
    layer->set_weight("B_data_quantize_scales", scales);
    if (bias) layer->set_weight("C_data", *bias);
    if (w.zeros.empty()) return;
    Mat zeros(count);
    std::copy(w.zeros.begin(), w.zeros.end(), (float*)zeros);
    layer->set("quantize_zeros", 1);
    layer->set_weight("B_data_quantize_zeros", zeros);
}

namespace {

// Fills in w from MatMulNBits' inputs, whose sizes unpack_weights() checked.
void read_matmul_n_bits(Op& op, int64_t bits, int64_t block, BlockWeight* w) {
    const Tensor &data = *op.in(1)->constant, &scales = *op.in(2)->constant;
    const Tensor* zeros = op.has(3) ? op.in(3)->constant.get() : nullptr;
    const int64_t blocks = (w->k + block - 1) / block, each = 8 / bits, bytes = block / each;
    const int64_t zero_bytes = (blocks * bits + 7) / 8;
    const int mask = (1 << bits) - 1, middle = 1 << (bits - 1);
    const auto part = [&](const Tensor& t, int64_t first, int64_t i) {
        return (int)(t.int_at((size_t)(first + i / each)) >> i % each * bits) & mask;
    };
    for (int64_t r = 0; r < w->rows; r++) {
        for (int64_t i = 0; i < w->k; i++)
            w->values.push_back((signed char)(part(data, r * blocks * bytes, i) - middle));
        for (int64_t b = 0; b < blocks; b++) {
            w->scales.push_back(scales.float_at((size_t)(r * blocks + b)));
            float zero = (float)middle;
            if (zeros && is_float(zeros->type))
                zero = zeros->float_at((size_t)(r * blocks + b));
            else if (zeros)
                zero = (float)part(*zeros, r * zero_bytes, b);
            w->zeros.push_back(zero - (float)middle);
        }
    }
}

// Whether the inputs are constants of the sizes that follow from the attributes.
bool has_sizes(Op& op, int64_t bits, int64_t block, const BlockWeight& w) {
    const int64_t blocks = (w.k + block - 1) / block, zero_bytes = (blocks * bits + 7) / 8;
    for (int i : {1, 2, 3, 5})
        if (op.has(i) && !op.in(i)->is_constant()) return false;
    if (element_count({w.rows, w.k}) < 0) return false;
    const Tensor &data = *op.in(1)->constant, &scales = *op.in(2)->constant;
    const Tensor* zeros = op.has(3) ? op.in(3)->constant.get() : nullptr;
    const bool packed = zeros && !is_float(zeros->type);
    return (int64_t)data.count() == element_count({w.rows, blocks, block * bits / 8}) &&
           data.type == ElementType::kUint8 && is_float(scales.type) &&
           (int64_t)scales.count() == w.rows * blocks &&
           (!zeros || (int64_t)zeros->count() == w.rows * (packed ? zero_bytes : blocks)) &&
           (!op.has(5) || (int64_t)op.in(5)->constant->count() == w.rows);
}

}  // namespace

bool block_product(Op& op) {
    Value* x = op.in(0);
    const int64_t bits = op.attr("bits", 4), block = op.attr("block_size", 32);
    BlockWeight w;
    w.rows = op.attr("N", 0), w.k = op.attr("K", 0);
    w.bits = bits == 2 ? 4 : (int)bits;
    const int rank = x->rank();
    if (w.rows < 1 || w.k < 1 || (bits != 2 && bits != 4 && bits != 8) ||
        !BlockWeight::takes(w.bits, block) || op.has(4) || rank < 2 || x->is_constant() ||
        !x->floats() || !same(x->shape[(size_t)rank - 1], Dim(w.k)) ||
        !has_sizes(op, bits, block, w))
        return false;
    read_matmul_n_bits(op, bits, block, &w);
    settle(&w, block);
    const bool batch = x->form.batch && rank > 2;
    const Form form{batch, {rank - 1 - (batch ? 1 : 0), 1}};
    const std::string from = op.blob(x, form);
    if (from.empty()) return false;
    ModelLayer& layer = op.emit("Gemm", {from});
    Mat bias;
    if (op.has(5)) {
        bias = op.in(5)->constant->weight();
        op.c.keep(*op.in(5)->constant);
    }
    set_block_product(&layer, w, op.has(5) ? &bias : nullptr);
    std::vector<Dim> shape = x->shape;
    shape.back() = Dim(w.rows);
    op.set(0, x->type, shape, form, layer.outputs[0]);
    op.c.count("weights in blocks of few bits");
    return true;
}

}  // namespace onnx_tool
}  // namespace quoll
