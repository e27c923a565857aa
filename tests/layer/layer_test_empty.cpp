// Empty inputs: each axis of each input of each case is 0 in turn, in every storage type. Nothing
// may crash; where the operator's sizes follow those of the axis in a line (for 1, 2 and 3 times
// the size) down to an output without values, that is what has to come out.
#include <string.h>

#include "layer_test_private.h"
#include "quoll/datareader.h"
#include "quoll/net.h"

namespace quoll {

namespace {

std::string net_of_case(const char* type, const LayerCase& c) {
    const size_t inputs = c.inputs.size();
    std::string text = "7767517\n" + std::to_string(inputs + 1) + " " +
                       std::to_string(inputs + (size_t)c.output_count) + "\n";
    std::string layer = std::string(type) + " layer " + std::to_string(inputs) + " " +
                        std::to_string(c.output_count);
    for (size_t i = 0; i < inputs; i++) {
        const std::string name = "in" + std::to_string(i);
        text += "Input " + name + " 0 1 " + name + "\n";
        layer += " " + name;
    }
    for (int i = 0; i < c.output_count; i++) layer += " out" + std::to_string(i);
    return text + layer + " " + c.params + "\n";
}

// Operators whose other inputs ask for values on the axis (indexes, lengths, a part to put there),
// or of which an empty input is none; they may refuse.
bool may_refuse(const std::string& type, size_t input) {
    // Sizes, or weights of which there may not be none.
    for (const char* name : {"Convolution", "Deconvolution", "Crop", "Interp"})
        if (input > 0 && type.compare(0, strlen(name), name) == 0) return true;
    for (const char* name :
         {"Reshape", "WindowPool", "CopyTo", "ScatterElements", "ScatterND", "ReverseSequence",
          "CropAndResize", "OnnxROIAlign", "SpaceToBatch", "Spectrogram", "Stft"})
        if (type == name) return true;
    return false;
}

Mat without_values(const Shape& s) {
    Mat m;
    m.dims = s.dims, m.w = s.w, m.h = s.h, m.d = s.d, m.c = s.c, m.n = s.n;
    m.elempack = 1, m.dtype = s.dtype, m.elemsize = dtype_size(s.dtype);
    return m;
}

Mat stored(const Mat& m, DType storage) {
    if (m.dtype != DType::f32 || storage == DType::f32) return m;
    if (m.logical_shape().total() == 0) {
        Shape s = m.logical_shape();
        s.dtype = storage;
        return without_values(s);
    }
    Mat narrow;
    if (storage == DType::f16)
        cast_float32_to_float16(m, narrow);
    else
        cast_float32_to_bfloat16(m, narrow);
    return narrow;
}

// The point at 0 of the line through (at, one), (2 at, two), (3 at, three); -1 if it is none.
int continued(int one, int two, int three) {
    return three - two == two - one && 2 * one - two >= 0 ? 2 * one - two : -1;
}

// The outputs' shapes where all lie on lines and one without values comes first; else none.
std::vector<Shape> expected_shapes(const Layer& layer, const std::vector<Shape>& in, size_t input,
                                   int axis) {
    const int size = in[input].size(axis);
    if (size < 1) return {};
    std::vector<Shape> out[3];
    for (int k = 0; k < 3; k++) {
        std::vector<Shape> scaled = in;
        // A size of 1 may be one that is repeated.
        scaled[input].set_size(axis, size == 1 ? k + 2 : size * (k + 1));
        if (layer.infer_shapes(scaled, out[k]) != 0) return {};
    }
    std::vector<Shape> expected = out[0];
    for (size_t i = 0; i < expected.size(); i++) {
        if (expected[i].dims < 1 || out[1][i].dims != expected[i].dims) return {};
        for (int a = 0; a < expected[i].dims; a++) {
            const int first = out[0][i].size(a), step = out[1][i].size(a) - first;
            int at_zero = continued(first, out[1][i].size(a), out[2][i].size(a));
            if (size == 1 && at_zero >= 0) at_zero -= step;
            if (at_zero < 0) return {};
            expected[i].set_size(a, at_zero);
        }
        if (expected[i].total() != 0) return {};
    }
    return expected;
}

bool same_sizes(Shape a, const Shape& b) {
    a.dtype = b.dtype;
    return a == b;
}

void check_axis(const Net& net, const PreparedCase& p, size_t input, int axis, DType storage,
                const std::vector<Shape>& expected) {
    Extractor ex = net.create_extractor();
    for (size_t k = 0; k < p.inputs.size(); k++) {
        Mat m = p.inputs[k];
        if (m.dims == 0) continue;  // an input that nobody gives
        if (k == input) {
            Shape s = m.logical_shape();
            s.set_size(axis, 0);
            m = without_values(s);
        }
        ex.input(("in" + std::to_string(k)).c_str(), stored(m, storage));
    }
    const size_t outputs = expected.empty() ? 1 : expected.size();
    for (size_t k = 0; k < outputs; k++) {
        Mat got;
        const int status = ex.extract(("out" + std::to_string(k)).c_str(), got);
        if (expected.empty() || (status != 0 && may_refuse(net.layers().back()->type, input)))
            continue;
        ASSERT_EQ(kOk, status) << "expected " << shape_text(expected[k]);
        EXPECT_TRUE(same_sizes(got.logical_shape(), expected[k]))
            << "output " << k << ": " << shape_text(got.logical_shape()) << ", expected "
            << shape_text(expected[k]);
    }
}

}  // namespace

void check_empty_inputs(const char* type, const std::vector<LayerCase>& cases) {
    for (size_t i = 0; i < cases.size(); i++) {
        PreparedCase p;
        if (!prepare(type, cases[i], i, &p)) continue;
        const LayerPtr reference = make_case_layer(type, cases[i], p, true);
        ASSERT_TRUE(reference);
        const std::vector<unsigned> words = weight_words(p);
        const std::vector<unsigned> bytes = words.empty() ? std::vector<unsigned>(1) : words;
        const std::string text = net_of_case(type, cases[i]);
        const std::vector<Shape> in = logical_shapes(p.inputs);
        for (DType storage : {DType::f32, DType::f16, DType::bf16}) {
            const Silence silence;
            Net net;
            net.opt.num_threads = 1;
            net.opt.use_fp16_storage = storage == DType::f16;
            net.opt.use_bf16_storage = storage == DType::bf16;
            ASSERT_EQ(kOk, net.load_param_mem(text.c_str())) << text;
            const unsigned char* data = (const unsigned char*)bytes.data();
            ASSERT_EQ(kOk, net.load_model(DataReaderFromMemory(data, words.size() * 4)));
            for (size_t k = 0; k < in.size(); k++) {
                for (int axis = 0; axis < in[k].dims; axis++) {
                    SCOPED_TRACE(p.text + ", " + dtype_name(storage) + ", axis " +
                                 std::to_string(axis) + " of input " + std::to_string(k) + " is 0");
                    check_axis(net, p, k, axis, storage, expected_shapes(*reference, in, k, axis));
                }
            }
        }
    }
}

}  // namespace quoll
