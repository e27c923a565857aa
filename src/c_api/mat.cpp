// Mats, pixels and drawing of quoll/c_api.h.
#include "c_api/objects.h"
#include "quoll/image.h"

using namespace quoll;

namespace quoll {

quoll_mat_t new_mat(const Mat& mat, const char* function) {
    KeepErrors keep;
    if (mat.empty()) QUOLL_LOGE("[%s] no Mat of this size could be made", function);
    return mat.empty() ? nullptr : handle_of(new Mat(mat));
}

}  // namespace quoll

template <class F>
static quoll_mat_t make(const char* function, const F& f) {
    return run_api(function, (quoll_mat_t) nullptr, [&] { return new_mat(f(), function); });
}
// Of another Mat.
template <class F>
static quoll_mat_t make(const char* function, quoll_mat_t from, const F& f) {
    if (!from) null_argument(function);
    return from ? make(function, [&] { return f(*mat_of(from)); }) : nullptr;
}

extern "C" quoll_mat_t quoll_mat_create(void) {
    return run_api(__func__, (quoll_mat_t) nullptr, [] { return handle_of(new Mat); });
}

#define QUOLL_C_ARGS(...) __VA_ARGS__
// Defines the creators of Mats with a given number of axes.
#define QUOLL_C_MATS(N, SIZES, ARGS)                                                              \
    extern "C" quoll_mat_t quoll_mat_create_##N(QUOLL_C_ARGS SIZES, quoll_allocator_t a) {        \
        return make(__func__,                                                                     \
                    [&] { return Mat(QUOLL_C_ARGS ARGS, (size_t)4u, allocator_of(a)); });         \
    }                                                                                             \
    extern "C" quoll_mat_t quoll_mat_create_##N##_batch(QUOLL_C_ARGS SIZES, int n,                \
                                                        quoll_allocator_t a) {                    \
        return make(__func__,                                                                     \
                    [&] { return Mat(QUOLL_C_ARGS ARGS, (size_t)4u, 1, n, allocator_of(a)); });   \
    }                                                                                             \
    extern "C" quoll_mat_t quoll_mat_create_external_##N(QUOLL_C_ARGS SIZES, void* data,          \
                                                         quoll_allocator_t a) {                   \
        return make(__func__,                                                                     \
                    [&] { return Mat(QUOLL_C_ARGS ARGS, data, (size_t)4u, allocator_of(a)); });   \
    }                                                                                             \
    extern "C" quoll_mat_t quoll_mat_create_##N##_elem(QUOLL_C_ARGS SIZES, size_t elemsize,       \
                                                       int elempack, quoll_allocator_t a) {       \
        return make(__func__,                                                                     \
                    [&] { return Mat(QUOLL_C_ARGS ARGS, elemsize, elempack, allocator_of(a)); }); \
    }                                                                                             \
    extern "C" quoll_mat_t quoll_mat_create_##N##_elem_batch(                                     \
        QUOLL_C_ARGS SIZES, size_t elemsize, int elempack, int n, quoll_allocator_t a) {          \
        return make(__func__, [&] {                                                               \
            return Mat(QUOLL_C_ARGS ARGS, elemsize, elempack, n, allocator_of(a));                \
        });                                                                                       \
    }                                                                                             \
    extern "C" quoll_mat_t quoll_mat_create_external_##N##_elem(                                  \
        QUOLL_C_ARGS SIZES, void* data, size_t elemsize, int elempack, quoll_allocator_t a) {     \
        return make(__func__, [&] {                                                               \
            return Mat(QUOLL_C_ARGS ARGS, data, elemsize, elempack, allocator_of(a));             \
        });                                                                                       \
    }                                                                                             \
    extern "C" quoll_mat_t quoll_mat_reshape_##N(const quoll_mat_t mat, QUOLL_C_ARGS SIZES,       \
                                                 quoll_allocator_t a) {                           \
        return make(__func__, mat,                                                                \
                    [&](const Mat& m) { return m.reshape(QUOLL_C_ARGS ARGS, allocator_of(a)); }); \
    }
QUOLL_C_MATS(1d, (int w), (w))
QUOLL_C_MATS(2d, (int w, int h), (w, h))
QUOLL_C_MATS(3d, (int w, int h, int c), (w, h, c))
QUOLL_C_MATS(4d, (int w, int h, int d, int c), (w, h, d, c))
#undef QUOLL_C_MATS
#undef QUOLL_C_ARGS

extern "C" void quoll_mat_destroy(quoll_mat_t mat) { delete mat_of(mat); }

static Mat& checked(quoll_mat_t mat, const char* function) {
    static thread_local Mat empty;
    if (!mat) null_argument(function);
    return mat ? *mat_of(mat) : empty;
}

