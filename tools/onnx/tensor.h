// A constant tensor of an ONNX model on the host.
#ifndef QUOLL_TOOLS_ONNX_TENSOR_H
#define QUOLL_TOOLS_ONNX_TENSOR_H

#include <stdint.h>

#include <memory>
#include <string>
#include <vector>

#include "quoll/mat.h"

namespace quoll {
namespace onnx_tool {

// Element types with the numbers of ONNX's TensorProto.DataType.
enum class ElementType {
    kUndefined = 0,
    kFloat = 1,
    kUint8 = 2,
    kInt8 = 3,
    kUint16 = 4,
    kInt16 = 5,
    kInt32 = 6,
    kInt64 = 7,
    kString = 8,
    kBool = 9,
    kFloat16 = 10,
    kDouble = 11,
    kUint32 = 12,
    kUint64 = 13,
    kBfloat16 = 16,
    kFloat8e4m3fn = 17,
    kFloat8e4m3fnuz = 18,
    kFloat8e5m2 = 19,
    kFloat8e5m2fnuz = 20,
    kUint4 = 21,
    kInt4 = 22,
    kFloat4e2m1 = 23,
    kFloat8e8m0 = 24,
    kUint2 = 25,
    kInt2 = 26,
    kFloat6e2m3 = 27,
    kFloat6e3m2 = 28,
};

const char* type_name(ElementType type);  // "float32", ...
bool is_float(ElementType type);          // all from float4e2m1 to double: f32 here
bool is_byte(ElementType type);           // bool, and integers of at most 8 bits
bool is_supported(ElementType type);      // one that a Mat can stand for; strings as places
int bits_of(ElementType type);            // of a value in a file; 0 if it is not supported
// Floats of 8 bits and less: unlike those of 16 bits, such values are rounded by a Cast.
bool is_small_float(ElementType type);
// The type of a Mat that stands for such a tensor; s32 for whole numbers of more than a byte.
DType mat_type(ElementType type);
// The number that layers CastTo, ConstantOfShape, EyeLike know the type by.
int cast_code(ElementType type);

// The product of sizes; -1 if one is negative or it passes 2^31 - 1, which no Mat may have.
int64_t element_count(const std::vector<int64_t>& dims);

// Values are held as float, int64_t or one byte, whatever the type; copies share them. Those that
// lie in a mapped file as they are held are copied when they are asked for.
class Tensor {
public:
    Tensor() {}
    // Zeros. The element count of dims must have been checked.
    Tensor(ElementType type, const std::vector<int64_t>& dims);
    // Values that are to be written.
    static Tensor unset(ElementType type, const std::vector<int64_t>& dims);
    // Values at `data`, wherever that is aligned, as long as there is a `keeper`.
    static Tensor in_file(ElementType type, const std::vector<int64_t>& dims,
                          const unsigned char* data, const std::shared_ptr<const void>& keeper);
    static Tensor of_ints(const std::vector<int64_t>& values, bool scalar = false);
    static Tensor of_float(float value);

    ElementType type = ElementType::kUndefined;
    std::vector<int64_t> dims;

    size_t count() const;
    int rank() const { return (int)dims.size(); }
    size_t value_size() const;  // bytes of one value as held

    int64_t int_at(size_t i) const;  // of a float: truncated
    float float_at(size_t i) const;
    std::vector<int64_t> ints() const;
    std::vector<float> floats() const;
    void set_int(size_t i, int64_t value);
    void set_float(size_t i, float value);

    unsigned char* bytes() { return (unsigned char*)held().data; }
    const unsigned char* bytes() const { return (const unsigned char*)held().data; }
    const float* f32() const { return (const float*)held().data; }  // is_float types only

    // The same values with other sizes of the same product.
    Tensor reshaped(const std::vector<int64_t>& new_dims) const;
    // As ONNX Cast, but that floats stay the floats they are.
    Tensor cast(ElementType to) const;
    Tensor transposed(const std::vector<int>& perm) const;

    // The values as they are held, which must not be int64_t: a 1-D Mat of f32, or of bytes as s8,
    // in the same memory.
    Mat weight() const { return held(); }
    // A matrix of floats as a 2-D Mat where it lies, at any address; in_file(): as long as the
    // keeper keeps it.
    Mat matrix() const;
    // The values as the bits of 1-D f32: floats as they are, ints as 32-bit ints. *limited counts
    // ints that did not fit.
    Mat bits(size_t* limited) const;

private:
    struct InFile {
        const unsigned char* data;
        std::shared_ptr<const void> keeper;  // null once they have been copied
        Mat copy;
    };
    const Mat& held() const { return file_ ? copied() : data_; }
    const Mat& copied() const;
    Mat room() const;  // for the values, of value_size()

    Mat data_;  // 1-D
    std::shared_ptr<InFile> file_;
};

// Calls f with the values as they are held: const float*, int64_t*, int8_t* or uint8_t*. Loops over
// many values go through this: the accessors look at the type for each.
template <class F>
void with_values(const Tensor& t, F f) {
    if (is_float(t.type))
        f(t.f32());
    else if (!is_byte(t.type))
        f((const int64_t*)t.bytes());
    else if (mat_type(t.type) == DType::s8)
        f((const int8_t*)t.bytes());
    else
        f((const uint8_t*)t.bytes());
}

// From a planar Mat of an engine's run (n of 1).
Tensor tensor_of_mat(const Mat& m, ElementType type, const std::vector<int64_t>& dims);

}  // namespace onnx_tool
}  // namespace quoll

#endif
