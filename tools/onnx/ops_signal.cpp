// Transforms of signals; windows; and operators of newer opsets
// that are written in terms of others.
#include <math.h>

#include <algorithm>

#include "onnx/nodes.h"
#include "onnx/ops.h"

namespace quoll {
namespace onnx_tool {

namespace {

// The longest transform written as a matrix.
const int64_t kMostPoints = 1 << 14;

// cos and sin of 2 pi i k / length, rows i and columns k, times a factor.
Tensor wave(bool sine, int64_t rows, int64_t columns, int64_t length, double factor) {
    Tensor t(ElementType::kFloat, {rows, columns});
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t k = 0; k < columns; k++) {
            const double angle = 2 * M_PI * (double)((i * k) % length) / (double)length;
            t.set_float((size_t)(i * columns + k),
                        (float)(factor * (sine ? sin(angle) : cos(angle))));
        }
    }
    return t;
}

// The matrices of a transform, by whose factor and sign the inverse differs.
struct Waves {
    std::string cosine, sine;
};

// What a transform does, as far as it is known at conversion.
struct Transform {
    int axis = 0;
    bool inverse = false, half = false, known = false;  // known: the sizes that follow
    int64_t length = 0, rows = 0, columns = 0;          // rows are read, columns are made
    bool to_real() const { return inverse && half; }
};

// False after fail().
bool read_transform(Op& op, Transform* t) {
    const Value* x = op.in(0);
    const int rank = x->rank();
    int64_t wanted = op.attr("axis", 1);
    std::vector<int64_t> given;
    if (op.opset >= 20) {
        wanted = -2;
        if (op.has(2) && (!op.ints(2, "axis", &given) || given.empty())) return false;
        if (op.has(2)) wanted = given[0];
    }
    if (!op.axis(wanted, rank, &t->axis)) return false;
    if (rank < 2 || t->axis == rank - 1 || !x->shape[rank - 1].known())
        return op.fail("axis %d of rank %d", t->axis, rank);
    t->inverse = op.attr("inverse", 0) != 0, t->half = op.attr("onesided", 0) != 0;
    const Dim size = x->shape[t->axis];
    t->known = size.known() && (!op.has(1) || op.in(1)->is_constant());
    if (!t->known) return true;
    t->length = t->to_real() ? 2 * (size.value - 1) : size.value;
    if (op.has(1)) {
        if (!op.ints(1, "dft_length", &given) || given.empty()) return false;
        t->length = given[0];
    }
    if (t->length < 1 || t->length > kMostPoints)
        return op.fail("a length of %lld", (long long)t->length);
    const int64_t bins = t->half ? t->length / 2 + 1 : t->length;
    t->rows = std::min(t->inverse ? bins : t->length, size.value);
    t->columns = t->inverse ? t->length : bins;
    return true;
}

// Half of the spectrum of a real signal is given: each line but those that are their own mirror
// images stands for two.
void count_twice(int64_t length, Tensor* wave) {
    const int64_t rows = wave->dims[0], columns = wave->dims[1];
    for (int64_t i = 1; i < rows; i++) {
        for (int64_t k = 0; k < columns && 2 * i != length; k++) {
            const size_t at = (size_t)(i * columns + k);
            wave->set_float(at, 2.f * wave->float_at(at));
        }
    }
}

Waves constant_waves(Nodes& n, const Transform& t) {
    const double factor = t.inverse ? 1.0 / (double)t.length : 1.0;
    Tensor cosine = wave(false, t.rows, t.columns, t.length, factor);
    Tensor sine = wave(true, t.rows, t.columns, t.length, t.inverse ? -factor : factor);
    if (t.to_real()) count_twice(t.length, &cosine), count_twice(t.length, &sine);
    return {n.constant(cosine), n.constant(sine)};
}

// A transform whose sizes are known only at run time: numbers of one value each.
struct RunTimeSizes {
    std::string length, rows, columns;
};

RunTimeSizes sizes_at_run_time(Op& op, Nodes& n, const Transform& t) {
    const std::string one = n.ints({1}), two = n.ints({2});
    const std::string size = n.add("Gather", {n.add("Shape", {n.in(0)}), n.ints({t.axis})});
    RunTimeSizes s = {size, size, ""};
    if (op.has(1))
        s.length = n.reshape(n.cast(n.in(1), ElementType::kInt64), {1});
    else if (t.to_real())
        s.length = n.add("Mul", {n.add("Sub", {size, one}), two});
    const std::string bins = t.half ? n.add("Add", {n.add("Div", {s.length, two}), one}) : s.length;
    if (op.has(1)) s.rows = n.add("Min", {size, t.inverse ? bins : s.length});
    s.columns = t.inverse ? s.length : bins;
    return s;
}

Waves waves_at_run_time(Nodes& n, const RunTimeSizes& s, const Transform& t) {
    const auto count = [&](const std::string& to) {
        return n.add("Range", {n.constant(Tensor::of_ints({0}, true)), n.squeeze(to, {0}),
                               n.constant(Tensor::of_ints({1}, true))});
    };
    const std::string rows = n.add("Unsqueeze", {count(s.rows), n.ints({1})});
    // Whole turns are taken off while the numbers are integers.
    const std::string steps = n.add("Mul", {rows, count(s.columns)});
    const std::string part = n.cast(n.add("Mod", {steps, s.length}), ElementType::kFloat);
    const std::string points = n.cast(s.length, ElementType::kFloat);
    const std::string angle =
        n.add("Div", {n.add("Mul", {part, n.scalar((float)(2 * M_PI))}), points});
    Waves waves = {n.add("Cos", {angle}), n.add("Sin", {angle})};
    if (!t.inverse) return waves;
    std::string factor = n.add("Div", {n.scalar(1.f), points});
    if (t.to_real()) {  // as count_twice()
        const std::string first = n.add("Equal", {rows, n.ints({0})});
        const std::string middle = n.add("Equal", {n.add("Add", {rows, rows}), s.length});
        const std::string own = n.cast(n.add("Or", {first, middle}), ElementType::kFloat);
        factor = n.add("Mul", {factor, n.add("Sub", {n.scalar(2.f), own})});
    }
    waves.cosine = n.add("Mul", {waves.cosine, factor});
    waves.sine = n.add("Neg", {n.add("Mul", {waves.sine, factor})});
    return waves;
}

// The spectrum of real signals [..., rows] of known length, as [..., bins, 2]: a frame each.
std::string real_spectrum(Nodes& n, const std::string& x, const Transform& t) {
    const int rank = n.value(x)->rank();
    std::string signal = x;
    std::vector<int64_t> pads(2 * (size_t)rank, 0);
    pads.back() = t.length - t.rows;
    if (pads.back() > 0) signal = n.add("Pad", {signal, n.ints(pads)});
    Tensor ones(ElementType::kFloat, {t.length});
    for (size_t i = 0; i < (size_t)t.length; i++) ones.set_float(i, 1.f);
    const std::string step = n.constant(Tensor::of_ints({t.length}, true));
    const std::string spectrum =
        n.add("STFT", {n.reshape(signal, {-1, t.length}), step, n.constant(ones)},
              {{"onesided", attribute_of((int64_t)t.half)}});
    const std::string outer = n.slice(n.add("Shape", {x}), 0, 0, rank - 1);
    return n.add("Reshape", {spectrum, n.add("Concat", {outer, n.ints({t.columns, 2})},
                                             {{"axis", attribute_of((int64_t)0)}})});
}

bool dft(Op& op) {
    Transform t;
    if (!read_transform(op, &t)) return false;
    const Value* x = op.in(0);
    const int rank = x->rank();
    Nodes n(op);
    std::vector<int64_t> perm;
    for (int64_t a = 0; a < rank - 1; a++)
        if (a != t.axis) perm.push_back(a);
    perm.push_back(t.axis);
    std::vector<int64_t> back(perm.size());
    for (size_t i = 0; i < perm.size(); i++) back[(size_t)perm[i]] = (int64_t)i;
    RunTimeSizes sizes;
    if (!t.known) sizes = sizes_at_run_time(op, n, t);
    std::string parts[2];
    for (int64_t p = 0; p < x->shape[rank - 1].value && p < 2; p++) {
        const std::string at = n.constant(Tensor::of_ints({p}, true));
        parts[p] = n.add("Gather", {n.in(0), at}, {{"axis", attribute_of((int64_t)rank - 1)}});
        parts[p] = n.transpose(parts[p], perm);
        if (t.known && t.rows < x->shape[t.axis].value) parts[p] = n.slice(parts[p], -1, 0, t.rows);
        if (!t.known && op.has(1))
            parts[p] = n.add("Slice", {parts[p], n.ints({0}), sizes.rows, n.ints({rank - 2})});
    }
    if (t.known && !t.inverse && parts[1].empty()) {
        back.push_back(rank - 1);
        return n.set(0, n.transpose(real_spectrum(n, parts[0], t), back));
    }
    const Waves waves = t.known ? constant_waves(n, t) : waves_at_run_time(n, sizes, t);
    const std::string last = n.ints({-1});
    const auto part = [&](const std::string& p) {
        return n.add("Unsqueeze", {n.transpose(p, back), last});
    };
    std::string real = n.add("MatMul", {parts[0], waves.cosine});
    if (!parts[1].empty()) real = n.add("Add", {real, n.add("MatMul", {parts[1], waves.sine})});
    if (t.to_real()) return n.set(0, part(real));
    std::string imaginary = n.add("Neg", {n.add("MatMul", {parts[0], waves.sine})});
    if (!parts[1].empty())
        imaginary = n.add("Add", {imaginary, n.add("MatMul", {parts[1], waves.cosine})});
    return n.set(
        0, n.add("Concat", {part(real), part(imaginary)}, {{"axis", attribute_of((int64_t)-1)}}));
}

// signal, frame_step, window, frame_length
bool stft(Op& op) {
    const Value* x = op.in(0);
    std::vector<int64_t> step, given;
    if (!op.ints(1, "frame_step", &step) || step.empty()) return false;
    if (x->rank() < 2 || x->rank() > 3 || (x->rank() == 3 && !x->shape[2].is(1)))
        return op.fail("a signal that is not real");
    Tensor window;
    int64_t length = 0;
    if (op.has(2)) {
        if (!op.in(2)->is_constant()) return op.fail("window is not constant");
        window = *op.in(2)->constant;
        length = (int64_t)window.count();
    }
    if (op.has(3)) {
        if (!op.ints(3, "frame_length", &given) || given.empty()) return false;
        length = given[0];
    }
    if (length < 1 || length > kMostPoints || step[0] < 1 ||
        (op.has(2) && (int64_t)window.count() != length))
        return op.fail("frames of %lld every %lld", (long long)length, (long long)step[0]);
    const int64_t bins = op.attr("onesided", 1) ? length / 2 + 1 : length;
    Tensor factors(ElementType::kFloat, {length});
    for (size_t i = 0; i < (size_t)length; i++)
        factors.set_float(i, op.has(2) ? window.float_at(i) : 1.f);
    Nodes n(op);
    const std::string signal = x->rank() == 3 ? n.squeeze(n.in(0), {2}) : n.in(0);
    const std::string from = op.plain(n.value(signal));
    if (from.empty()) return false;
    ModelLayer& layer = op.emit("Stft", {from});
    layer.set("length", (int)length), layer.set("step", (int)step[0]);
    layer.set("onesided", op.attr("onesided", 1) ? 1 : 0);
    op.c.keep(factors);
    layer.set_weight("window_data", factors.weight());
    Symbols& sizes = op.c.symbols;
    const Dim room = sizes.add(x->shape[1], Dim(-length));
    const Dim frames = sizes.add(sizes.divide(room, Dim(step[0])), Dim(1));
    op.set(0, x->type, {x->shape[0], frames, Dim(bins), Dim(2)}, Form::plain(4), layer.outputs[0]);
    return true;
}

// a - b cos + c cos of twice the angle.
bool window_at_run_time(Op& op, double a, double b, double c, ElementType type) {
    Nodes n(op);
    const std::string zero = n.constant(Tensor::of_ints({0}, true)),
                      one = n.constant(Tensor::of_ints({1}, true));
    std::string size = n.cast(n.in(0), ElementType::kInt64);
    if (op.in(0)->rank() > 1) size = n.reshape(size, {1});
    const std::string whole = op.attr("periodic", 1) ? size : n.add("Sub", {size, one});
    const std::string at = n.cast(n.add("Range", {zero, size, one}), ElementType::kFloat);
    std::string angle = n.add("Mul", {at, n.scalar((float)(2 * M_PI))});
    angle = n.add("Div", {angle, n.cast(n.add("Max", {whole, one}), ElementType::kFloat)});
    std::string sum = n.add("Mul", {n.add("Cos", {angle}), n.scalar((float)-b)});
    sum = n.add("Add", {sum, n.scalar((float)a)});
    if (c != 0) {
        const std::string twice = n.add("Cos", {n.add("Add", {angle, angle})});
        sum = n.add("Add", {sum, n.add("Mul", {twice, n.scalar((float)c)})});
    }
    return n.set(0, type == ElementType::kFloat ? sum : n.cast(sum, type));
}

bool window(Op& op, double a, double b, double c) {
    std::vector<int64_t> size;
    const ElementType type = (ElementType)op.attr("output_datatype", 1);
    if (!is_float(type)) return op.fail("output_datatype %s", type_name(type));
    if (!op.in(0)->is_constant()) return window_at_run_time(op, a, b, c, type);
    if (!op.ints(0, "size", &size)) return false;
    if (size.size() != 1 || size[0] < 1 || size[0] > 1 << 24)
        return op.fail("a size of %lld", size.empty() ? -1LL : (long long)size[0]);
    const double whole = (double)(op.attr("periodic", 1) ? size[0] : size[0] - 1);
    Tensor t(type, {size[0]});
    for (int64_t i = 0; i < size[0]; i++) {
        const double angle = whole > 0 ? 2 * M_PI * (double)i / whole : 0;
        t.set_float((size_t)i, (float)(a - b * cos(angle) + c * cos(2 * angle)));
    }
    op.set_constant(0, t);
    return true;
}
bool hann(Op& op) { return window(op, 0.5, 0.5, 0); }
bool hamming(Op& op) { return window(op, 25.0 / 46, 1 - 25.0 / 46, 0); }
bool blackman(Op& op) { return window(op, 0.42, 0.5, 0.08); }

// num_mel_bins, dft_length, sample_rate, lower and upper edge in Hz: triangles on the mel scale
// (O'Shaughnessy, 2595 log10(1 + f / 700)).
bool mel_weight_matrix(Op& op) {
    double p[5];
    for (int i = 0; i < 5; i++) {
        if (!op.has(i) || !op.in(i)->is_constant() || op.in(i)->constant->count() != 1)
            return op.fail("input %d is not constant", i);
        p[i] = op.in(i)->constant->float_at(0);
    }
    const int64_t bins = (int64_t)p[0], length = (int64_t)p[1], rows = length / 2 + 1;
    if (bins < 1 || length < 1 || p[2] <= 0 || element_count({rows, bins}) < 0)
        return op.fail("%lld bins of %lld", (long long)bins, (long long)length);
    const auto mel = [](double hz) { return 2595 * log10(1 + hz / 700); };
    const double low = mel(p[3]), step = (mel(p[4]) - low) / (double)(bins + 2);
    std::vector<int64_t> at;
    for (int64_t i = 0; i < bins + 2; i++) {
        const double hz = 700 * (pow(10, (low + step * (double)i) / 2595) - 1);
        at.push_back((int64_t)floor((double)(length + 1) * hz / p[2]));
    }
    Tensor t((ElementType)op.attr("output_datatype", 1), {rows, bins});
    for (int64_t b = 0; b < bins; b++) {
        const int64_t left = at[b], middle = at[b + 1], right = at[b + 2];
        for (int64_t r = std::max<int64_t>(0, left);
             r < std::min(rows, std::max(right, middle + 1)); r++) {
            double v = 0;
            if (r <= middle)
                v = left == middle ? (r == middle ? 1.0 : 0.0)
                                   : (double)(r - left) / (double)(middle - left);
            else if (right > middle)
                v = (double)(right - r) / (double)(right - middle);
            t.set_float((size_t)(r * bins + b), (float)v);
        }
    }
    op.set_constant(0, t);
    return true;
}

bool center_crop_pad(Op& op) {
    const Value* x = op.in(0);
    std::vector<int64_t> sizes, axes = op.attr_ints("axes");
    if (!op.ints(1, "shape", &sizes)) return false;
    if (axes.empty())
        for (int64_t a = 0; a < x->rank(); a++) axes.push_back(a);
    if (sizes.size() != axes.size()) return op.fail("%zu sizes", sizes.size());
    Nodes n(op);
    std::string out = n.in(0);
    std::vector<int64_t> pads(2 * (size_t)x->rank(), 0);
    bool padded = false;
    for (size_t i = 0; i < axes.size(); i++) {
        int axis = 0;
        if (!op.axis(axes[i], x->rank(), &axis)) return false;
        if (!x->shape[axis].known()) return op.fail("an axis of unknown size");
        const int64_t have = x->shape[axis].value, more = sizes[i] - have;
        if (more < 0) {
            const int64_t start = -more / 2;
            out = n.slice(out, axis, start, start + sizes[i]);
        } else if (more > 0) {
            pads[axis] = more / 2;
            pads[axis + x->rank()] = more - more / 2;
            padded = true;
        }
    }
    return n.set(0, padded ? n.add("Pad", {out, n.ints(pads)}) : out);
}

// past_cache, update, write_indices: the update from a position of each item on.
bool tensor_scatter(Op& op) {
    const Value *cache = op.in(0), *update = op.in(1);
    int axis = 0;
    if (!op.axis(op.attr("axis", -2), cache->rank(), &axis)) return false;
    if (axis == 0 || update->rank() != cache->rank()) return op.fail("axis %d", axis);
    const Dim length = cache->shape[axis], part = update->shape[axis];
    if (!length.known() || !part.known()) return op.fail("lengths that are not known");
    Nodes n(op);
    std::vector<int64_t> positions, others;
    for (int64_t i = 0; i < length.value; i++) positions.push_back(i);
    for (int64_t a = 1; a < cache->rank(); a++)
        if (a != axis) others.push_back(a);
    // [batch, length]: which part of the update lands there.
    std::string at = n.add("Unsqueeze", {n.ints(positions), n.ints({0})});
    if (op.has(2)) at = n.add("Sub", {at, n.add("Unsqueeze", {n.in(2), n.ints({1})})});
    if (op.attr_string("mode", "linear") == "circular")
        at = n.add("Mod", {at, n.ints({length.value})});
    const std::string zero = n.ints({0}), last = n.ints({part.value - 1});
    if (!others.empty()) at = n.add("Unsqueeze", {at, n.ints(others)});
    const std::string inside =
        n.add("And", {n.add("GreaterOrEqual", {at, zero}), n.add("LessOrEqual", {at, last})});
    at = n.add("Min", {n.add("Max", {at, zero}), last});
    at = n.add("Expand", {at, n.add("Shape", {n.in(0)})});
    const std::string moved =
        n.add("GatherElements", {n.in(1), at}, {{"axis", attribute_of((int64_t)axis)}});
    return n.set(0, n.add("Where", {inside, moved, n.in(0)}));
}

bool cum_prod(Op& op) {
    const Value* x = op.in(0);
    std::vector<int64_t> given;
    int axis = 0;
    if (!op.ints(1, "axis", &given) || given.empty() || !op.axis(given[0], x->rank(), &axis))
        return false;
    const int64_t most = 1024;
    if (!x->shape[axis].known() || x->shape[axis].value < 1 || x->shape[axis].value > most)
        return op.fail("an axis of unknown size, or beyond %lld", (long long)most);
    const int count = (int)x->shape[axis].value;
    const bool reverse = op.attr("reverse", 0) != 0, exclusive = op.attr("exclusive", 0) != 0;
    Nodes n(op);
    const Attributes along = {{"axis", attribute_of((int64_t)axis)}};
    std::vector<std::string> parts(1, n.in(0)), products((size_t)count);
    if (count > 1)
        parts = n.add_many("Split", {n.in(0), n.ints(std::vector<int64_t>((size_t)count, 1))},
                           along, count);
    std::string product;
    for (int i = 0; i < count && n.ok(); i++) {
        const size_t at = (size_t)(reverse ? count - 1 - i : i);
        if (exclusive && i == 0) {
            const Attribute one = [&] {
                Attribute a;
                a.kind = Attribute::kTensor, a.t = Tensor(x->type, {1});
                a.t.set_int(0, 1);
                return a;
            }();
            products[at] =
                n.add("ConstantOfShape", {n.add("Shape", {parts[at]})}, {{"value", one}});
        }
        const std::string now = product.empty() ? parts[at] : n.add("Mul", {product, parts[at]});
        if (!exclusive) products[at] = now;
        if (exclusive && i > 0) products[at] = product;
        product = now;
    }
    return n.set(0, count > 1 ? n.add("Concat", products, along) : products[0]);
}

}  // namespace

OpTable signal_ops() {
    return {
        {"", "DFT", 17, 0, dft, ""},
        {"", "STFT", 17, 0, stft, "real signals; constant window and lengths", 2},
        {"", "HannWindow", 17, 0, hann, ""},
        {"", "HammingWindow", 17, 0, hamming, ""},
        {"", "BlackmanWindow", 17, 0, blackman, ""},
        {"", "MelWeightMatrix", 17, 0, mel_weight_matrix, "constant inputs", 5},
        {"", "CenterCropPad", 18, 0, center_crop_pad, "sizes known at conversion", 2},
        {"", "TensorScatter", 24, 0, tensor_scatter,
         "lengths known at conversion; rank of at most 4", 2},
        {"", "CumProd", 26, 0, cum_prod, "an axis of known size, at most 1024", 2},
    };
}

}  // namespace onnx_tool
}  // namespace quoll