extern "C" void quoll_mat_fill_float(quoll_mat_t mat, float v) { checked(mat, __func__).fill(v); }
extern "C" quoll_mat_t quoll_mat_clone(const quoll_mat_t mat, quoll_allocator_t allocator) {
    return make(__func__, mat, [&](const Mat& m) { return m.clone(allocator_of(allocator)); });
}

#define QUOLL_C_FIELD(type, name)                                 \
    extern "C" type quoll_mat_get_##name(const quoll_mat_t mat) { \
        return checked(mat, __func__).name;                       \
    }
QUOLL_C_FIELD(int, dims)
QUOLL_C_FIELD(int, w)
QUOLL_C_FIELD(int, h)
QUOLL_C_FIELD(int, d)
QUOLL_C_FIELD(int, c)
QUOLL_C_FIELD(int, n)
QUOLL_C_FIELD(size_t, elemsize)
QUOLL_C_FIELD(int, elempack)
QUOLL_C_FIELD(size_t, cstep)
QUOLL_C_FIELD(size_t, nstep)
QUOLL_C_FIELD(void*, data)
#undef QUOLL_C_FIELD

extern "C" int quoll_mat_get_dtype(const quoll_mat_t mat) {
    return (int)checked(mat, __func__).dtype;
}
extern "C" int quoll_mat_set_dtype(quoll_mat_t mat, int dtype) {
    if (!mat) return null_argument(__func__);
    Mat& m = *mat_of(mat);
    if (dtype < QUOLL_F32 || dtype > QUOLL_U8 ||
        dtype_size((DType)dtype) * m.elempack != m.elemsize) {
        KeepErrors keep;
        QUOLL_LOGE("[%s] type %d does not have the %zu bytes of an element", __func__, dtype,
                   m.elemsize);
        return QUOLL_ERROR;
    }
    m.dtype = (DType)dtype, m.untyped = false;
    return QUOLL_OK;
}

extern "C" void* quoll_mat_get_batch_data(const quoll_mat_t mat, int b) {
    Mat& m = checked(mat, __func__);
    return b >= 0 && b < m.n ? m.batch(b).data : nullptr;
}
extern "C" void* quoll_mat_get_channel_data(const quoll_mat_t mat, int c) {
    Mat& m = checked(mat, __func__);
    return c >= 0 && c < m.c ? m.channel(c).data : nullptr;
}

// For a handle that may be replaced: the new Mat, or null.
template <class F>
static void convert(const char* function, quoll_mat_t src, quoll_mat_t* dst, const F& f) {
    if (!src || !dst) {
        null_argument(function);
        return;
    }
    *dst = make(function, [&] {
        Mat out;
        f(*mat_of(src), out);
        return out;
    });
}
extern "C" void quoll_convert_packing(const quoll_mat_t src, quoll_mat_t* dst, int elempack,
                                      const quoll_option_t opt) {
    convert(__func__, src, dst,
            [&](const Mat& in, Mat& out) { convert_packing(in, out, elempack, options_of(opt)); });
}
extern "C" void quoll_flatten(const quoll_mat_t src, quoll_mat_t* dst, const quoll_option_t opt) {
    convert(__func__, src, dst,
            [&](const Mat& in, Mat& out) { flatten(in, out, options_of(opt)); });
}

template <class F>
static void change(const char* function, quoll_mat_t a, quoll_mat_t b, const F& f) {
    if (!a || !b) {
        null_argument(function);
        return;
    }
    run_api(function, [&] {
        f(*mat_of(a), *mat_of(b));
        return (int)kOk;
    });
}
extern "C" void quoll_mat_substract_mean_normalize(quoll_mat_t mat, const float* mean_vals,
                                                   const float* norm_vals) {
    change(__func__, mat, mat,
           [&](Mat& m, Mat&) { m.substract_mean_normalize(mean_vals, norm_vals); });
}
extern "C" void quoll_copy_make_border(const quoll_mat_t src, quoll_mat_t dst, int top, int bottom,
                                       int left, int right, int type, float v,
                                       const quoll_option_t opt) {
    change(__func__, src, dst, [&](const Mat& in, Mat& out) {
        copy_make_border(in, out, top, bottom, left, right, type, v, options_of(opt));
    });
}
extern "C" void quoll_copy_make_border_3d(const quoll_mat_t src, quoll_mat_t dst, int top,
                                          int bottom, int left, int right, int front, int behind,
                                          int type, float v, const quoll_option_t opt) {
    change(__func__, src, dst, [&](const Mat& in, Mat& out) {
        copy_make_border_3d(in, out, top, bottom, left, right, front, behind, type, v,
                            options_of(opt));
    });
}
extern "C" void quoll_copy_cut_border(const quoll_mat_t src, quoll_mat_t dst, int top, int bottom,
                                      int left, int right, const quoll_option_t opt) {
    change(__func__, src, dst, [&](const Mat& in, Mat& out) {
        copy_cut_border(in, out, top, bottom, left, right, options_of(opt));
    });
}
extern "C" void quoll_copy_cut_border_3d(const quoll_mat_t src, quoll_mat_t dst, int top,
                                         int bottom, int left, int right, int front, int behind,
                                         const quoll_option_t opt) {
    change(__func__, src, dst, [&](const Mat& in, Mat& out) {
        copy_cut_border_3d(in, out, top, bottom, left, right, front, behind, options_of(opt));
    });
}

