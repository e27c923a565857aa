// Common to the tensor operators (ONNX semantics, docs/operators/tensor.md): access to the values
// of a planar Mat by number, by index and along an axis, whatever their type. Steps and numbers
// count values.
#ifndef QUOLL_LAYER_TENSOR_H
#define QUOLL_LAYER_TENSOR_H

#include <stddef.h>
#include <string.h>

#include "layer/common/blocks.h"
#include "layer/common/schema.h"

namespace quoll {

// Base of the tensor operators: no weights, and inputs may have axes of size 0.
template <class T>
class TensorOperator : public Operator<T> {
public:
    TensorOperator() { this->support_zero_size = true; }
    static void params(T&, ParamVisitor&) {}
    static void weights(T&, WeightVisitor&) {}
};
// For operators that move the values of one blob and never compute with them.
inline void set_any_storage(Layer& layer) {
    layer.support_fp16_storage = layer.support_bf16_storage = true;
}

// Checks that there are `least` to `most` inputs, all of 1 to 4 axes and at most 2^31 - 1 values.
int expect_inputs(const Layer& layer, const std::vector<Shape>& in, size_t least, size_t most);
// Types that operators compute with: f32, s32, s8 and u8. Logs if it is none.
int expect_number(const Layer& layer, DType dtype);
int expect_dtype(const Layer& layer, const char* what, DType got, DType expected);
// A Mat of that shape, elempack 1; one without data if an axis has size 0.
int create_tensor(const Shape& shape, Mat* m, const Option& opt);
// As create_tops, but outputs may be empty, and those that infer_shapes does not know (dims 0) are
// left alone.
int create_tensors(const Layer& layer, const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                   const Option& opt);
// Creates the outputs for inputs without values, which may have values if with_values is set.
int create_from_nothing(const Layer& layer, const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                        bool with_values, const Option& opt);
// forward_empty for operators whose outputs are empty sums and therefore all have this value.
int fill_without_terms(const Layer& layer, const std::vector<Mat>& bottoms, std::vector<Mat>& tops,
                       float value, const Option& opt);
// A copy with memory of its own.
int clone_tensor(const Mat& m, Mat* copy, const Option& opt);

// Sizes from the outermost axis on. An empty list is a scalar, which is one axis of size 1; more
// than 4 sizes, negative ones, and more than 2^31 - 1 values are refused.
std::vector<int> sizes_of(const Shape& shape);
int shape_of_sizes(const Layer& layer, const std::vector<int>& sizes, DType dtype, Shape* shape);
// Completes the sizes to which a tensor without values is reshaped. A -1 becomes what the other
// sizes leave, not counting sizes of 0, so that a tensor that is only regrouped keeps its sizes. It
// becomes 0 if no other size is 0.
int complete_empty_sizes(const Layer& layer, const Shape& in, std::vector<int>* sizes);
// The integers of an s32 blob, at most `most` of them.
int read_ints(const Layer& layer, const char* what, const Mat& m, int most, std::vector<int>* out);
std::vector<int> ints_of_param(const Mat& param);

// Calls f(T()) with the C++ type of f32, s32, s8 or u8; or of a word of 1, 2 or 4 bytes.
template <class F>
void with_number(DType dtype, F f) {
    if (dtype == DType::f32) f(float());
    if (dtype == DType::s32) f(int32_t());
    if (dtype == DType::s8) f(int8_t());
    if (dtype == DType::u8) f(uint8_t());
}
template <class F>
void with_word(size_t bytes, F f) {
    if (bytes == 1) f(uint8_t());
    if (bytes == 2) f(uint16_t());
    if (bytes == 4) f(uint32_t());
}

// An index as ONNX has it, negative ones from the end, in [0, size); -1 if it is outside.
inline int wrap_index(int index, int size) {
    if (index < -size || index >= size) return -1;
    return index < 0 ? index + size : index;
}

// The position in memory of value number i in the order c d h w.
class Flat {
public:
    explicit Flat(const Mat& m) : plane_(0), step_(m.cstep) {
        const size_t plane = (size_t)m.w * m.h * m.d;
        if (m.dims >= 3 && m.c > 1 && m.cstep != plane) plane_ = plane;
    }
    size_t operator()(size_t i) const { return plane_ ? i / plane_ * step_ + i % plane_ : i; }

private:
    size_t plane_, step_;  // plane 0: no gaps
};
inline size_t value_count(const Mat& m) { return (size_t)m.w * m.h * m.d * m.c; }

// Copies the values with the numbers from, from + 1, ... of src to the numbers to, to + 1, ... of
// dst, which has the same elemsize.
void copy_values(const Mat& src, size_t from, Mat& dst, size_t to, size_t count);

// A Mat around one axis: `outer` times `size` runs of `inner` neighbouring values. Value r of run i
// of part o has number (o * size + i) * inner + r and lies at start(o) + i * step + r.
struct AlongAxis {
    size_t outer;
    int size;
    size_t inner, step;
    Flat flat;

    AlongAxis(const Mat& m, int axis);
    size_t start(size_t o) const { return flat(o * size * inner); }
};

// Steps along the axes c d h w; may be negative.
struct Steps {
    ptrdiff_t step[4];
};
Steps steps_of(const Mat& m);
// The steps of m when it is broadcast to larger sizes: 0 along axes of size 1. Missing axes come
// first, as in NumPy.
Steps spread_steps(const Mat& m);
// The sizes to which all inputs can be broadcast: equal or 1 on each axis, counted from the
// innermost.
int broadcast_shapes(const Layer& layer, const std::vector<Shape>& in, Shape* out);

// Calls f(at) for each row (all indexes of the first three axes): at[k] is where the row begins in
// Mat k.
template <size_t K, class F>
void for_each_row(const int size[4], const Steps (&steps)[K], F f) {
    ptrdiff_t at[K];
    for (int i = 0; i < size[0]; i++) {
        for (int j = 0; j < size[1]; j++) {
            for (int k = 0; k < size[2]; k++) {
                for (size_t n = 0; n < K; n++)
                    at[n] = i * steps[n].step[0] + j * steps[n].step[1] + k * steps[n].step[2];
                f(at);
            }
        }
    }
}

}  // namespace quoll

#endif
