#include "arrays.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <string.h>

#include <memory>
#include <vector>

#include "calls.h"
#include "memory.h"

namespace quoll_python {

using quoll::DType;
using quoll::Mat;
using quoll::Shape;

namespace {

typedef nb::ndarray<nb::device::cpu> Array;
typedef nb::ndarray<nb::ro, nb::device::cpu> ReadOnlyArray;

constexpr size_t kChannelAlign = 16;  // bytes on which channels begin

struct Type {
    DType dtype;
    nb::dlpack::dtype_code code;
    int bits;
    const char* name;
};
const Type kTypes[] = {
    {DType::f32, nb::dlpack::dtype_code::Float, 32, "float32"}, {DType::f16, nb::dlpack::dtype_code::Float, 16, "float16"},
    {DType::bf16, nb::dlpack::dtype_code::Bfloat, 16, "bfloat16"}, {DType::s32, nb::dlpack::dtype_code::Int, 32, "int32"},
    {DType::s8, nb::dlpack::dtype_code::Int, 8, "int8"}, {DType::u8, nb::dlpack::dtype_code::UInt, 8, "uint8"},
    {DType::u8, nb::dlpack::dtype_code::Bool, 8, "bool"},
};

const Type& type_of(DType dtype) {
    for (const Type& type : kTypes)
        if (type.dtype == dtype) return type;
    return kTypes[0];
}

nb::dlpack::dtype dlpack_type(DType dtype) {
    const Type& type = type_of(dtype);
    return {(uint8_t)type.code, (uint8_t)type.bits, 1};
}

DType dtype_of(nb::dlpack::dtype type) {
    for (const Type& known : kTypes)
        if (type.code == (uint8_t)known.code && type.bits == known.bits && type.lanes == 1) return known.dtype;
    static const char* const kKinds[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
    const std::string kind = type.code < 7 ? kKinds[type.code] : "type " + std::to_string(type.code) + " of ";
    throw nb::type_error(("array: expected float32, float16, bfloat16, int32, int8, uint8 or bool, got " + kind +
                          std::to_string(type.bits))
                             .c_str());
}

// An axis of an array, its stride in elements.
struct Axis {
    int64_t size, stride;
};

struct Axes {
    Axis n{1, 0};
    std::vector<Axis> rest;  // outermost first, 1 to 4
    int64_t size(size_t from_inner) const { return from_inner < rest.size() ? rest[rest.size() - 1 - from_inner].size : 1; }
    int64_t stride(size_t from_inner) const { return from_inner < rest.size() ? rest[rest.size() - 1 - from_inner].stride : 0; }
};

template <class T>
Axes axes_of(const T& array, std::optional<int> batch_index) {
    Axes axes;
    const int ndim = (int)array.ndim(), batch = batch_index ? (*batch_index < 0 ? *batch_index + ndim : *batch_index) : -1;
    if (batch_index && (batch < 0 || batch >= ndim))
        throw nb::value_error(("batch_index " + std::to_string(*batch_index) + ": the array has " + std::to_string(ndim) + " axes").c_str());
    for (int i = 0; i < ndim; i++) {
        const Axis axis{(int64_t)array.shape(i), array.stride(i)};
        if (axis.size > INT32_MAX) throw nb::value_error("array: an axis has more than 2^31-1 elements");
        if (i == batch)
            axes.n = axis;
        else
            axes.rest.push_back(axis);
    }
    if (axes.rest.empty()) axes.rest.push_back({1, 1});
    if (axes.rest.size() > 4)
        throw nb::value_error(("array: expected 1 to 4 axes (and one more with batch_index), got " + std::to_string(ndim) +
                               "; Net.run takes arrays of any rank for models that say theirs")
                                  .c_str());
    return axes;
}

Shape shape_of(const Axes& axes, DType dtype) {
    Shape shape(1, 1, 1, 1, dtype);
    shape.dims = (int)axes.rest.size();
    shape.n = (int)axes.n.size;
    for (int i = 0; i < shape.dims; i++) shape.set_size(i, (int)axes.rest[i].size);
    return shape;
}

// Inner axes: those of a channel, which lie without gaps in a Mat.
bool lies_as_mat(const Axes& axes, size_t itemsize) {
    const bool has_channels = axes.rest.size() >= 3;
    const size_t inner = has_channels ? axes.rest.size() - 1 : axes.rest.size();
    int64_t expected = 1;
    for (size_t i = 0; i < inner; i++) {
        if (axes.size(i) != 1 && axes.stride(i) != expected) return false;
        expected *= axes.size(i);
    }
    const auto steps = [&](const Axis& axis, int64_t least) {
        return axis.size == 1 || (axis.stride >= least && axis.stride * (int64_t)itemsize % (int64_t)kChannelAlign == 0);
    };
    if (has_channels && !steps(axes.rest[0], expected)) return false;
    const int64_t item = has_channels && axes.rest[0].size > 1 ? axes.rest[0].stride * axes.rest[0].size : expected;
    return steps(axes.n, item);
}

struct ArrayOwner : Owner {
    explicit ArrayOwner(Array a) : array(std::move(a)) {}
    Array array;
};

Mat view_of(const Array& array, const Axes& axes, DType dtype) {
    const Shape shape = shape_of(axes, dtype);
    const size_t itemsize = quoll::dtype_size(dtype);
    Mat mat;
    mat.data = array.data();
    mat.elemsize = itemsize, mat.elempack = 1, mat.dtype = dtype;
    mat.dims = shape.dims, mat.w = shape.w, mat.h = shape.h, mat.d = shape.d, mat.c = shape.c, mat.n = shape.n;
    mat.cstep = (size_t)shape.w * shape.h * shape.d;
    if (shape.dims >= 3)
        mat.cstep = axes.rest[0].size > 1 ? (size_t)axes.rest[0].stride
                                          : Mat::channel_step(shape.dims, shape.w, shape.h, shape.d, itemsize);
    mat.nstep = shape.n > 1 ? (size_t)axes.n.stride : mat.cstep * shape.c;
    // A single channel ends with its last value.
    if (shape.dims >= 3 && axes.rest[0].size == 1) mat.cstep = (size_t)shape.w * shape.h * shape.d;
    give_owner(&mat, std::unique_ptr<Owner>(new ArrayOwner(array)));
    return mat;
}

void copy_axis(const char* from, char* to, const Axes& axes, size_t axis, size_t itemsize) {
    if (axis == 0 && axes.stride(0) == 1) {
        memcpy(to, from, (size_t)axes.size(0) * itemsize);
        return;
    }
    size_t block = itemsize;
    for (size_t i = 0; i < axis; i++) block *= (size_t)axes.size(i);
    for (int64_t i = 0; i < axes.size(axis); i++) {
        const char* const at = from + i * axes.stride(axis) * (int64_t)itemsize;
        if (axis == 0)
            memcpy(to + i * block, at, itemsize);
        else
            copy_axis(at, to + i * block, axes, axis - 1, itemsize);
    }
}

// Sizes without values.
Mat without_values(const Shape& shape) {
    Mat mat;
    mat.dims = shape.dims, mat.w = shape.w, mat.h = shape.h, mat.d = shape.d, mat.c = shape.c, mat.n = shape.n;
    mat.dtype = shape.dtype, mat.elemsize = quoll::dtype_size(shape.dtype), mat.elempack = 1;
    return mat;
}

Mat copy_of(const void* data, const Axes& axes, DType dtype) {
    const Shape shape = shape_of(axes, dtype);
    if (shape.total() == 0) return without_values(shape);
    Mat mat(shape);
    if (mat.empty()) throw std::bad_alloc();
    const size_t itemsize = quoll::dtype_size(dtype), dims = axes.rest.size();
    const bool has_channels = dims >= 3;
    const size_t innermost = has_channels ? dims - 2 : dims - 1;
    for (int b = 0; b < mat.n; b++)
        for (int q = 0; q < mat.c; q++) {
            const int64_t at = b * axes.n.stride + (has_channels ? q * axes.rest[0].stride : 0);
            copy_axis((const char*)data + at * (int64_t)itemsize, (char*)mat.data + ((size_t)b * mat.nstep + (size_t)q * mat.cstep) * itemsize,
                      axes, innermost, itemsize);
        }
    return mat;
}

}  // namespace

const char* dtype_text(DType dtype) { return type_of(dtype).name; }

nb::tuple sizes_of(const Mat& mat) {
    const Shape shape = mat.logical_shape();
    nb::list sizes;
    if (shape.n != 1) sizes.append(shape.n);
    for (int i = 0; i < shape.dims; i++) sizes.append(shape.size(i));
    return nb::tuple(sizes);
}

Mat mat_from_array(nb::handle object, std::optional<int> batch_index, bool copy) {
    Array array;
    if (!copy && nb::try_cast<Array>(object, array, false)) {
        const Axes axes = axes_of(array, batch_index);
        const DType dtype = dtype_of(array.dtype());
        if (array.size() != 0 && lies_as_mat(axes, quoll::dtype_size(dtype))) return view_of(array, axes, dtype);
        return copy_of(array.data(), axes, dtype);
    }
    ReadOnlyArray read_only;
    if (!nb::try_cast<ReadOnlyArray>(object, read_only, false))
        throw nb::type_error(("expected a Mat or an array in this machine's memory (NumPy, DLPack, the buffer protocol), got " +
                              std::string(nb::type_name(object.type()).c_str()))
                                 .c_str());
    return copy_of(read_only.data(), axes_of(read_only, batch_index), dtype_of(read_only.dtype()));
}

Mat mat_from_object(nb::handle object) {
    Mat* mat = nullptr;
    if (nb::try_cast<Mat*>(object, mat, false) && mat) return *mat;
    return mat_from_array(object, std::nullopt, false);
}

Mat copy_from_object(nb::handle object) {
    const Mat* mat = nullptr;
    if (!nb::try_cast<const Mat*>(object, mat, false) || !mat) return mat_from_array(object, std::nullopt, true);
    const Mat copy = mat->empty() ? *mat : mat->clone();
    if (copy.empty() && !mat->empty()) throw std::bad_alloc();
    return copy;
}

namespace {

// The type that a format character of the struct module names.
nb::dlpack::dtype type_of_format(const std::string& format, const Mat& mat) {
    static const struct {
        char format;
        nb::dlpack::dtype_code code;
        int bits;
    } kFormats[] = {{'f', nb::dlpack::dtype_code::Float, 32}, {'i', nb::dlpack::dtype_code::Int, 32},
                    {'I', nb::dlpack::dtype_code::UInt, 32},  {'e', nb::dlpack::dtype_code::Float, 16},
                    {'h', nb::dlpack::dtype_code::Int, 16},   {'H', nb::dlpack::dtype_code::UInt, 16},
                    {'b', nb::dlpack::dtype_code::Int, 8},    {'B', nb::dlpack::dtype_code::UInt, 8}};
    for (const auto& f : kFormats)
        if (format.size() == 1 && format[0] == f.format && (size_t)f.bits == mat.elemsize * 8)
            return {(uint8_t)f.code, (uint8_t)f.bits, 1};
    throw nb::value_error(("format '" + format + "': expected a character of the struct module for elements of " +
                           std::to_string(mat.elemsize) + " bytes")
                              .c_str());
}

struct Layout {
    std::vector<size_t> sizes;
    std::vector<int64_t> strides;
};

Layout layout_of(const Mat& mat, std::optional<int> batch_index) {
    const Shape shape = mat.logical_shape();
    const int64_t by_axis[] = {1, mat.w, (int64_t)mat.w * mat.h, (int64_t)mat.cstep};
    Layout layout;
    for (int i = 0; i < shape.dims; i++) {
        const int from_inner = shape.dims - 1 - i;
        layout.sizes.push_back((size_t)shape.size(i));
        layout.strides.push_back(shape.dims == 3 && i == 0 ? (int64_t)mat.cstep : by_axis[from_inner]);
    }
    if (mat.n == 1 && !batch_index) return layout;
    const int rank = shape.dims + 1, at = batch_index ? (*batch_index < 0 ? *batch_index + rank : *batch_index) : 0;
    if (at < 0 || at >= rank)
        throw nb::value_error(("batch_index " + std::to_string(*batch_index) + ": the array has " + std::to_string(rank) + " axes").c_str());
    layout.sizes.insert(layout.sizes.begin() + at, (size_t)mat.n);
    layout.strides.insert(layout.strides.begin() + at, (int64_t)mat.nstep);
    return layout;
}

// Elements one after another, or an exception.
Mat planar(const Mat& mat) {
    if (mat.dims == 0) throw Error("the Mat is empty");
    if (mat.elempack == 1) return mat;
    Mat result;
    quoll::convert_packing(mat, result, 1);
    if (result.empty()) throw std::bad_alloc();
    return result;
}

nb::capsule capsule_of(const Mat& mat) {
    return nb::capsule(new Mat(mat), [](void* p) noexcept { delete (Mat*)p; });
}

template <class Framework>
nb::object array_of(const Mat& mat, const Layout& layout, nb::dlpack::dtype type, nb::rv_policy policy) {
    static char nothing[64];
    const nb::ndarray<Framework> array(mat.data ? mat.data : nothing, layout.sizes.size(), layout.sizes.data(), capsule_of(mat),
                                       layout.strides.data(), type);
    return nb::cast(array, policy);
}

nb::object dlpack_of(const Mat& mat, nb::kwargs more) {
    const Mat m = planar(mat);
    const nb::object array = array_of<nb::array_api>(m, layout_of(m, std::nullopt), dlpack_type(m.dtype), nb::rv_policy::reference);
    return array.attr("__dlpack__")(**more);
}

nb::object array_protocol(const Mat& mat, nb::handle dtype, nb::handle copy) {
    nb::object array = numpy_of(mat, "", std::nullopt);
    const bool must_copy = !copy.is_none() && nb::cast<bool>(copy);
    if (!dtype.is_none()) return array.attr("astype")(dtype, nb::arg("copy") = must_copy);
    return must_copy ? array.attr("copy")() : array;
}

}  // namespace

nb::object numpy_of(const Mat& mat, const std::string& format, std::optional<int> batch_index) {
    Mat m = planar(mat);
    if (!format.empty()) return array_of<nb::numpy>(m, layout_of(m, batch_index), type_of_format(format, m), nb::rv_policy::reference);
    if (m.dtype == DType::bf16 && !m.empty()) {
        Mat wide;
        quoll::cast_bfloat16_to_float32(m, wide);
        if (wide.empty()) throw std::bad_alloc();
        m = wide;
    }
    const DType dtype = m.dtype == DType::bf16 ? DType::f32 : m.dtype;
    return array_of<nb::numpy>(m, layout_of(m, batch_index), dlpack_type(dtype), nb::rv_policy::reference);
}

void bind_arrays(nb::class_<Mat>& mat) {
    mat.def("numpy", &numpy_of, nb::arg("format") = "", nb::arg("batch_index") = nb::none(),
            "The values as a NumPy array: (w,), (h, w), (c, h, w) or (c, d, h, w), with the batch n in front where n is not 1, or\n"
            "at batch_index. It shares the Mat's memory and keeps it alive; only elempack > 1 and bfloat16 (as float32) are copied.\n"
            "format: read the elements as another type of the same size, as the struct module names it ('i', 'f', 'e', 'B').")
        .def("__array__", &array_protocol, nb::arg("dtype") = nb::none(), nb::kw_only(), nb::arg("copy") = nb::none())
        .def("__dlpack__", &dlpack_of, nb::arg("kwargs"),
             "The values for torch.from_dlpack and the like, sharing memory; bfloat16 stays bfloat16.")
        .def("__dlpack_device__", [](const Mat&) { return nb::make_tuple(1, 0); })
        .def_prop_ro("sizes", &sizes_of, "The sizes of numpy()'s axes.")
        .def_prop_ro("dtype", [](const Mat& m) { return dtype_text(m.dtype); },
                     "'float32', 'float16', 'bfloat16', 'int32', 'int8' or 'uint8'.");
}

}  // namespace quoll_python
