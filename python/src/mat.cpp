#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "bindings.h"
#include "calls.h"
#include "memory.h"
#include "quoll/mat.h"

namespace quoll_python {

using quoll::DType;
using quoll::Mat;
using quoll::Shape;

namespace {

typedef std::shared_ptr<Pool> PoolPtr;

[[noreturn]] void no_axis(const char* what, int index, int count) {
    throw nb::index_error((std::string(what) + " " + std::to_string(index) + ": expected 0 to " + std::to_string(count - 1)).c_str());
}

// Sizes in the order w, h, d, c as ncnn gives them: (w), (w, h), (w, h, c), (w, h, d, c).
void create(Mat* mat, const std::vector<int>& sizes, size_t elemsize, int elempack, int n, const PoolPtr& pool) {
    if (sizes.empty() || sizes.size() > 4)
        throw Error("shape must be 1, 2, 3 or 4 dims, not " + std::to_string(sizes.size()));
    for (int size : sizes)
        if (size < 1) throw nb::value_error(("Mat: expected sizes of at least 1, got " + std::to_string(size)).c_str());
    if (elempack < 1 || elemsize < 1 || elemsize % (size_t)elempack || n < 1)
        throw nb::value_error("Mat: elemsize has to be a multiple of elempack, and n at least 1");
    if (is_borrowed(*mat)) mat->release();  // an array is not made into something else
    quoll::Allocator* const allocator = pool_of(pool);
    if (n > 1) {
        const size_t scalar = elemsize / (size_t)elempack;
        const DType dtype = scalar == 4 ? DType::f32 : scalar == 2 ? DType::f16 : DType::s8;
        Shape shape(sizes[0], sizes.size() > 1 ? sizes[1] : 1, sizes.size() > 3 ? sizes[2] : 1,
                    sizes.size() > 3 ? sizes[3] : sizes.size() > 2 ? sizes[2] : 1, dtype);
        shape.dims = (int)sizes.size(), shape.n = n;
        shape.set_size(0, shape.size(0) * elempack);
        mat->create(shape, elempack, allocator);
    } else if (sizes.size() == 1) {
        mat->create(sizes[0], elemsize, elempack, allocator);
    } else if (sizes.size() == 2) {
        mat->create(sizes[0], sizes[1], elemsize, elempack, allocator);
    } else if (sizes.size() == 3) {
        mat->create(sizes[0], sizes[1], sizes[2], elemsize, elempack, allocator);
    } else {
        mat->create(sizes[0], sizes[1], sizes[2], sizes[3], elemsize, elempack, allocator);
    }
    if (mat->empty()) throw std::bad_alloc();
}

// A part of a Mat that keeps all of it alive. `part`: what the library's views say; they do not own.
Mat shared_part(const Mat& whole, const Mat& part) {
    Mat result = whole;
    result.data = part.data;
    result.elemsize = part.elemsize, result.elempack = part.elempack, result.dtype = whole.dtype;
    result.dims = part.dims, result.w = part.w, result.h = part.h, result.d = part.d, result.c = part.c;
    result.cstep = part.cstep, result.n = part.n, result.nstep = part.nstep;
    return result;
}

void check_range(const char* what, int first, int count, int size) {
    if (first < 0 || count < 1 || first > size - count)
        throw nb::index_error((std::string(what) + ": " + std::to_string(count) + " from " + std::to_string(first) + ", but there are " +
                               std::to_string(size))
                                  .c_str());
}

Mat reshape(const Mat& m, const std::vector<int>& s, const PoolPtr& pool) {
    quoll::Allocator* const a = pool_of(pool);
    switch (s.size()) {
        case 1: return m.reshape(s[0], a);
        case 2: return m.reshape(s[0], s[1], a);
        case 3: return m.reshape(s[0], s[1], s[2], a);
        case 4: return m.reshape(s[0], s[1], s[2], s[3], a);
        default: throw Error("shape must be 1, 2, 3 or 4 dims, not " + std::to_string(s.size()));
    }
}

// Whether an argument is a size; arrays of one value can be numbers too, but are none.
bool is_size(nb::handle arg) {
    if (!PyIndex_Check(arg.ptr()) || nb::cast<int>(nb::getattr(arg, "ndim", nb::int_(0))) != 0) return false;
    const nb::object number = nb::steal(PyNumber_Index(arg.ptr()));
    if (!number.is_valid()) PyErr_Clear();
    return number.is_valid();
}

int size_from(nb::handle arg) {
    int size = 0;
    if (!nb::try_cast(arg, size))
        throw nb::value_error(("Mat: expected sizes of 1 to 2147483647, got " + std::string(nb::repr(arg).c_str())).c_str());
    return size;
}

// Sizes as separate numbers or as one sequence.
std::vector<int> sizes_from(const nb::args& args) {
    std::vector<int> sizes;
    if (args.size() == 1 && !is_size(args[0])) {
        for (nb::handle arg : args[0]) sizes.push_back(size_from(arg));
        return sizes;
    }
    for (nb::handle arg : args) sizes.push_back(size_from(arg));
    return sizes;
}

// As in ncnn i counts values as they lie, with the gaps between channels; none lie behind the last value.
float& value_at(Mat& m, int64_t i) {
    const int64_t last = (int64_t)(m.n - 1) * (int64_t)m.nstep + (int64_t)(m.c - 1) * (int64_t)m.cstep;
    const int64_t end = m.empty() ? 0 : (last + (int64_t)m.w * m.h * m.d) * m.elempack;
    if (m.dtype != DType::f32) throw nb::type_error("Mat[i] is for float32; numpy() has the values of other types");
    const int64_t at = i < 0 ? i + end : i;
    if (at < 0 || at >= end)
        throw nb::index_error(("Mat[" + std::to_string(i) + "]: the last value is that of " + std::to_string(end - 1)).c_str());
    return m[(size_t)at];
}

std::string text_of(const Mat& m) {
    if (m.dims == 0) return "quoll.Mat()";
    std::string text = "<quoll.Mat " + std::string(nb::str(sizes_of(m)).c_str()) + " " + dtype_text(m.dtype);
    if (m.elempack != 1) text += " elempack " + std::to_string(m.elempack);
    return text + ">";
}

void fill(Mat& m, nb::object value) {
    switch (m.dtype) {
        case DType::f32: return m.fill(nb::cast<float>(value));
        case DType::f16: return m.fill(quoll::float32_to_float16(nb::cast<float>(value)));
        case DType::bf16: return m.fill(quoll::float32_to_bfloat16(nb::cast<float>(value)));
        case DType::s32: return m.fill(nb::cast<int>(value));
        case DType::s8: return m.fill(nb::cast<signed char>(nb::int_(value)));
        case DType::u8: return m.fill(nb::cast<unsigned char>(nb::int_(value)));
    }
}

// Mat(array), Mat(w, h, ...) or Mat((w, h, ...)).
Mat construct(nb::args args, size_t elemsize, int elempack, PoolPtr allocator, bool copy, std::optional<int> batch_index) {
    Mat mat;
    if (args.size() == 0) return mat;
    if (args.size() == 1 && !is_size(args[0]) && !nb::isinstance<nb::tuple>(args[0])) {
        Mat* other = nullptr;
        if (nb::try_cast<Mat*>(args[0], other, false) && other) return copy ? other->clone() : *other;
        return mat_from_array(args[0], batch_index, copy);
    }
    create(&mat, sizes_from(args), elemsize, elempack, 1, allocator);
    return mat;
}

void bind_views(nb::class_<Mat>& mat) {
    mat.def("channel",
            [](const Mat& m, int c) {
                if (c < 0 || c >= m.c) no_axis("channel", c, m.c);
                return shared_part(m, m.channel(c));
            },
            nb::arg("c"), "Channel c, sharing memory.")
        .def("depth",
             [](const Mat& m, int z) {
                 if (z < 0 || z >= (m.dims == 4 ? m.d : m.c)) no_axis("depth", z, m.dims == 4 ? m.d : m.c);
                 return shared_part(m, m.dims == 4 ? m.depth(z) : m.channel(z));
             },
             nb::arg("z"), "Slice z of a channel of a 4-D Mat, sharing memory.")
        .def("row",
             [](const Mat& m, int y) {
                 if (y < 0 || y >= m.h) no_axis("row", y, m.h);
                 Mat row = shared_part(m, m.row_range(y, 1));
                 row.dims = 1, row.h = row.d = row.c = 1, row.cstep = row.nstep = (size_t)row.w;
                 return nb::steal(PyMemoryView_FromObject(numpy_of(row, "", std::nullopt).ptr()));
             },
             nb::arg("y"), "Row y as a memoryview, sharing memory.")
        .def("channel_range",
             [](const Mat& m, int c, int channels) {
                 check_range("channel_range", c, channels, m.c);
                 return shared_part(m, m.channel_range(c, channels));
             },
             nb::arg("c"), nb::arg("channels"))
        .def("depth_range",
             [](const Mat& m, int z, int depths) {
                 if (m.dims != 4) {
                     check_range("depth_range", z, depths, m.c);
                     return shared_part(m, m.channel_range(z, depths));
                 }
                 check_range("depth_range", z, depths, m.d);
                 return shared_part(m, m.depth_range(z, depths));
             },
             nb::arg("z"), nb::arg("depths"))
        .def("row_range",
             [](const Mat& m, int y, int rows) {
                 check_range("row_range", y, rows, m.h);
                 return shared_part(m, m.row_range(y, rows));
             },
             nb::arg("y"), nb::arg("rows"))
        .def("range",
             [](const Mat& m, int x, int n) {
                 check_range("range", x, n, m.w);
                 return shared_part(m, m.range(x, n));
             },
             nb::arg("x"), nb::arg("n"))
        .def("batch",
             [](const Mat& m, int b) {
                 if (b < 0 || b >= m.n) no_axis("batch", b, m.n);
                 return shared_part(m, m.batch(b));
             },
             nb::arg("b"), "Item b of a batch, sharing memory.");
}

void bind_sizes(nb::class_<Mat>& mat) {
    mat.def_prop_ro("dims", [](const Mat& m) { return m.dims; })
        .def_prop_ro("w", [](const Mat& m) { return m.w; })
        .def_prop_ro("h", [](const Mat& m) { return m.h; })
        .def_prop_ro("d", [](const Mat& m) { return m.d; })
        .def_prop_ro("c", [](const Mat& m) { return m.c; })
        .def_prop_ro("n", [](const Mat& m) { return m.n; }, "Batch items.")
        .def_prop_ro("cstep", [](const Mat& m) { return m.cstep; }, "Elements from one channel to the next.")
        .def_prop_ro("nstep", [](const Mat& m) { return m.nstep; }, "Elements from one batch item to the next.")
        .def_prop_ro("elemsize", [](const Mat& m) { return m.elemsize; }, "Bytes of an element, elempack scalars.")
        .def_prop_ro("elempack", [](const Mat& m) { return m.elempack; })
        .def_prop_ro("refcount", [](const Mat& m) { return m.refcount ? std::optional<int>(*m.refcount) : std::nullopt; })
        .def_prop_ro("allocator",
                     [](const Mat& m) {
                         SharedPool* const pool = shared_pool(m.allocator);
                         return pool && m.refcount ? PoolPtr(new Pool(pool)) : PoolPtr();
                     })
        .def("empty", &Mat::empty)
        .def("total", &Mat::total, "Elements from the first to the last, gaps between channels included.")
        .def("elembits", &Mat::elembits, "Bits of a scalar.")
        .def("shape", &Mat::shape, "The sizes as a Mat without values.")
        .def("__repr__", &text_of)
        .def("__bool__", [](const Mat& m) { return !m.empty(); })
        .def("__len__", [](const Mat& m) { return (size_t)m.w * m.h * m.d * m.c; });
}

}  // namespace

void bind_pixels(nb::class_<Mat>& mat);

void bind_mat(nb::module_& m) {
    nb::class_<Mat> mat(m, "Mat",
                        "An array of up to four axes (c, d, h, w) and a batch n, as layers take and give them.\n\n"
                        "Mat(array) shares a NumPy array's (or any DLPack or buffer object's) memory where it lies as a Mat: rows without\n"
                        "gaps, and channels of 3-D and 4-D arrays on multiples of 16 bytes; else, and with copy=True, it is a copy.\n"
                        "float32, float16, bfloat16, int32, int8, uint8 and bool. The memory lives as long as a Mat refers to it.\n"
                        "Mat(w), Mat(w, h), Mat(w, h, c), Mat(w, h, d, c), or Mat((w, h, c)), as in ncnn: uninitialised memory.");
    mat.def(nb::new_(&construct), nb::arg("args"), nb::kw_only(), nb::arg("elemsize") = 4, nb::arg("elempack") = 1,
            nb::arg("allocator") = nb::none(), nb::arg("copy") = false, nb::arg("batch_index") = nb::none(),
            "batch_index: the axis of the array that counts the items of a batch.");
    mat.def("create",
            [](Mat& self, nb::args args, size_t elemsize, int elempack, int n, PoolPtr allocator) {
                create(&self, sizes_from(args), elemsize, elempack, n, allocator);
            },
            nb::arg("args"), nb::kw_only(), nb::arg("elemsize") = 4, nb::arg("elempack") = 1, nb::arg("n") = 1,
            nb::arg("allocator") = nb::none(), "Makes this an owning Mat of the given sizes; keeps the memory if nothing changes.")
        .def("create_like", [](Mat& self, const Mat& other, PoolPtr allocator) { self.create_like(other, pool_of(allocator)); },
             nb::arg("m"), nb::arg("allocator") = nb::none())
        .def("clone", [](const Mat& self, PoolPtr allocator) { return self.clone(pool_of(allocator)); }, nb::arg("allocator") = nb::none(),
             "A deep copy.")
        .def("clone_from",
             [](Mat& self, nb::object other, PoolPtr allocator) { self = mat_from_object(other).clone(pool_of(allocator)); },
             nb::arg("mat"), nb::arg("allocator") = nb::none())
        .def("assign", [](Mat& self, const Mat& other) { self = other; }, nb::arg("mat"), "Refers to the other's memory from now on.")
        .def("reshape", [](const Mat& self, nb::args args, PoolPtr allocator) { return reshape(self, sizes_from(args), allocator); },
             nb::arg("args"), nb::kw_only(), nb::arg("allocator") = nb::none(),
             "The same elements in another shape (w), (w, h), (w, h, c) or (w, h, d, c); empty when the counts differ.")
        .def("fill", &fill, nb::arg("v"), "Sets all values.")
        .def("addref", &Mat::addref)
        .def("release", &Mat::release)
        .def("substract_mean_normalize",
             [](Mat& self, std::vector<float> mean, std::vector<float> norm) {
                 for (size_t count : {mean.size(), norm.size()})
                     if (count != 0 && (int)count != self.c)
                         throw nb::value_error(("substract_mean_normalize: expected " + std::to_string(self.c) +
                                                " values, one a channel, or none, got " + std::to_string(count))
                                                   .c_str());
                 call("substract_mean_normalize", [&] {
                     self.substract_mean_normalize(mean.empty() ? nullptr : mean.data(), norm.empty() ? nullptr : norm.data());
                     return 0;
                 });
             },
             nb::arg("mean"), nb::arg("norm"), "x = (x - mean) * norm for each channel, in place; float32. [] leaves that part out.")
        .def("__getitem__", [](Mat& self, int64_t i) { return value_at(self, i); }, nb::arg("i"))
        .def("__setitem__", [](Mat& self, int64_t i, float v) { value_at(self, i) = v; }, nb::arg("i"), nb::arg("v"));
    bind_sizes(mat);
    bind_views(mat);
    bind_arrays(mat);
    bind_pixels(mat);
}

}  // namespace quoll_python