#if QUOLL_PIXEL
extern "C" quoll_mat_t quoll_mat_from_pixels(const unsigned char* pixels, int type, int w, int h,
                                             int stride, quoll_allocator_t allocator) {
    return make(__func__, [&] {
        return Mat::from_pixels(pixels, type, w, h, stride, allocator_of(allocator));
    });
}
extern "C" quoll_mat_t quoll_mat_from_pixels_resize(const unsigned char* pixels, int type, int w,
                                                    int h, int stride, int target_width,
                                                    int target_height,
                                                    quoll_allocator_t allocator) {
    return make(__func__, [&] {
        return Mat::from_pixels_resize(pixels, type, w, h, stride, target_width, target_height,
                                       allocator_of(allocator));
    });
}
extern "C" quoll_mat_t quoll_mat_from_pixels_roi(const unsigned char* pixels, int type, int w,
                                                 int h, int stride, int roix, int roiy, int roiw,
                                                 int roih, quoll_allocator_t allocator) {
    return make(__func__, [&] {
        return Mat::from_pixels_roi(pixels, type, w, h, stride, roix, roiy, roiw, roih,
                                    allocator_of(allocator));
    });
}
extern "C" quoll_mat_t quoll_mat_from_pixels_roi_resize(const unsigned char* pixels, int type,
                                                        int w, int h, int stride, int roix,
                                                        int roiy, int roiw, int roih,
                                                        int target_width, int target_height,
                                                        quoll_allocator_t allocator) {
    return make(__func__, [&] {
        return Mat::from_pixels_roi_resize(pixels, type, w, h, stride, roix, roiy, roiw, roih,
                                           target_width, target_height, allocator_of(allocator));
    });
}
extern "C" void quoll_mat_to_pixels(const quoll_mat_t mat, unsigned char* pixels, int type,
                                    int stride) {
    change(__func__, mat, mat, [&](Mat& m, Mat&) { m.to_pixels(pixels, type, stride); });
}
extern "C" void quoll_mat_to_pixels_resize(const quoll_mat_t mat, unsigned char* pixels, int type,
                                           int target_width, int target_height, int target_stride) {
    change(__func__, mat, mat, [&](Mat& m, Mat&) {
        m.to_pixels_resize(pixels, type, target_width, target_height, target_stride);
    });
}
#endif

#if QUOLL_PIXEL_DRAWING
#define QUOLL_C_DRAW(C)                                                                           \
    extern "C" void quoll_draw_rectangle_##C(unsigned char* pixels, int w, int h, int rx, int ry, \
                                             int rw, int rh, unsigned int color, int thickness) { \
        KeepErrors keep;                                                                          \
        draw_rectangle_##C(pixels, w, h, rx, ry, rw, rh, color, thickness);                       \
    }                                                                                             \
    extern "C" void quoll_draw_text_##C(unsigned char* pixels, int w, int h, const char* text,    \
                                        int x, int y, int fontpixelsize, unsigned int color) {    \
        KeepErrors keep;                                                                          \
        draw_text_##C(pixels, w, h, text, x, y, fontpixelsize, color);                            \
    }                                                                                             \
    extern "C" void quoll_draw_circle_##C(unsigned char* pixels, int w, int h, int cx, int cy,    \
                                          int radius, unsigned int color, int thickness) {        \
        KeepErrors keep;                                                                          \
        draw_circle_##C(pixels, w, h, cx, cy, radius, color, thickness);                          \
    }                                                                                             \
    extern "C" void quoll_draw_line_##C(unsigned char* pixels, int w, int h, int x0, int y0,      \
                                        int x1, int y1, unsigned int color, int thickness) {      \
        KeepErrors keep;                                                                          \
        draw_line_##C(pixels, w, h, x0, y0, x1, y1, color, thickness);                            \
    }
QUOLL_C_DRAW(c1)
QUOLL_C_DRAW(c2)
QUOLL_C_DRAW(c3)
QUOLL_C_DRAW(c4)
#undef QUOLL_C_DRAW
#endif
