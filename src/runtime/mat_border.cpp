// Borders around a Mat, added and cut off: copy_make_border and copy_cut_border of mat.h.
#include <stdint.h>
#include <string.h>

#include <vector>

#include "quoll/log.h"
#include "quoll/mat.h"
#include "runtime/exceptions.h"
#include "runtime/thread_pool.h"

namespace quoll {

namespace {

const size_t kParallelBytes = 64 * 1024;  // below, a second thread costs more than it saves

// How much is added to (or taken from) the two ends of each axis.
struct Border {
    int top, bottom, left, right, front, behind;
};

// The sizes of the axes (w, h, d, c) of `s` and what the border adds to (or takes from) their ends.
struct Axes {
    int size[4], before[4], after[4];

    Axes(const Shape& s, const Border& b)
        : size{s.w, s.h, s.d, s.c},
          before{b.left, b.top, s.dims == 4 ? b.front : 0, s.dims == 3 ? b.front : 0},
          after{b.right, b.bottom, s.dims == 4 ? b.behind : 0, s.dims == 3 ? b.behind : 0} {}

    // The index in the source for index i of the padded axis, -1 where the constant stands.
    int source(int axis, int i, int type) const {
        const int at = i - before[axis], last = size[axis] - 1;
        if (at >= 0 && at <= last) return at;
        if (type == BORDER_CONSTANT) return -1;
        if (type == BORDER_REPLICATE) return at < 0 ? 0 : last;
        return at < 0 ? -at : last - (at - last);
    }
};

float clamp_to(float v, float low, float high) { return v > low ? v < high ? v : high : low; }

// One scalar of `dtype` with the value v: integers are clamped and cut off, as by a cast.
void scalar_bytes(DType dtype, float v, unsigned char* out) {
    const unsigned short f16 = float32_to_float16(v), bf16 = float32_to_bfloat16(v);
    // the largest float below 2^31
    const int32_t s32 = (int32_t)clamp_to(v, -2147483648.f, 2147483520.f);
    const signed char s8 = (signed char)clamp_to(v, -128.f, 127.f);
    const unsigned char u8 = (unsigned char)clamp_to(v, 0.f, 255.f);
    switch (dtype) {
        case DType::f32:
            memcpy(out, &v, 4);
            break;
        case DType::f16:
            memcpy(out, &f16, 2);
            break;
        case DType::bf16:
            memcpy(out, &bf16, 2);
            break;
        case DType::s32:
            memcpy(out, &s32, 4);
            break;
        case DType::s8:
            memcpy(out, &s8, 1);
            break;
        case DType::u8:
            memcpy(out, &u8, 1);
            break;
    }
}

inline void copy_element(unsigned char* to, const unsigned char* from, size_t size) {
    if (size == 4)
        memcpy(to, from, 4);
    else if (size == 16)
        memcpy(to, from, 16);
    else
        memcpy(to, from, size);
}

void fill_elements(unsigned char* to, const std::vector<unsigned char>& value, size_t count) {
    for (size_t i = 0; i < count; i++)
        copy_element(to + i * value.size(), value.data(), value.size());
}

struct Padder {
    const Mat& src;
    Mat& dst;
    const Axes& axes;  // of src, in elements
    int type;
    std::vector<unsigned char> value;  // one element of the constant

    // `line` of src with both ends added.
    void row(const unsigned char* line, unsigned char* to) const {
        const size_t es = src.elemsize;
        const int inside = axes.before[0];
        const auto copy = [&](int i) {
            const int x = axes.source(0, i, type);
            copy_element(to + i * es, x < 0 ? value.data() : line + x * es, es);
        };
        for (int i = 0; i < inside; i++) copy(i);
        for (int i = inside + src.w; i < dst.w; i++) copy(i);
        memcpy(to + inside * es, line, src.w * es);
    }

    // `plane` of src with its four sides added.
    void plane(const unsigned char* from, unsigned char* to) const {
        const size_t es = src.elemsize;
        for (int i = 0; i < dst.h; i++, to += dst.w * es) {
            const int y = axes.source(1, i, type);
            if (y < 0)
                fill_elements(to, value, dst.w);
            else
                row(from + (size_t)y * src.w * es, to);
        }
    }

