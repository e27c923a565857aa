// Pixels to and from Mats; resizing, borders, casts.
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "arrays.h"
#include "bindings.h"
#include "calls.h"
#include "memory.h"
#include "option.h"

namespace quoll_python {

using quoll::Mat;

namespace {

typedef nb::ndarray<nb::ro, nb::device::cpu, uint8_t, nb::c_contig> Pixels;

int channels_of(int type) {
    static const int kChannels[] = {3, 3, 1, 4, 4};
    return type >= 1 && type <= 5 ? kChannels[type - 1] : 0;
}
int source_channels(int type) { return channels_of(type & Mat::PIXEL_FORMAT_MASK); }
int target_channels(int type) {
    const int target = (int)((unsigned)type >> Mat::PIXEL_CONVERT_SHIFT);
    return channels_of(target ? target : type & Mat::PIXEL_FORMAT_MASK);
}

// A member of Mat.PixelType, or its number.
int pixel_type(nb::handle type) {
    PyObject* const number = PyNumber_Index(type.ptr());
    if (!number) throw nb::python_error();
    return nb::cast<int>(nb::steal(number));
}

// The bytes of a row; throws when the array holds fewer than h of them.
int check_pixels(const Pixels& pixels, int type, int w, int h, int stride) {
    const int channels = source_channels(type), row = w * channels;
    if (channels == 0) throw nb::value_error(("pixel type " + std::to_string(type) + ": expected one of Mat.PixelType").c_str());
    if (w < 1 || h < 1) throw nb::value_error("pixels: expected w and h of at least 1");
    if (stride == 0) stride = row;
    if (stride < row) throw nb::value_error(("stride " + std::to_string(stride) + ": a row has " + std::to_string(row) + " bytes").c_str());
    const size_t needed = (size_t)stride * (h - 1) + row;
    if (pixels.nbytes() < needed)
        throw nb::value_error(("pixels: " + std::to_string(w) + " x " + std::to_string(h) + " of " + std::to_string(channels) +
                               " channels need " + std::to_string(needed) + " bytes, got " + std::to_string(pixels.nbytes()))
                                  .c_str());
    return stride;
}

template <class F>
Mat make(const char* what, const F& f) {
    Mat result;
    call(what, [&] {
        result = f();
        return result.empty() ? quoll::kError : quoll::kOk;
    });
    return result;
}

struct Region {
    int x, y, w, h;
};

Mat from_pixels(const Pixels& pixels, nb::handle kind, int w, int h, int stride, std::shared_ptr<Pool> pool) {
    const int type = pixel_type(kind);
    stride = check_pixels(pixels, type, w, h, stride);
    return make("from_pixels", [&] { return Mat::from_pixels(pixels.data(), type, w, h, stride, pool_of(pool)); });
}

Mat from_pixels_resize(const Pixels& pixels, nb::handle kind, int w, int h, int stride, int tw, int th, std::shared_ptr<Pool> pool) {
    const int type = pixel_type(kind);
    stride = check_pixels(pixels, type, w, h, stride);
    return make("from_pixels_resize", [&] { return Mat::from_pixels_resize(pixels.data(), type, w, h, stride, tw, th, pool_of(pool)); });
}

Mat from_pixels_roi(const Pixels& pixels, nb::handle kind, int w, int h, int stride, Region r, std::shared_ptr<Pool> pool) {
    const int type = pixel_type(kind);
    stride = check_pixels(pixels, type, w, h, stride);
    return make("from_pixels_roi",
                [&] { return Mat::from_pixels_roi(pixels.data(), type, w, h, stride, r.x, r.y, r.w, r.h, pool_of(pool)); });
}

Mat from_pixels_roi_resize(const Pixels& pixels, nb::handle kind, int w, int h, int stride, Region r, int tw, int th, std::shared_ptr<Pool> pool) {
    const int type = pixel_type(kind);
    stride = check_pixels(pixels, type, w, h, stride);
    return make("from_pixels_roi_resize", [&] {
        return Mat::from_pixels_roi_resize(pixels.data(), type, w, h, stride, r.x, r.y, r.w, r.h, tw, th, pool_of(pool));
    });
}

nb::object to_pixels(const Mat& mat, nb::handle kind, int w, int h) {
    const int type = pixel_type(kind);
    const int channels = target_channels(type);
    if (channels == 0) throw nb::value_error("to_pixels: expected one of Mat.PixelType");
    if (mat.empty() || mat.dtype != quoll::DType::f32 || mat.elempack != 1 || mat.c != source_channels(type))
        throw nb::value_error(("to_pixels: expected a float32 Mat of " + std::to_string(source_channels(type)) + " channels").c_str());
    if (w < 1 || h < 1) w = mat.w, h = mat.h;
    std::unique_ptr<unsigned char[]> bytes(new unsigned char[(size_t)w * h * channels]);
    call("to_pixels", [&] {
        mat.to_pixels_resize(bytes.get(), type, w, h);
        return 0;
    });
    unsigned char* const data = bytes.release();
    const nb::capsule owner(data, [](void* p) noexcept { delete[] (unsigned char*)p; });
    const size_t sizes[] = {(size_t)h, (size_t)w, (size_t)channels};
    return nb::cast(nb::ndarray<nb::numpy, unsigned char>(data, channels == 1 ? 2 : 3, sizes, owner), nb::rv_policy::reference);
}

void bind_pixel_types(nb::class_<Mat>& mat) {
    nb::enum_<Mat::PixelType> types(mat, "PixelType", nb::is_arithmetic(), "Order of the bytes of a pixel; A2B converts.");
    static const char* const kNames[] = {"RGB", "BGR", "GRAY", "RGBA", "BGRA"};
    types.value("PIXEL_CONVERT_SHIFT", Mat::PIXEL_CONVERT_SHIFT).value("PIXEL_FORMAT_MASK", Mat::PIXEL_FORMAT_MASK);
    types.value("PIXEL_CONVERT_MASK", Mat::PIXEL_CONVERT_MASK);
    // nanobind keeps the pointers.
    static std::vector<std::string>* const names = new std::vector<std::string>;
    names->reserve(25);
    for (int from = 1; from <= 5; from++) {
        names->push_back(std::string("PIXEL_") + kNames[from - 1]);
        types.value(names->back().c_str(), (Mat::PixelType)from);
    }
    for (int from = 1; from <= 5; from++)
        for (int to = 1; to <= 5; to++) {
            // No conversions that leave the order as it is.
            if (from == to) continue;
            names->push_back(std::string("PIXEL_") + kNames[from - 1] + "2" + kNames[to - 1]);
            types.value(names->back().c_str(), (Mat::PixelType)(from | to << Mat::PIXEL_CONVERT_SHIFT));
        }
    types.export_values();
}

}  // namespace

void bind_pixels(nb::class_<Mat>& mat) {
    bind_pixel_types(mat);
    const auto pool = nb::arg("allocator") = nb::none();
    mat.def_static("from_pixels", &from_pixels, nb::arg("array"), nb::arg("type"), nb::arg("w"), nb::arg("h"), nb::arg("stride") = 0, pool,
                   "A w x h image of interleaved uint8 pixels as a float32 Mat (channels, h, w), values 0 to 255.\n"
                   "type: Mat.PixelType; stride: bytes of a row, 0: w * channels.");
    const auto resize = [](const Pixels& a, nb::handle type, int w, int h, int tw, int th, std::shared_ptr<Pool> p) {
        return from_pixels_resize(a, type, w, h, 0, tw, th, p);
    };
    mat.def_static("from_pixels_resize", resize, nb::arg("array"), nb::arg("type"), nb::arg("w"), nb::arg("h"), nb::arg("target_width"),
                   nb::arg("target_height"), pool, "from_pixels, resized (bilinear) to target_width x target_height first.");
    mat.def_static("from_pixels_resize", &from_pixels_resize, nb::arg("array"), nb::arg("type"), nb::arg("w"), nb::arg("h"),
                   nb::arg("stride"), nb::arg("target_width"), nb::arg("target_height"), pool);
    const auto roi = [](const Pixels& a, nb::handle type, int w, int h, int x, int y, int rw, int rh, std::shared_ptr<Pool> p) {
        return from_pixels_roi(a, type, w, h, 0, {x, y, rw, rh}, p);
    };
    mat.def_static("from_pixels_roi", roi, nb::arg("array"), nb::arg("type"), nb::arg("w"), nb::arg("h"), nb::arg("roix"),
                   nb::arg("roiy"), nb::arg("roiw"), nb::arg("roih"), pool, "The rectangle at (roix, roiy) of roiw x roih pixels.");
    const auto roi_stride = [](const Pixels& a, nb::handle type, int w, int h, int stride, int x, int y, int rw, int rh, std::shared_ptr<Pool> p) {
        return from_pixels_roi(a, type, w, h, stride, {x, y, rw, rh}, p);
    };
    mat.def_static("from_pixels_roi", roi_stride, nb::arg("array"), nb::arg("type"), nb::arg("w"), nb::arg("h"), nb::arg("stride"),
                   nb::arg("roix"), nb::arg("roiy"), nb::arg("roiw"), nb::arg("roih"), pool);
    const auto roi_resize = [](const Pixels& a, nb::handle type, int w, int h, int x, int y, int rw, int rh, int tw, int th, std::shared_ptr<Pool> p) {
        return from_pixels_roi_resize(a, type, w, h, 0, {x, y, rw, rh}, tw, th, p);
    };
    mat.def_static("from_pixels_roi_resize", roi_resize, nb::arg("array"), nb::arg("type"), nb::arg("w"), nb::arg("h"), nb::arg("roix"),
                   nb::arg("roiy"), nb::arg("roiw"), nb::arg("roih"), nb::arg("target_width"), nb::arg("target_height"), pool,
                   "The rectangle, resized.");
    const auto roi_resize_stride = [](const Pixels& a, nb::handle type, int w, int h, int stride, int x, int y, int rw, int rh, int tw, int th,
                                      std::shared_ptr<Pool> p) {
        return from_pixels_roi_resize(a, type, w, h, stride, {x, y, rw, rh}, tw, th, p);
    };
    mat.def_static("from_pixels_roi_resize", roi_resize_stride, nb::arg("array"), nb::arg("type"), nb::arg("w"), nb::arg("h"),
                   nb::arg("stride"), nb::arg("roix"), nb::arg("roiy"), nb::arg("roiw"), nb::arg("roih"), nb::arg("target_width"),
                   nb::arg("target_height"), pool);
    mat.def("to_pixels", &to_pixels, nb::arg("type"), nb::arg("w") = 0, nb::arg("h") = 0,
            "This float32 Mat (channels, h, w) as a uint8 array (h, w, channels), or (h, w) in grey; resized if w and h are given.");
}

namespace {

typedef void (*Resize)(const Mat&, Mat&, int, int, const quoll::Option&);
typedef void (*Cast)(const Mat&, Mat&, const quoll::Option&);

template <class F>
Mat transform(const char* what, nb::handle src, const F& f) {
    const Mat in = safe_to_run(mat_from_object(src));
    return make(what, [&] {
        Mat out;
        f(in, out);
        return out;
    });
}

void bind_resize(nb::module_& m, const char* name, Resize resize) {
    m.def(name, [=](nb::handle src, int w, int h, const PyOption& opt) {
        return transform(name, src, [&](const Mat& in, Mat& out) { resize(in, out, w, h, opt.get()); });
    }, nb::arg("src"), nb::arg("w"), nb::arg("h"), nb::arg("opt") = PyOption(),
          "A float32 Mat or array (c, h, w), resized to w x h; of (h, w) only w.");
}

void bind_cast(nb::module_& m, const char* name, Cast cast) {
    m.def(name, [=](nb::handle src, const PyOption& opt) {
        return transform(name, src, [&](const Mat& in, Mat& out) { cast(in, out, opt.get()); });
    }, nb::arg("src"), nb::arg("opt") = PyOption());
}

}  // namespace

void bind_mat_functions(nb::module_& m) {
    m.attr("BORDER_CONSTANT") = (int)quoll::BORDER_CONSTANT;
    m.attr("BORDER_REPLICATE") = (int)quoll::BORDER_REPLICATE;
    m.attr("BORDER_REFLECT") = (int)quoll::BORDER_REFLECT;
    m.attr("BORDER_TRANSPARENT") = (int)quoll::BORDER_TRANSPARENT;
    bind_resize(m, "resize_nearest", quoll::resize_nearest);
    bind_resize(m, "resize_bilinear", quoll::resize_bilinear);
    bind_resize(m, "resize_bicubic", quoll::resize_bicubic);
    bind_cast(m, "flatten", quoll::flatten);
    bind_cast(m, "cast_float32_to_float16", quoll::cast_float32_to_float16);
    bind_cast(m, "cast_float16_to_float32", quoll::cast_float16_to_float32);
    bind_cast(m, "cast_float32_to_bfloat16", quoll::cast_float32_to_bfloat16);
    bind_cast(m, "cast_bfloat16_to_float32", quoll::cast_bfloat16_to_float32);
    bind_cast(m, "cast_int8_to_float32", quoll::cast_int8_to_float32);
    m.def("convert_packing", [](nb::handle src, int elempack, const PyOption& opt) {
        return transform("convert_packing", src, [&](const Mat& in, Mat& out) { quoll::convert_packing(in, out, elempack, opt.get()); });
    }, nb::arg("src"), nb::arg("elempack"), nb::arg("opt") = PyOption(), "elempack scalars an element, where the outermost axis allows.");
    m.def("copy_make_border", [](nb::handle src, int top, int bottom, int left, int right, int type, float v, const PyOption& opt) {
        return transform("copy_make_border", src, [&](const Mat& in, Mat& out) {
            quoll::copy_make_border(in, out, top, bottom, left, right, type, v, opt.get());
        });
    }, nb::arg("src"), nb::arg("top"), nb::arg("bottom"), nb::arg("left"), nb::arg("right"), nb::arg("type") = 0, nb::arg("v") = 0.f,
          nb::arg("opt") = PyOption(), "type: BORDER_CONSTANT (v), BORDER_REPLICATE or BORDER_REFLECT.");
    m.def("copy_make_border_3d",
          [](nb::handle src, int top, int bottom, int left, int right, int front, int behind, int type, float v, const PyOption& opt) {
              return transform("copy_make_border_3d", src, [&](const Mat& in, Mat& out) {
                  quoll::copy_make_border_3d(in, out, top, bottom, left, right, front, behind, type, v, opt.get());
              });
          },
          nb::arg("src"), nb::arg("top"), nb::arg("bottom"), nb::arg("left"), nb::arg("right"), nb::arg("front"), nb::arg("behind"),
          nb::arg("type") = 0, nb::arg("v") = 0.f, nb::arg("opt") = PyOption());
    m.def("copy_cut_border", [](nb::handle src, int top, int bottom, int left, int right, const PyOption& opt) {
        return transform("copy_cut_border", src, [&](const Mat& in, Mat& out) {
            quoll::copy_cut_border(in, out, top, bottom, left, right, opt.get());
        });
    }, nb::arg("src"), nb::arg("top"), nb::arg("bottom"), nb::arg("left"), nb::arg("right"), nb::arg("opt") = PyOption());
    m.def("quantize_to_int8", [](nb::handle src, nb::handle scale, const PyOption& opt) {
        const Mat scales = safe_to_run(mat_from_object(scale));
        return transform("quantize_to_int8", src, [&](const Mat& in, Mat& out) { quoll::quantize_to_int8(in, out, scales, opt.get()); });
    }, nb::arg("src"), nb::arg("scale_data"), nb::arg("opt") = PyOption(),
          "round(x * scale), clamped to -127..127; one scale or one for each index of the outermost axis.");
}

}  // namespace quoll_python
