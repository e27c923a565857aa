// Multiply-accumulates by type of layer.
#include <map>

#include "graph/analysis.h"
#include "layer/conv_reference.h"
#include "layer/convinteger.h"
#include "layer/deformableconv2d.h"
#include "layer/einsum.h"
#include "layer/gemm.h"
#include "layer/innerproduct.h"
#include "layer/multiheadattention.h"

namespace quoll {

namespace {

typedef std::vector<Shape> Shapes;

bool known(const Shapes& shapes) {
    for (const Shape& shape : shapes)
        if (shape.dims == 0) return false;
    return !shapes.empty();
}

bool one_of(const Layer& op, std::initializer_list<const char*> types) {
    for (const char* type : types)
        if (op.type == type) return true;
    return false;
}

int64_t outermost(const Shape& s) { return s.size(0); }

// Scalars of the weights that are multiplied: those whose name has "weight" or "recurrent" in it.
class MultipliedWeights : public WeightVisitor {
public:
    int64_t count = 0;
    void operator()(bool present, const char* name, Mat&, WeightSize size, WeightKind kind,
                    const char*) override {
        const std::string text = name;
        const bool matrix =
            text.find("weight") != std::string::npos || text.find("recurrent") != std::string::npos;
        if (present && matrix && kind != WeightKind::kRaw)
            count += size.w * size.h * size.d * size.c;
    }
};

int64_t of_window(const ConvInteger& s, const Shape& in, const Shape& out) {
    return (int64_t)out.total() * s.kernel_w * s.kernel_h * (outermost(in) / s.group);
}

int64_t of_deconvolution(const ConvFields& s, const Shape& in) {
    const int64_t channels = outermost(in);
    const int64_t pixels = (int64_t)in.total() / channels;
    return pixels * channels * s.maxk() * (s.num_output / s.group);
}

int64_t of_convolution(const ConvFields& s, const Shape& in, const Shape& out) {
    return (int64_t)out.total() * s.maxk() * (outermost(in) / s.group);
}

int64_t of_gemm(const Gemm& s, const Shapes& in, const Shape& out) {
    if (s.constantA || s.constantB) {
        if (s.constantK > 0) return (int64_t)out.total() * s.constantK;
    }
    // A is the first input unless it is constant; then B is.
    const bool transposed = s.constantA ? !s.transB : s.transA != 0;
    const Shape& m = in[0];
    const int64_t rows = m.dims == 1 ? 1 : outermost(m);
    return (int64_t)out.total() * (transposed ? rows : m.w);
}

int64_t of_attention(const Shape& query, const Shape& key, const Shape& value) {
    // [heads][src][size], [groups][dst][size], [groups][dst][out_size]
    return (int64_t)query.c * query.h * key.h * ((int64_t)query.w + value.w);
}

// Projections of the rows, and the attention between them.
int64_t of_multihead(const MultiHeadAttention& s, const Shapes& in, const Shape& out) {
    const int64_t src = out.h, qdim = out.w, embed = s.embed_dim;
    const int inputs = (int)in.size() - (s.attn_mask ? 1 : 0) - (s.kv_cache ? 2 : 0);
    const int64_t fresh = inputs <= 1 ? src : in[1].h;
    int64_t dst = fresh;
    if (s.kv_cache && in.size() >= 2) {
        const Shape& past = in[in.size() - 2];
        if (past.dims != 0) dst = inputs <= 1 ? fresh + past.w : past.w;
    }
    const bool projects = dst == fresh || inputs <= 1;
    return 2 * src * qdim * embed + (projects ? fresh * embed * ((int64_t)s.kdim + s.vdim) : 0) +
           2 * src * dst * embed;
}

// The product of the sizes of all letters.
int64_t of_einsum(const Einsum& s, const Shapes& in) {
    std::map<int, int64_t> sizes;
    size_t input = 0;
    int axis = 0;
    const int* p = s.equation;
    for (int i = 0; i < s.equation.w && p[i] != '-'; i++) {
        if (p[i] == ',') {
            input++, axis = 0;
        } else if (p[i] != ' ' && input < in.size() && axis < in[input].dims) {
            sizes[p[i]] = in[input].size(axis++);
        }
    }
    int64_t product = 1;
    for (const auto& letter : sizes) product *= letter.second;
    return product;
}

}  // namespace

int64_t count_macs(Layer& op, const Shapes& in, const Shapes& out) {
    const bool convolution =
        one_of(op, {"Convolution", "ConvolutionDepthWise", "Convolution1D",
                    "ConvolutionDepthWise1D", "Convolution3D", "ConvolutionDepthWise3D"});
    const bool deconvolution =
        one_of(op, {"Deconvolution", "DeconvolutionDepthWise", "Deconvolution1D",
                    "DeconvolutionDepthWise1D", "Deconvolution3D", "DeconvolutionDepthWise3D"});
    const bool recurrent =
        one_of(op, {"RNN", "LSTM", "GRU", "OnnxRNN", "OnnxLSTM", "OnnxGRU", "DynamicLSTM"});
    const bool other =
        one_of(op, {"InnerProduct", "Gemm", "MatMul", "MatMulInteger", "MultiHeadAttention", "SDPA",
                    "Einsum", "DeformableConv2D", "ConvInteger"});
    if (!convolution && !deconvolution && !recurrent && !other) return 0;
    // The first sizes are all that most need; caches and masks may be absent.
    if (out.empty() || out[0].dims == 0 || in.empty() || in[0].dims == 0) return -1;
    if (convolution) return of_convolution(static_cast<ConvolutionOperator&>(op), in[0], out[0]);
    if (deconvolution) return of_deconvolution(static_cast<DeconvolutionOperator&>(op), in[0]);
    if (recurrent) {
        MultipliedWeights weights;
        op.visit_weights(weights);
        return weights.count * (in[0].dims == 1 ? 1 : in[0].h) * (in[0].dims == 3 ? in[0].c : 1);
    }
    if (op.type == "InnerProduct")
        return (int64_t)out[0].total() * static_cast<InnerProduct&>(op).num_input();
    if (op.type == "Gemm") return of_gemm(static_cast<Gemm&>(op), in, out[0]);
    if (op.type == "MatMul" || op.type == "MatMulInteger") return (int64_t)out[0].total() * in[0].w;
    if (op.type == "MultiHeadAttention")
        return of_multihead(static_cast<MultiHeadAttention&>(op), in, out[0]);
    if (op.type == "DeformableConv2D")
        return of_convolution(static_cast<DeformableConv2D&>(op), in[0], out[0]);
    if (op.type == "ConvInteger") return of_window(static_cast<ConvInteger&>(op), in[0], out[0]);
    if (!known(in)) return -1;
    if (op.type == "Einsum") return of_einsum(static_cast<Einsum&>(op), in);
    return in.size() < 3 ? -1 : of_attention(in[0], in[1], in[2]);
}

}  // namespace quoll
