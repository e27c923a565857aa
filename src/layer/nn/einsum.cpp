#include "layer/nn/einsum.h"

#include <algorithm>
#include <map>

#include "layer/common/tensor.h"

namespace quoll {

void Einsum::params(Einsum& s, ParamVisitor& v) {
    v.ints(0, "equation", s.equation, "characters of the equation", between(32, 126));
}

void Einsum::weights(Einsum&, WeightVisitor&) {}

static bool is_letter(char ch) { return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z'); }

// The output of an equation without "->": the letters that appear once, in alphabetical order.
static std::string implicit_output(const std::string& text) {
    std::string output;
    for (char ch : text)
        if (is_letter(ch) && std::count(text.begin(), text.end(), ch) == 1) output += ch;
    std::sort(output.begin(), output.end());
    return output;
}

int Einsum::load_param(const ParamDict& pd) {
    QUOLL_RETURN_IF_ERROR(load_params_by_schema(*this, pd));
    std::string text;
    for (int i = 0; i < equation.w; i++) text += (char)((const int*)equation.data)[i];
    const size_t arrow = text.find("->");
    output_ = arrow == std::string::npos ? implicit_output(text) : text.substr(arrow + 2);
    inputs_.assign(1, std::string());
    for (char ch : text.substr(0, arrow)) {
        if (ch == ',')
            inputs_.push_back(std::string());
        else
            inputs_.back() += ch;
    }
    for (const std::string& axes : inputs_)
        if (axes.empty() || axes.size() > 4 || !std::all_of(axes.begin(), axes.end(), is_letter))
            return fail("equation (0): expected 1 to 4 letters an input, got '%s'", text.c_str());
    bool good = output_.size() <= 4;
    for (size_t i = 0; good && i < output_.size(); i++) {
        good = output_.find(output_[i], i + 1) == std::string::npos;  // each letter once
        good = good && std::any_of(inputs_.begin(), inputs_.end(), [&](const std::string& axes) {
                   return axes.find(output_[i]) != std::string::npos;
               });
    }
    if (good) return kOk;
    return fail(
        "equation (0): expected up to 4 different letters of the inputs behind '->', got '%s'",
        text.c_str());
}

namespace {

// The size of each letter's axis; -1: unknown.
struct Sizes {
    int of[128];
    Sizes() { std::fill(of, of + 128, -1); }
};

int find_sizes(const Layer& layer, const std::vector<std::string>& axes,
               const std::vector<Shape>& in, Sizes* sizes) {
    if (in.size() != axes.size())
        return layer.fail("expected %zu inputs, got %zu", axes.size(), in.size());
    for (size_t b = 0; b < in.size(); b++) {
        if (in[b].dims != (int)axes[b].size() || !accepts_float(layer, in[b].dtype))
            return layer.fail("input %zu: expected %zu axes of f32, got %s of %s", b,
                              axes[b].size(), shape_text(in[b]).c_str(), dtype_name(in[b].dtype));
        for (int i = 0; i < in[b].dims; i++) {
            int& size = sizes->of[(int)axes[b][i]];
            if (size >= 0 && size != in[b].size(i))
                return layer.fail("input %zu: expected %d values along '%c', got %s", b, size,
                                  axes[b][i], shape_text(in[b]).c_str());
            size = in[b].size(i);
        }
    }
    return kOk;
}

// The distance of neighbours along axis i (outermost first).
size_t axis_step(const Mat& m, int i) {
    if (i == 0 && m.dims >= 3) return m.cstep;
    size_t step = 1;
    const int inner[] = {m.w, m.h, m.d};
    for (int k = 0; k < m.dims - 1 - i; k++) step *= inner[k];
    return step;
}

// Counts through the values of some letters, keeping the offsets of all operands.
struct Counter {
    struct Axis {
        int size, at;
        std::vector<size_t> steps;  // an operand each
    };
    std::vector<Axis> axes;
    std::vector<size_t> offsets;

    Counter(const std::string& letters, const Sizes& sizes,
            const std::vector<std::string>& operands, const std::vector<const Mat*>& mats)
        : offsets(operands.size(), 0) {
        for (char letter : letters) {
            Axis axis = {sizes.of[(int)letter], 0, std::vector<size_t>(operands.size(), 0)};
            for (size_t b = 0; b < operands.size(); b++)
                for (size_t i = 0; i < operands[b].size(); i++)
                    if (operands[b][i] == letter) axis.steps[b] += axis_step(*mats[b], (int)i);
            axes.push_back(axis);
        }
    }
    // False after the last combination; offsets are then those of the first again.
    bool next() {
        for (size_t i = axes.size(); i-- > 0;) {
            Axis& axis = axes[i];
            const bool wraps = ++axis.at == axis.size;
            for (size_t b = 0; b < offsets.size(); b++)
                offsets[b] += wraps ? (size_t)0 - (axis.size - 1) * axis.steps[b] : axis.steps[b];
            if (!wraps) return true;
            axis.at = 0;
        }
        return false;
    }
};

}  // namespace

int Einsum::shape(const Einsum& s, const std::vector<Shape>& in, std::vector<Shape>& out) {
    Sizes sizes;
    QUOLL_RETURN_IF_ERROR(find_sizes(s, s.inputs_, in, &sizes));
    Shape shape(1, 1, 1, 1, in[0].dtype);
    shape.dims = std::max<int>(1, (int)s.output_.size());
    for (size_t i = 0; i < s.output_.size(); i++)
        shape.set_size((int)i, sizes.of[(int)s.output_[i]]);
    out.assign(1, shape);
    return kOk;
}

int Einsum::forward(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                    const Option& opt) const {
    QUOLL_RETURN_IF_ERROR(create_tops(*this, bottoms, tops, opt));
    std::vector<Shape> in;
    std::vector<const Mat*> mats;
    for (const Mat& m : bottoms) {
        in.push_back(m.logical_shape());
        mats.push_back(&m);
    }
    Sizes sizes;
    QUOLL_RETURN_IF_ERROR(find_sizes(*this, inputs_, in, &sizes));
    std::string summed;
    for (const std::string& axes : inputs_)
        for (char letter : axes)
            if (output_.find(letter) == std::string::npos &&
                summed.find(letter) == std::string::npos)
                summed += letter;
    std::vector<std::string> operands = inputs_;
    operands.push_back(output_);
    mats.push_back(&tops[0]);
    Counter outer(output_, sizes, operands, mats), inner(summed, sizes, inputs_, mats);
    do {
        double sum = 0;
        do {
            double product = 1;
            for (size_t b = 0; b < bottoms.size(); b++)
                product *= ((const float*)mats[b]->data)[outer.offsets[b] + inner.offsets[b]];
            sum += product;
        } while (inner.next());
        tops[0][outer.offsets.back()] = (float)sum;
    } while (outer.next());
    return kOk;
}

int Einsum::forward_empty(const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                          const Option& opt) const {
    return fill_without_terms(*this, bottoms, tops, 0.f, opt);
}

int64_t Einsum::macs(const std::vector<Shape>& in, const std::vector<Shape>& out) const {
    if (!first_sizes_known(in, out)) return -1;
    // The product of the sizes of all letters.
    std::map<char, int64_t> sizes;
    for (size_t i = 0; i < in.size(); i++) {
        if (in[i].dims == 0) return -1;
        for (int axis = 0; i < inputs_.size() && axis < (int)inputs_[i].size(); axis++)
            sizes[inputs_[i][(size_t)axis]] = in[i].size(axis);
    }
    int64_t product = 1;
    for (const auto& letter : sizes) product *= letter.second;
    return product;
}

QUOLL_DEFINE_LAYER(Einsum)

}  // namespace quoll