    // Output channel `i` of batch item b.
    void channel(int b, int i) const {
        const size_t es = src.elemsize, count = (size_t)dst.w * dst.h;
        const int q = axes.source(3, i, type);
        unsigned char* to = (unsigned char*)dst.data + (b * dst.nstep + i * dst.cstep) * es;
        if (q < 0) return fill_elements(to, value, count * dst.d);
        const unsigned char* from =
            (const unsigned char*)src.data + (b * src.nstep + q * src.cstep) * es;
        for (int j = 0; j < dst.d; j++, to += count * es) {
            const int z = axes.source(2, j, type);
            if (z < 0)
                fill_elements(to, value, count);
            else
                plane(from + (size_t)z * src.w * src.h * es, to);
        }
    }
};

int threads_for(const Option& opt, const Mat& m) {
    return m.total() * m.elemsize < kParallelBytes || opt.num_threads < 1 ? 1 : opt.num_threads;
}

bool is_none(const Border& b) {
    return !(b.top | b.bottom | b.left | b.right | b.front | b.behind);
}

// Sets the sides that a Mat of these dims has no axis for to 0.
Border applicable(const Border& b, int dims) {
    Border r = b;
    if (dims < 2) r.top = r.bottom = 0;
    if (dims < 3) r.front = r.behind = 0;
    return r;
}

// The border counted in elements on the packed axis. False when it is no whole number of elements.
bool in_elements(const Mat& m, Border& b) {
    if (m.elempack == 1) return true;
    if (m.dims == 4) return true;  // front and behind are along d there
    int& before = m.dims == 1 ? b.left : m.dims == 2 ? b.top : b.front;
    int& after = m.dims == 1 ? b.right : m.dims == 2 ? b.bottom : b.behind;
    if (before % m.elempack || after % m.elempack) return false;
    before /= m.elempack, after /= m.elempack;
    return true;
}

bool valid_input(const Mat& src, const Border& b, const char* function) {
    if (src.empty() || src.dims < 1 || src.dims > 4 ||
        src.elemsize != dtype_size(src.dtype) * src.elempack) {
        QUOLL_LOGE("[%s] expected a Mat of 1 to 4 axes, got %d axes, elemsize %zu, elempack %d",
                   function, src.dims, src.elemsize, src.elempack);
        return false;
    }
    if ((b.top | b.bottom | b.left | b.right | b.front | b.behind) < 0) {
        QUOLL_LOGE(
            "[%s] borders: expected none below 0, got top %d, bottom %d, left %d, right %d, "
            "front %d, behind %d",
            function, b.top, b.bottom, b.left, b.right, b.front, b.behind);
        return false;
    }
    return true;
}

Shape with_sizes(const Shape& s, const int* size) {
    Shape r = s;
    r.w = size[0], r.h = size[1], r.d = size[2], r.c = size[3];
    return r;
}

// False, after a message, when the padded size overflows or a reflection leaves the source.
bool valid_padding(const Shape& s, const Border& b, int type, const char* function) {
    const Axes a(s, b);
    for (int i = 0; i < 4; i++) {
        if ((int64_t)a.size[i] + a.before[i] + a.after[i] > INT32_MAX) {
            QUOLL_LOGE("[%s] an axis of %d with borders %d and %d is too large", function,
                       a.size[i], a.before[i], a.after[i]);
            return false;
        }
        if (type == BORDER_REFLECT && (a.before[i] >= a.size[i] || a.after[i] >= a.size[i])) {
            QUOLL_LOGE("[%s] reflecting an axis of %d needs borders below it, got %d and %d",
                       function, a.size[i], a.before[i], a.after[i]);
            return false;
        }
    }
    return true;
}

// Pads src, whose packed axis takes whole elements.
void pad_elements(const Mat& src, Mat& dst, const Border& b, int type, float v, const Option& opt) {
    Shape shape = src.logical_shape();
    shape.set_size(0, shape.size(0) / src.elempack);
    const Axes a(shape, b);
    int size[4];
    for (int i = 0; i < 4; i++) size[i] = a.size[i] + a.before[i] + a.after[i];
    shape = with_sizes(shape, size);
    shape.set_size(0, shape.size(0) * src.elempack);
    dst.create(shape, src.elempack, opt.blob_allocator);
    if (dst.empty()) return;
    Padder pad = {src, dst, a, type, std::vector<unsigned char>(src.elemsize)};
    for (int k = 0; k < src.elempack; k++)
        scalar_bytes(src.dtype, v, pad.value.data() + k * dtype_size(src.dtype));
    const int threads = threads_for(opt, dst), channels = dst.c;
    for (int i = 0; i < src.n; i++) {
        parallel_for(channels, threads, [&](int64_t q) { pad.channel(i, q); });
    }
}

void make_border(const Mat& src, Mat& dst, const Border& border, int type, float v,
                 const char* function, const Option& opt) {
    Mat in = src;  // dst may be src
    dst.release();
    if (!valid_input(in, border, function)) return;
    if (type != BORDER_CONSTANT && type != BORDER_REPLICATE && type != BORDER_REFLECT) {
        QUOLL_LOGE("[%s] type: expected constant (0), replicate (1) or reflect (2), got %d",
                   function, type);
        return;
    }
    Border b = applicable(border, in.dims);
    if (is_none(b)) {
        dst = in;
        return;
    }
    if (!valid_padding(in.logical_shape(), b, type, function)) return;
    const int pack = in.elempack;
    // Replicated and reflected channels come from inside elements, so only constants keep the
    // packing.
    const bool channels_move = type != BORDER_CONSTANT && pack > 1 &&
                               (in.dims == 1   ? b.left | b.right
                                : in.dims == 2 ? b.top | b.bottom
                                : in.dims == 3 ? b.front | b.behind
                                               : 0);
    const bool planar = channels_move || !in_elements(in, b);
    if (planar) convert_packing(in, in, 1, opt);
    if (!in.empty() && catch_no_memory(function, [&] {
            pad_elements(in, dst, b, type, v, opt);
            return (int)kOk;
        }))
        dst.release();
    if (planar && !dst.empty()) convert_packing(dst, dst, pack, opt);
    if (dst.empty()) QUOLL_LOGE("[%s] no memory for the output", function);
}

// Copies the block that starts at (x, y, z, q) of src and has the size of dst.
void copy_block(const Mat& src, Mat& dst, int x, int y, int z, int q, const Option& opt) {
    const size_t es = src.elemsize;
    const int threads = threads_for(opt, dst), channels = dst.c;
    for (int b = 0; b < src.n; b++) {
        parallel_for(channels, threads, [&](int64_t i) {
            const unsigned char* from =
                (const unsigned char*)src.data + (b * src.nstep + (i + q) * src.cstep) * es;
            unsigned char* to = (unsigned char*)dst.data + (b * dst.nstep + i * dst.cstep) * es;
            for (int j = 0; j < dst.d; j++)
                for (int k = 0; k < dst.h; k++)
                    memcpy(to + ((size_t)j * dst.h + k) * dst.w * es,
                           from + ((((size_t)j + z) * src.h + k + y) * src.w + x) * es, dst.w * es);
        });
    }
}

void cut_elements(const Mat& src, Mat& dst, const Border& b, const Option& opt) {
    Shape shape = src.logical_shape();
    shape.set_size(0, shape.size(0) / src.elempack);
    const Axes a(shape, b);
    int size[4];
    for (int i = 0; i < 4; i++) size[i] = a.size[i] - a.before[i] - a.after[i];
    shape = with_sizes(shape, size);
    shape.set_size(0, shape.size(0) * src.elempack);
    dst.create(shape, src.elempack, opt.blob_allocator);
    if (!dst.empty()) copy_block(src, dst, a.before[0], a.before[1], a.before[2], a.before[3], opt);
}

void cut_border(const Mat& src, Mat& dst, const Border& border, const char* function,
                const Option& opt) {
    Mat in = src;  // dst may be src
    dst.release();
    if (!valid_input(in, border, function)) return;
    Border b = applicable(border, in.dims);
    if (is_none(b)) {
        dst = in;
        return;
    }
    const Axes a(in.logical_shape(), b);
    for (int i = 0; i < 4; i++) {
        if ((int64_t)a.before[i] + a.after[i] < a.size[i]) continue;
        QUOLL_LOGE("[%s] cutting %d and %d off an axis of %d leaves nothing", function, a.before[i],
                   a.after[i], a.size[i]);
        return;
    }
    const int pack = in.elempack;
    const bool planar = !in_elements(in, b);
    if (planar) convert_packing(in, in, 1, opt);
    if (!in.empty()) cut_elements(in, dst, b, opt);
    if (planar && !dst.empty()) convert_packing(dst, dst, pack, opt);
    if (dst.empty()) QUOLL_LOGE("[%s] no memory for the output", function);
}

}  // namespace

void copy_make_border(const Mat& src, Mat& dst, int top, int bottom, int left, int right, int type,
                      float v, const Option& opt) {
    make_border(src, dst, {top, bottom, left, right, 0, 0}, type, v, "copy_make_border", opt);
}

void copy_make_border_3d(const Mat& src, Mat& dst, int top, int bottom, int left, int right,
                         int front, int behind, int type, float v, const Option& opt) {
    make_border(src, dst, {top, bottom, left, right, front, behind}, type, v, "copy_make_border_3d",
                opt);
}

void copy_cut_border(const Mat& src, Mat& dst, int top, int bottom, int left, int right,
                     const Option& opt) {
    cut_border(src, dst, {top, bottom, left, right, 0, 0}, "copy_cut_border", opt);
}

void copy_cut_border_3d(const Mat& src, Mat& dst, int top, int bottom, int left, int right,
                        int front, int behind, const Option& opt) {
    cut_border(src, dst, {top, bottom, left, right, front, behind}, "copy_cut_border_3d", opt);
}

}  // namespace quoll
