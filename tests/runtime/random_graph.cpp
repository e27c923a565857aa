#include "random_graph.h"

#include <algorithm>
#include <memory>

#include "quoll/datareader.h"
#include "quoll/layer.h"
#include "quoll/paramdict.h"
#include "runtime/log_mute.h"

namespace quoll {

namespace {

// What keeps a test fast.
const size_t kMostValues = 60000;

std::string text(int v) { return std::to_string(v); }
std::string field(int id, int v) { return " " + text(id) + "=" + text(v); }
std::string field(int id, float v) { return " " + text(id) + "=" + std::to_string(v); }

Shape input_shape(std::mt19937* engine) {
    static const int kChannels[] = {1, 2, 3, 3, 4, 5, 8, 12, 16, 24, 32, 33, 48, 64};
    const auto number = [&](unsigned low, unsigned high) {
        return (int)(low + (*engine)() % (high - low + 1));
    };
    const int c = kChannels[number(0, 13)];
    switch (number(0, 9)) {
        case 0:
            return Shape(number(1, 200));
        case 1:
            return Shape(number(1, 70), number(1, 70));
        case 2:
            return Shape(number(1, 9), number(1, 9), number(1, 6), c);
        default:
            return Shape(number(1, 30), number(1, 30), c);
    }
}

}  // namespace

RandomGraph::RandomGraph(unsigned seed, int layers) : engine_(seed) {
    blobs_.push_back({"x0", input_shape(&engine_), 0});
    const Shape& s = blobs_[0].shape;
    std::string line = "Input input 0 1 x0" + field(0, s.w);
    if (s.dims > 1) line += field(1, s.h);
    if (s.dims > 3) line += field(11, s.d);
    if (s.dims > 2) line += field(2, s.c);
    lines_.push_back(line);
    for (int tries = 0; (int)lines_.size() <= layers && tries < 20 * layers; tries++) add_any();
}

std::string RandomGraph::param() const {
    std::string all = "7767517\n" + text((int)lines_.size()) + " " + text((int)names_) + "\n";
    for (const std::string& line : lines_) all += line + "\n";
    return all;
}

std::vector<std::string> RandomGraph::outputs() const {
    std::vector<std::string> names;
    for (const Blob& b : blobs_)
        if (b.readers == 0) names.push_back(b.name);
    return names;
}

std::vector<std::string> RandomGraph::blobs() const {
    std::vector<std::string> names;
    for (const Blob& b : blobs_) names.push_back(b.name);
    return names;
}

// Rather a late one, so that graphs become deep.
int RandomGraph::pick_blob() {
    const int count = (int)blobs_.size();
    return chance(3) ? number(0, count - 1) : std::max(0, count - 1 - number(0, 1));
}

int RandomGraph::same_shape(int blob) {
    std::vector<int> found;
    for (int i = 0; i < (int)blobs_.size(); i++)
        if (i != blob && blobs_[i].shape == blobs_[blob].shape) found.push_back(i);
    return found.empty() ? -1 : found[(size_t)number(0, (int)found.size() - 1)];
}

int RandomGraph::channels() {
    static const int kCounts[] = {1, 2, 3, 4, 6, 7, 8, 12, 16, 20, 24, 32, 40, 48, 64, 72};
    return kCounts[number(0, 15)];
}

// As convolutions take it; mostly none.
std::string RandomGraph::activation() {
    switch (number(0, 9)) {
        case 0:
            return " 9=1";
        case 1:
            return " 9=2 -23310=1,0.2";
        case 2:
            return " 9=3 -23310=2,-0.5,0.75";
        case 3:
            return " 9=4";
        case 4:
            return " 9=5";
        case 5:
            return " 9=6 -23310=2,0.2,0.5";
        default:
            return "";
    }
}

// Kernel, dilation, stride and padding of two axes.
std::string RandomGraph::window(int* kernel) {
    static const int kKernels[] = {1, 1, 2, 3, 3, 3, 4, 5, 7};
    const int w = kKernels[number(0, 8)], h = chance(4) ? kKernels[number(0, 8)] : w;
    *kernel = w * h;
    std::string p = field(1, w) + field(11, h);
    if (chance(4)) p += field(2, number(2, 3));
    if (chance(8)) p += field(12, number(1, 4));
    if (chance(3)) p += field(3, number(1, 3));
    if (chance(8)) p += field(13, number(1, 3));
    if (chance(2)) p += field(4, chance(3) ? number(-234, -233) : w / 2);
    if (chance(8)) p += field(14, number(0, 3));
    return p;
}

// False if the operator does not take that.
bool RandomGraph::add(const char* type, std::vector<int> inputs, const std::string& params,
                      int outputs) {
    std::unique_ptr<Layer> layer(create_layer_reference(type));
    ParamDict pd;
    const LogMute quiet;
    const unsigned char* text_of = (const unsigned char*)params.c_str();
    if (!layer || pd.load_param(DataReaderFromMemory(text_of, params.size()), type) != 0 ||
        layer->load_param(pd) != 0)
        return false;
    std::vector<Shape> in, out;
    for (int i : inputs) in.push_back(blobs_[i].shape);
    if (layer->infer_shapes(in, out) != 0 || (int)out.size() != outputs) return false;
    for (const Shape& s : out)
        if (s.dims == 0 || s.total() == 0 || s.total() > kMostValues || s.dtype != DType::f32)
            return false;
    std::string line = std::string(type) + " l" + text((int)lines_.size()) + " " +
                       text((int)inputs.size()) + " " + text(outputs);
    for (int i : inputs) {
        line += " " + blobs_[i].name;
        blobs_[i].readers++;
    }
    for (const Shape& s : out) {
        blobs_.push_back({"x" + text((int)names_++), s, 0});
        line += " " + blobs_.back().name;
    }
    lines_.push_back(line + params);
    return true;
}

bool RandomGraph::add_any() {
    typedef bool (RandomGraph::*Add)(int);
    static const Add kAll[] = {&RandomGraph::add_convolution, &RandomGraph::add_convolution,
                               &RandomGraph::add_convolution, &RandomGraph::add_deconvolution,
                               &RandomGraph::add_pooling,     &RandomGraph::add_per_channel,
                               &RandomGraph::add_norm,        &RandomGraph::add_activation,
                               &RandomGraph::add_activation,  &RandomGraph::add_arithmetic,
                               &RandomGraph::add_arithmetic,  &RandomGraph::add_join,
                               &RandomGraph::add_slice,       &RandomGraph::add_moves,
                               &RandomGraph::add_views,       &RandomGraph::add_reduction,
                               &RandomGraph::add_product,     &RandomGraph::add_attention,
                               &RandomGraph::add_recurrent,   &RandomGraph::add_squeeze_excite};
    return (this->*kAll[number(0, (int)(sizeof(kAll) / sizeof(kAll[0])) - 1)])(pick_blob());
}

bool RandomGraph::add_convolution(int from) {
    const Shape in = blobs_[from].shape;
    int kernel;
    std::string p = window(&kernel);
    const std::string end = field(5, number(0, 1)) + activation();
    const int out = channels();
    if (in.dims == 2) {
        const int w = number(1, 5);
        p = field(0, out) + field(1, w) + field(3, number(1, 2)) + field(4, number(0, 2)) +
            field(6, out * in.h * w);
        return add("Convolution1D", {from}, p + end);
    }
    if (in.dims == 4) {
        const int k = number(1, 3);
        p = field(0, out) + field(1, k) + field(3, number(1, 2)) + field(4, number(0, 1)) +
            field(6, out * in.c * k * k * k);
        return add("Convolution3D", {from}, p + end);
    }
    if (in.dims != 3) return false;
    if (chance(3)) {
        int group = in.c;
        if (chance(3))
            for (int g = number(1, in.c); in.c % group != 0 || group > g; group--) continue;
        const int each = chance(4) ? 2 : 1, outs = group == in.c ? in.c * each : group * each * 2;
        p = field(0, outs) + p + field(7, group) + field(6, outs * (in.c / group) * kernel);
        return add("ConvolutionDepthWise", {from}, p + end);
    }
    p = field(0, out) + p + field(6, out * in.c * kernel);
    return add("Convolution", {from}, p + end);
}

bool RandomGraph::add_deconvolution(int from) {
    const Shape in = blobs_[from].shape;
    if (in.dims != 3) return false;
    const int k = number(1, 4), out = channels();
    const std::string p = field(1, k) + field(3, number(1, 3)) + field(4, number(0, k / 2)) +
                          field(5, number(0, 1)) + field(18, number(0, 1)) + activation();
    if (chance(2))
        return add("DeconvolutionDepthWise", {from},
                   field(0, in.c) + p + field(7, in.c) + field(6, in.c * k * k));
    return add("Deconvolution", {from}, field(0, out) + p + field(6, out * in.c * k * k));
}

bool RandomGraph::add_pooling(int from) {
    const Shape in = blobs_[from].shape;
    std::string p = field(0, number(0, 1));
    const char* const type = in.dims == 2 ? "Pooling1D" : in.dims == 4 ? "Pooling3D" : "Pooling";
    if (in.dims < 2) return false;
    if (chance(4)) return add(type, {from}, p + " 4=1");
    if (chance(4)) return add(type, {from}, p + " 7=1" + field(8, number(1, 6)));
    const int k = number(1, 5);
    p += field(1, k) + field(2, number(1, 3)) + field(3, number(0, k / 2)) +
         field(5, number(0, 3)) + field(6, number(0, 1));
    return add(type, {from}, p);
}

bool RandomGraph::add_per_channel(int from) {
    const Shape in = blobs_[from].shape;
    const int c = in.size(0);
    switch (number(0, 4)) {
        case 0:
            return add("BatchNorm", {from}, field(0, c) + " 1=0.01");
        case 1:
            return add("Scale", {from}, field(0, c) + field(1, number(0, 1)));
        case 2:
            return add("Bias", {from}, field(0, in.dims > 2 ? c : 1));
        case 3:
            return add("PReLU", {from}, field(0, chance(3) ? 1 : c));
        default:
            return add("Dropout", {from}, chance(2) ? " 0=0.5" : "");
    }
}

bool RandomGraph::add_norm(int from) {
    const Shape in = blobs_[from].shape;
    switch (number(0, 6)) {
        case 0:
            return add("InstanceNorm", {from}, field(0, chance(2) ? in.size(0) : 0) + " 1=0.1");
        case 1: {
            int groups = number(1, 4);
            if (in.size(0) % groups) groups = 1;
            return add("GroupNorm", {from},
                       field(0, groups) + field(1, in.size(0)) + " 2=0.1" + field(3, number(0, 1)));
        }
        case 2:
            return add("LayerNorm", {from}, field(0, in.w) + " 1=0.1" + field(2, number(0, 1)));
        case 3:
            return add("RMSNorm", {from}, field(0, in.w) + " 1=0.1" + field(2, number(0, 1)));
        case 4:
            return add("LRN", {from}, field(0, number(0, 1)) + field(1, 1 + 2 * number(0, 3)));
        case 5:
            return add("Softmax", {from}, field(0, number(0, in.dims - 1)) + " 1=1");
        default:
            return add("MVN", {from}, " 0=1" + field(1, number(0, 1)) + " 2=0.1");
    }
}

bool RandomGraph::add_activation(int from) {
    static const char* const kAll[][2] = {{"ReLU", ""},
                                          {"ReLU", " 0=0.1"},
                                          {"Clip", " 0=-0.7 1=0.9"},
                                          {"Sigmoid", ""},
                                          {"TanH", ""},
                                          {"HardSwish", ""},
                                          {"HardSigmoid", ""},
                                          {"ELU", " 0=0.5"},
                                          {"SELU", ""},
                                          {"GELU", ""},
                                          {"GELU", " 0=1"},
                                          {"Mish", ""},
                                          {"Swish", ""},
                                          {"Softplus", ""},
                                          {"AbsVal", ""},
                                          {"BNLL", ""},
                                          {"CELU", " 0=0.7"},
                                          {"Erf", ""},
                                          {"Noop", ""},
                                          {"Shrink", " 0=0.2 1=0.2"}};
    const auto& one = kAll[number(0, (int)(sizeof(kAll) / sizeof(kAll[0])) - 1)];
    return add(one[0], {from}, one[1]);
}

bool RandomGraph::add_arithmetic(int from) {
    static const int kTwo[] = {0, 1, 2, 4, 5, 7};  // add, sub, mul, max, min, rsub
    static const int kOne[] = {0, 1, 4, 9, 10, 16};
    const std::string op = field(0, kTwo[number(0, 5)]);
    switch (number(0, 5)) {
        case 0:
            return add("UnaryOp", {from}, field(0, kOne[number(1, 5)]));
        case 1:
            return add("BinaryOp", {from}, op + " 1=1" + field(2, real(-1.f, 1.f)));
        case 2:
            return add("BinaryOp", {from, pick_blob()}, op);
        case 3: {
            const int other = same_shape(from);
            if (other < 0) return false;
            const int third = chance(3) ? same_shape(other) : -1;
            std::vector<int> all = {from, other};
            if (third >= 0) all.push_back(third);
            return add("Eltwise", all, field(0, number(1, 2)));
        }
        default: {
            const int other = same_shape(from);
            return other >= 0 && add("BinaryOp", {from, other}, op);
        }
    }
}

bool RandomGraph::add_join(int from) {
    std::vector<int> parts = {from};
    const int dims = blobs_[from].shape.dims, axis = chance(3) ? number(0, dims - 1) : 0;
    for (int i = 0; i < (int)blobs_.size() && parts.size() < 4; i++) {
        Shape a = blobs_[from].shape, b = blobs_[i].shape;
        if (i == from || b.dims != dims) continue;
        a.set_size(axis, 1), b.set_size(axis, 1);
        if (a == b) parts.push_back(i);
    }
    std::shuffle(parts.begin(), parts.end(), engine_);
    return parts.size() > 1 && add("Concat", parts, field(0, axis));
}

bool RandomGraph::add_slice(int from) {
    const Shape& in = blobs_[from].shape;
    const int axis = chance(2) ? 0 : number(0, in.dims - 1), count = number(2, 3);
    std::string p = " -23300=" + text(count);
    for (int i = 0; i < count; i++) p += ",-233";
    if (chance(2) && in.size(axis) > 3)
        p = " -23300=2," + text(number(1, in.size(axis) - 1)) + ",-233";
    const int parts = p[8] - '0';
    return in.size(axis) >= parts && add("Slice", {from}, p + field(1, axis), parts);
}

bool RandomGraph::add_moves(int from) {
    const Shape& in = blobs_[from].shape;
    switch (number(0, 9)) {
        case 0:
            return add(
                "Crop", {from},
                field(0, number(0, in.w / 2)) + (in.dims > 1 ? field(1, number(0, in.h / 2)) : "") +
                    (in.dims > 2 ? field(2, number(0, in.c / 2)) + " 5=-233" : "") + " 3=-233" +
                    (in.dims > 1 ? " 4=-233" : "") + (in.dims > 3 ? " 14=-233" : ""));
        case 1:
            return add(
                "Padding", {from},
                (in.dims > 1 ? field(0, number(0, 3)) + field(1, number(0, 3)) : std::string()) +
                    field(2, number(0, 3)) + field(3, number(0, 3)) + field(4, number(0, 2)) +
                    " 5=0.5" +
                    (in.dims > 2 ? field(7, number(0, 2)) + field(8, number(0, 9)) : ""));
        case 2:
            return add("Permute", {from},
                       field(0, number(0, in.dims == 4   ? 23
                                          : in.dims == 3 ? 5
                                                         : 1)));
        case 3: {
            const int groups = number(2, 4);
            return in.size(0) % groups == 0 &&
                   add("ShuffleChannel", {from}, field(0, groups) + field(1, number(0, 1)));
        }
        case 4:
            return add("PixelShuffle", {from}, field(0, 2) + field(1, number(0, 1)));
        case 5:
            return add("Reorg", {from}, " 0=2" + field(1, number(0, 1)));
        case 6:
            return add("Interp", {from},
                       field(0, number(1, 3)) +
                           (chance(2) ? " 1=2.0 2=2.0"
                                      : field(3, number(1, 20)) + field(4, number(1, 20))) +
                           field(6, number(0, 1)));
        case 7:
            return add("Tile", {from}, field(0, number(0, in.dims - 1)) + " 1=2");
        case 8:
            return add("Split", {from}, "", 2);
        default:
            return add("Flip", {from}, " -23300=1," + text(number(0, in.dims - 1)));
    }
}

bool RandomGraph::add_views(int from) {
    const Shape& in = blobs_[from].shape;
    switch (number(0, 4)) {
        case 0:
            return add("Flatten", {from}, "");
        case 1:
            return add("Reshape", {from}, " 0=-1" + (chance(2) ? "" : field(1, in.size(0))));
        case 2:
            return add("Reshape", {from}, field(0, in.w) + " 1=-1");
        case 3:
            return in.dims < 4 &&
                   add("ExpandDims", {from}, " -23303=1," + text(number(0, in.dims)));
        default:
            return add("Squeeze", {from}, " -23303=1," + text(number(0, in.dims - 1)));
    }
}

bool RandomGraph::add_reduction(int from) {
    const Shape& in = blobs_[from].shape;
    static const int kOps[] = {0, 3, 4, 5, 7, 8};  // sum, mean, max, min, L1, L2
    return add("Reduction", {from},
               field(0, kOps[number(0, 5)]) + " 1=0 -23303=1," + text(number(0, in.dims - 1)) +
                   field(4, number(0, 1)) + " 5=1");
}

bool RandomGraph::add_product(int from) {
    const Shape& in = blobs_[from].shape;
    const int out = channels();
    if (chance(3)) {
        const int k = in.dims == 2 ? in.w : (int)in.total();
        return k * out < 200000 &&
               add("InnerProduct", {from},
                   field(0, out) + field(1, number(0, 1)) + field(2, k * out) + activation());
    }
    if (in.dims == 2 && chance(2)) {
        const bool turned = chance(4);  // A is [K][M]
        return add("Gemm", {from},
                   field(2, turned ? 1 : 0) + field(3, number(0, 1)) + " 5=1 6=1" + field(8, out) +
                       field(9, turned ? in.h : in.w) + (chance(2) ? " 10=4" : " 10=-1"));
    }
    const int other = pick_blob();
    return add("MatMul", {from, other}, field(0, number(0, 1)));
}

bool RandomGraph::add_attention(int from) {
    const Shape& in = blobs_[from].shape;
    if (in.dims == 2) {
        const int heads = number(1, 4), embed = heads * 4 * number(1, 4);
        return add("MultiHeadAttention", {from},
                   field(0, embed) + field(1, heads) + field(2, embed * in.w) + field(3, in.w) +
                       field(4, in.w));
    }
    return in.dims == 3 && add("SDPA", {from, from, from}, "");
}

bool RandomGraph::add_recurrent(int from) {
    const Shape& in = blobs_[from].shape;
    if (in.dims != 2 || in.h > 20) return false;
    const int out = number(1, 40), direction = number(0, 2), gates[] = {4, 3, 1};
    static const char* const kTypes[] = {"LSTM", "GRU", "RNN"};
    const int which = number(0, 2);
    return add(kTypes[which], {from},
               field(0, out) + field(1, out * gates[which] * in.w * (direction == 2 ? 2 : 1)) +
                   field(2, direction));
}

// A blob scaled by what is made of its channels' means: two convolutions of 1x1 maps, or inner
// products.
bool RandomGraph::add_squeeze_excite(int from) {
    const Shape in = blobs_[from].shape;
    if (in.dims != 3) return false;
    const int hidden = number(1, 20);
    if (!add("Pooling", {from}, " 0=1 4=1")) return false;
    const bool matrices = chance(2);
    int at = (int)blobs_.size() - 1;
    const std::string relu = " 9=1", gate = chance(2) ? " 9=4" : " 9=5";
    if (matrices) {
        if (!add("InnerProduct", {at}, field(0, hidden) + " 1=1" + field(2, hidden * in.c) + relu))
            return false;
        if (!add("InnerProduct", {at + 1},
                 field(0, in.c) + " 1=1" + field(2, hidden * in.c) + gate))
            return false;
        if (!add("Reshape", {at + 2}, " 0=1 1=1" + field(2, in.c))) return false;
        at++;
    } else {
        if (!add("Reshape", {at}, " 0=1 1=1" + field(2, in.c))) return false;
        if (!add("Convolution", {at + 1},
                 field(0, hidden) + " 1=1 5=1" + field(6, hidden * in.c) + relu))
            return false;
        if (!add("Convolution", {at + 2},
                 field(0, in.c) + " 1=1 5=1" + field(6, hidden * in.c) + gate))
            return false;
    }
    return add("BinaryOp", {from, (int)blobs_.size() - 1}, " 0=2");
}

}  // namespace quoll
