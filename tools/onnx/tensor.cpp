#include "onnx/tensor.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include <algorithm>
#include <new>
#include <type_traits>

#include "layer/common/elementtype.h"
#include "onnx/limits.h"

namespace quoll {
namespace onnx_tool {

const char* type_name(ElementType type) {
    const ElementInfo* info = element_info((int)type);
    return info                              ? info->name
           : type == ElementType::kString    ? "string"
           : type == ElementType::kUndefined ? "none"
                                             : "of an unknown type";
}

bool is_supported(ElementType type) {
    return element_info((int)type) != nullptr || type == ElementType::kString;
}

DType mat_type(ElementType type) {
    const ElementInfo* info = element_info((int)type);
    return info ? info->dtype : DType::s32;
}

bool is_float(ElementType type) { return mat_type(type) == DType::f32; }

bool is_byte(ElementType type) { return dtype_size(mat_type(type)) == 1; }

int bits_of(ElementType type) {
    const ElementInfo* info = element_info((int)type);
    return info ? info->bits : 0;
}

bool is_small_float(ElementType type) { return is_float(type) && bits_of(type) <= 8; }

int cast_code(ElementType type) {
    if (type == ElementType::kBool) return 6;
    const DType dtype = mat_type(type);
    return dtype == DType::f32 ? 0 : dtype == DType::s32 ? 3 : dtype == DType::s8 ? 4 : 5;
}

int64_t element_count(const std::vector<int64_t>& dims) {
    int64_t count = 1;
    for (int64_t d : dims)
        if (d < 0 || d > INT_MAX) return -1;
    for (int64_t d : dims)
        if (d == 0) return 0;
    for (int64_t d : dims) {
        count *= d;
        if (count > INT_MAX) return -1;
    }
    return count;
}

Mat Tensor::room() const {
    Mat m;
    const size_t values = count();
    if (values) m.create((int)values, value_size());
    if (values && m.empty()) throw std::bad_alloc();
    return m;
}

Tensor Tensor::unset(ElementType type, const std::vector<int64_t>& dims) {
    Tensor t;
    t.type = type, t.dims = dims;
    Limits::spend_bytes((int64_t)(t.count() * t.value_size()));
    t.data_ = t.room();
    return t;
}

Tensor Tensor::in_file(ElementType type, const std::vector<int64_t>& dims,
                       const unsigned char* data, const std::shared_ptr<const void>& keeper) {
    Tensor t;
    t.type = type, t.dims = dims;
    Limits::spend_bytes((int64_t)(t.count() * t.value_size()));
    t.file_ = std::make_shared<InFile>(InFile{data, keeper, Mat()});
    return t;
}

const Mat& Tensor::copied() const {
    if (file_->keeper) {
        file_->copy = room();
        memcpy(file_->copy.data, file_->data, count() * value_size());
        file_->keeper.reset();
    }
    return file_->copy;
}

Tensor::Tensor(ElementType type, const std::vector<int64_t>& dims) : Tensor(unset(type, dims)) {
    if (data_.data) memset(data_.data, 0, count() * value_size());
}

Tensor Tensor::of_ints(const std::vector<int64_t>& values, bool scalar) {
    Tensor t(ElementType::kInt64,
             scalar ? std::vector<int64_t>() : std::vector<int64_t>{(int64_t)values.size()});
    for (size_t i = 0; i < values.size() && i < t.count(); i++) t.set_int(i, values[i]);
    return t;
}

Tensor Tensor::of_float(float value) {
    Tensor t(ElementType::kFloat, {});
    t.set_float(0, value);
    return t;
}

size_t Tensor::count() const { return (size_t)std::max<int64_t>(0, element_count(dims)); }

size_t Tensor::value_size() const { return is_float(type) ? 4 : is_byte(type) ? 1 : 8; }

int64_t Tensor::int_at(size_t i) const {
    if (is_float(type)) {
        const float v = f32()[i];
        return v != v ? 0 : v >= 9.2e18f ? INT64_MAX : v <= -9.2e18f ? INT64_MIN : (int64_t)v;
    }
    if (!is_byte(type)) return ((const int64_t*)bytes())[i];
    return mat_type(type) == DType::s8 ? (int64_t)(int8_t)bytes()[i] : (int64_t)bytes()[i];
}

float Tensor::float_at(size_t i) const { return is_float(type) ? f32()[i] : (float)int_at(i); }

// Values as they are held into others as they are held, the way set_int and set_float do it.
template <class From>
static void convert(const From* from, size_t count, float* to) {
    for (size_t i = 0; i < count; i++) to[i] = (float)from[i];
}
static void convert(const float* from, size_t count, float* to) { std::copy_n(from, count, to); }
template <class From, class To>
static void convert(const From* from, size_t count, To* to) {
    for (size_t i = 0; i < count; i++) to[i] = (To)(int64_t)from[i];
}

std::vector<int64_t> Tensor::ints() const {
    std::vector<int64_t> values(count());
    if (is_float(type))
        for (size_t i = 0; i < values.size(); i++) values[i] = int_at(i);
    else if (!values.empty())
        with_values(*this, [&](const auto* v) { convert(v, values.size(), values.data()); });
    return values;
}

std::vector<float> Tensor::floats() const {
    std::vector<float> values(count());
    if (!values.empty())
        with_values(*this, [&](const auto* v) { convert(v, values.size(), values.data()); });
    return values;
}

void Tensor::set_int(size_t i, int64_t value) {
    if (is_float(type))
        ((float*)bytes())[i] = (float)value;
    else if (is_byte(type))
        bytes()[i] = (unsigned char)value;
    else
        ((int64_t*)bytes())[i] = value;
}

void Tensor::set_float(size_t i, float value) {
    if (is_float(type))
        ((float*)bytes())[i] = value;
    else
        set_int(i, (int64_t)value);
}

Tensor Tensor::reshaped(const std::vector<int64_t>& new_dims) const {
    Tensor t = *this;
    t.dims = new_dims;
    return t;
}

Tensor Tensor::cast(ElementType to) const {
    Tensor t = *this;
    t.type = to;
    const bool wide = !is_float(to) && !is_byte(to) && !is_float(type) && !is_byte(type);
    const bool wraps =
        to != ElementType::kString && (bits_of(to) < 32 || to == ElementType::kInt32);
    if ((is_float(to) && is_float(type)) || (wide && !wraps)) return t;
    t = unset(to, dims);
    const size_t values = count();
    if (is_float(to) && values) {
        with_values(*this, [&](const auto* v) { convert(v, values, (float*)t.bytes()); });
        return t;
    }
    for (size_t i = 0; i < values; i++) {
        if (to == ElementType::kBool)
            t.set_int(i, is_float(type) ? float_at(i) != 0.f : int_at(i) != 0);
        else
            t.set_int(i, wraps ? (int64_t)low_bits(*element_info((int)to), (uint32_t)int_at(i))
                               : int_at(i));
    }
    return t;
}

// Of a matrix of values of sizeof(T) bytes, wherever it is aligned, the block of height x width
// values at `from`. It is put together first: the places that it goes to, one for each column, may
// all have the same place in the cache.
template <int kMost, class T, class Size>
static void transpose_block(const unsigned char* from, int64_t columns, int64_t rows, T* to,
                            Size height, Size width) {
    T block[kMost][kMost], row[kMost];
    for (int j = 0; j < height; j++) {
        memcpy(row, from + j * columns * (int64_t)sizeof(T), (size_t)width * sizeof(T));
        for (int i = 0; i < width; i++) block[i][j] = row[i];
    }
    for (int i = 0; i < width; i++) memcpy(to + i * rows, block[i], (size_t)height * sizeof(T));
}

// A matrix, by blocks, whose sizes the compiler knows but at the edges.
template <class T>
static void transpose_matrix(const unsigned char* from, int64_t rows, int64_t columns, T* to) {
    const int kBlock = sizeof(T) == 1 ? 32 : 16;
    const std::integral_constant<int, kBlock> whole;
    for (int64_t y = 0; y < rows; y += kBlock) {
        const int height = (int)std::min<int64_t>(kBlock, rows - y);
        for (int64_t x = 0; x < columns; x += kBlock) {
            const int width = (int)std::min<int64_t>(kBlock, columns - x);
            const unsigned char* const source = from + (y * columns + x) * (int64_t)sizeof(T);
            T* const target = to + x * rows + y;
            if (height == kBlock && width == kBlock)
                transpose_block<kBlock>(source, columns, rows, target, whole, whole);
            else
                transpose_block<kBlock>(source, columns, rows, target, height, width);
        }
    }
}

Tensor Tensor::transposed(const std::vector<int>& perm) const {
    const int n = rank();
    std::vector<int64_t> sizes(n), steps(n, 1), index(n, 0);
    std::vector<int64_t> in_steps(n, 1);
    for (int i = n - 2; i >= 0; i--) in_steps[i] = in_steps[i + 1] * dims[i + 1];
    for (int i = 0; i < n; i++) sizes[i] = dims[perm[i]], steps[i] = in_steps[perm[i]];
    Tensor t = unset(type, sizes);
    const size_t bytes_each = value_size();
    if (n == 2 && perm[0] == 1) {
        const unsigned char* const from = file_ && file_->keeper ? file_->data : bytes();
        if (bytes_each == 4)
            transpose_matrix(from, dims[0], dims[1], (uint32_t*)t.bytes());
        else if (bytes_each == 1)
            transpose_matrix(from, dims[0], dims[1], t.bytes());
        else
            transpose_matrix(from, dims[0], dims[1], (uint64_t*)t.bytes());
        return t;
    }
    const size_t values = count();
    int64_t at = 0;
    for (size_t i = 0; i < values; i++) {
        memcpy(t.bytes() + i * bytes_each, bytes() + at * bytes_each, bytes_each);
        for (int a = n - 1; a >= 0; a--) {
            at += steps[a];
            if (++index[a] < sizes[a]) break;
            at -= steps[a] * sizes[a];
            index[a] = 0;
        }
    }
    return t;
}

Mat Tensor::matrix() const {
    const int rows = (int)dims[0], columns = (int)dims[1];
    if (!file_ || !file_->keeper) return held().reshape(columns, rows);
    return Mat(columns, rows, const_cast<unsigned char*>(file_->data), (size_t)4u);
}

Mat Tensor::bits(size_t* limited) const {
    if (is_float(type)) return weight();
    Mat m((int)count());
    for (size_t i = 0; i < count() && !m.empty(); i++) {
        const int64_t v = int_at(i);
        const int64_t kept = std::min<int64_t>(std::max<int64_t>(v, INT32_MIN), INT32_MAX);
        if (v != kept && limited) (*limited)++;
        ((int32_t*)m.data)[i] = (int32_t)kept;
    }
    return m;
}

namespace {

template <class From>
void set_values(const From* from, size_t count, size_t at, Tensor* t) {
    if (is_float(t->type))
        convert(from, count, (float*)t->bytes() + at);
    else if (is_byte(t->type))
        convert(from, count, t->bytes() + at);
    else
        convert(from, count, (int64_t*)t->bytes() + at);
}

}  // namespace

Tensor tensor_of_mat(const Mat& m, ElementType type, const std::vector<int64_t>& dims) {
    Tensor t = Tensor::unset(type, dims);
    const size_t plane = (size_t)m.w * m.h * m.d, count = t.count();
    for (size_t at = 0, q = 0; at < count; at += plane, q++) {
        const size_t values = std::min(plane, count - at), from = q * m.cstep;
        if (m.dtype == DType::f32)
            set_values((const float*)m.data + from, values, at, &t);
        else if (m.dtype == DType::s32)
            set_values((const int32_t*)m.data + from, values, at, &t);
        else if (m.dtype == DType::s8)
            set_values((const int8_t*)m.data + from, values, at, &t);
        else
            set_values((const uint8_t*)m.data + from, values, at, &t);
    }
    return t;
}

}  // namespace onnx_tool
}  // namespace quoll
