#include "quoll/mat.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

#include <new>

#include "quoll/log.h"
#include "runtime/ref_count.h"
#include "runtime/scalar.h"

namespace quoll {

size_t dtype_size(DType dtype) {
    switch (dtype) {
        case DType::f32:
        case DType::s32:
            return 4;
        case DType::f16:
        case DType::bf16:
            return 2;
        case DType::s8:
        case DType::u8:
            return 1;
    }
    return 0;
}

const char* dtype_name(DType dtype) {
    static const char* const names[] = {"f32", "f16", "bf16", "s32", "s8", "u8"};
    return names[(int)dtype];
}

static DType dtype_of_size(size_t elemsize, int elempack) {
    const size_t scalar = elempack > 0 ? elemsize / elempack : 0;
    return scalar == 2 ? DType::f16 : scalar == 1 ? DType::s8 : DType::f32;
}

size_t Mat::channel_step(int dims, int w, int h, int d, size_t elemsize) {
    const size_t count = (size_t)w * h * d;
    return dims < 3 ? count : align_size(count * elemsize, 16) / elemsize;
}

Mat::Mat()
    : data(0),
      refcount(0),
      elemsize(0),
      elempack(0),
      allocator(0),
      dims(0),
      w(0),
      h(0),
      d(0),
      c(0),
      cstep(0),
      n(1),
      nstep(0),
      dtype(DType::f32),
      untyped(false) {}

// The alignment of batch items, in bytes: kOwnItems, as in ncnn, for Mats that applications make by
// elemsize, or lay out themselves; kItems, which wastes less, for all others.
static const size_t kOwnItems = 4096, kItems = 16;

// Defines the forms with a given number of axes. SIZES are parameters, ARGS what allocate() and
// set_view() take.
#define QUOLL_MAT_UNWRAP(...) __VA_ARGS__
#define QUOLL_MAT_FORMS(SIZES, ARGS)                                                           \
    Mat::Mat(QUOLL_MAT_UNWRAP SIZES, size_t e, Allocator* a) : Mat() {                         \
        allocate_untyped(QUOLL_MAT_UNWRAP ARGS, 1, e, 1, a);                                   \
    }                                                                                          \
    Mat::Mat(QUOLL_MAT_UNWRAP SIZES, size_t e, int p, Allocator* a) : Mat() {                  \
        allocate_untyped(QUOLL_MAT_UNWRAP ARGS, 1, e, p, a);                                   \
    }                                                                                          \
    Mat::Mat(QUOLL_MAT_UNWRAP SIZES, size_t e, int p, int n_, Allocator* a) : Mat() {          \
        allocate_untyped(QUOLL_MAT_UNWRAP ARGS, n_, e, p, a);                                  \
    }                                                                                          \
    Mat::Mat(QUOLL_MAT_UNWRAP SIZES, void* m, size_t e, Allocator* a) : Mat() {                \
        set_view(QUOLL_MAT_UNWRAP ARGS, m, e, 1, a);                                           \
    }                                                                                          \
    Mat::Mat(QUOLL_MAT_UNWRAP SIZES, void* m, size_t e, int p, Allocator* a) : Mat() {         \
        set_view(QUOLL_MAT_UNWRAP ARGS, m, e, p, a);                                           \
    }                                                                                          \
    Mat::Mat(QUOLL_MAT_UNWRAP SIZES, void* m, size_t e, int p, int n_, Allocator* a) : Mat() { \
        set_view(QUOLL_MAT_UNWRAP ARGS, m, e, p, a, n_, kOwnItems);                            \
    }                                                                                          \
    void Mat::create(QUOLL_MAT_UNWRAP SIZES, size_t e, Allocator* a) {                         \
        allocate_untyped(QUOLL_MAT_UNWRAP ARGS, 1, e, 1, a);                                   \
    }                                                                                          \
    void Mat::create(QUOLL_MAT_UNWRAP SIZES, size_t e, int p, Allocator* a) {                  \
        allocate_untyped(QUOLL_MAT_UNWRAP ARGS, 1, e, p, a);                                   \
    }                                                                                          \
    void Mat::create(QUOLL_MAT_UNWRAP SIZES, size_t e, int p, int n_, Allocator* a) {          \
        allocate_untyped(QUOLL_MAT_UNWRAP ARGS, n_, e, p, a);                                  \
    }
QUOLL_MAT_FORMS((int w_), (1, w_, 1, 1, 1))
QUOLL_MAT_FORMS((int w_, int h_), (2, w_, h_, 1, 1))
QUOLL_MAT_FORMS((int w_, int h_, int c_), (3, w_, h_, 1, c_))
QUOLL_MAT_FORMS((int w_, int h_, int d_, int c_), (4, w_, h_, d_, c_))
#undef QUOLL_MAT_FORMS
#undef QUOLL_MAT_UNWRAP

Mat::Mat(const Shape& shape, int elempack, Allocator* allocator) : Mat() {
    create(shape, elempack, allocator);
}

Mat::Mat(const Mat& m)
    : data(m.data),
      refcount(m.refcount),
      elemsize(m.elemsize),
      elempack(m.elempack),
      allocator(m.allocator),
      dims(m.dims),
      w(m.w),
      h(m.h),
      d(m.d),
      c(m.c),
      cstep(m.cstep),
      n(m.n),
      nstep(m.nstep),
      dtype(m.dtype),
      untyped(m.untyped) {
    addref();
}

Mat::Mat(Mat&& m)
    : data(m.data),
      refcount(m.refcount),
      elemsize(m.elemsize),
      elempack(m.elempack),
      allocator(m.allocator),
      dims(m.dims),
      w(m.w),
      h(m.h),
      d(m.d),
      c(m.c),
      cstep(m.cstep),
      n(m.n),
      nstep(m.nstep),
      dtype(m.dtype),
      untyped(m.untyped) {
    m.refcount = 0;
    m.release();
}

// Drops the memory of a Mat that is about to be destroyed or overwritten: its fields stay.
static void drop(const Mat& m) {
    if (!m.refcount || !drop_reference(m.refcount)) return;
    if (m.allocator)
        m.allocator->fastFree(m.refcount);
    else
        fast_free(m.refcount);
}

static void copy_fields(const Mat& from, Mat* to) {
    to->data = from.data, to->refcount = from.refcount, to->elemsize = from.elemsize;
    to->elempack = from.elempack, to->allocator = from.allocator, to->dims = from.dims;
    to->w = from.w, to->h = from.h, to->d = from.d, to->c = from.c, to->cstep = from.cstep;
    to->n = from.n, to->nstep = from.nstep, to->dtype = from.dtype, to->untyped = from.untyped;
}

Mat::~Mat() { drop(*this); }

Mat& Mat::operator=(const Mat& m) {
    if (this == &m) return *this;
    if (m.refcount) add_reference(m.refcount);
    drop(*this);
    copy_fields(m, this);
    return *this;
}

Mat& Mat::operator=(Mat&& m) {
    if (this == &m) return *this;
    drop(*this);
    copy_fields(m, this);
    m.refcount = 0;
    m.release();
    return *this;
}

void Mat::fill(float v) { fill<float>(v); }
void Mat::fill(int v) { fill<int>(v); }

// Elements from one of n items to the next.
static size_t item_step(size_t channel_step, int c, int n, size_t elemsize, size_t alignment) {
    const size_t step = channel_step * c;
    return n > 1 ? align_size(step * elemsize, alignment) / elemsize : step;
}

void Mat::set_view(int dims_, int w_, int h_, int d_, int c_, void* data_, size_t elemsize_,
                   int elempack_, Allocator* allocator_, int n_, size_t item_alignment) {
    // As allocate(): invalid sizes give an empty Mat. Views may have axes of size 0.
    if (w_ < 0 || h_ < 0 || d_ < 0 || c_ < 0 || n_ < 1 || elempack_ < 1 || elemsize_ == 0) return;
    dims = dims_, w = w_, h = h_, d = d_, c = c_;
    data = data_, elemsize = elemsize_, elempack = elempack_, allocator = allocator_;
    dtype = dtype_of_size(elemsize, elempack), untyped = true;
    cstep = channel_step(dims, w, h, d, elemsize);
    n = n_, nstep = item_step(cstep, c, n, elemsize, item_alignment);
}

void Mat::allocate_untyped(int dims_, int w_, int h_, int d_, int c_, int n_, size_t elemsize_,
                           int elempack_, Allocator* allocator_) {
    allocate(dims_, w_, h_, d_, c_, n_, dtype_of_size(elemsize_, elempack_), elemsize_, elempack_,
             allocator_, kOwnItems);
    untyped = dims != 0;
}

// True when the padded channels and batch items stay below any size that an allocation could have.
static bool fits_memory(int w, int h, int d, int c, int n, size_t elemsize) {
    const double channel = (double)w * h * d * (double)elemsize + 16;
    return (channel * c + kOwnItems) * n < (double)(SIZE_MAX / 8);
}

// A block begins with the reference count, so that views with an offset of their own can share it
// and free it; the scalars follow at the next aligned address.
void Mat::allocate(int dims_, int w_, int h_, int d_, int c_, int n_, DType dtype_,
                   size_t elemsize_, int elempack_, Allocator* allocator_, size_t item_alignment) {
    const size_t step = elemsize_ ? channel_step(dims_, w_, h_, d_, elemsize_) : 0;
    const size_t item = elemsize_ ? item_step(step, c_, n_, elemsize_, item_alignment) : 0;
    if (dims == dims_ && w == w_ && h == h_ && d == d_ && c == c_ && n == n_ && dtype == dtype_ &&
        elemsize == elemsize_ && elempack == elempack_ && allocator == allocator_ && refcount &&
        references(refcount) == 1 && cstep == step && nstep == item) {
        untyped = false;
        return;
    }
    release();
    if (w_ <= 0 || h_ <= 0 || d_ <= 0 || c_ <= 0 || n_ <= 0 || elempack_ <= 0 || elemsize_ == 0)
        return;
    if (!fits_memory(w_, h_, d_, c_, n_, elemsize_)) {
        QUOLL_LOGE("[Mat] a blob of %d x %d x %d x %d x %d elements is too large", w_, h_, d_, c_,
                   n_);
        return;
    }
    const size_t block = kMallocAlign + item * n_ * elemsize_;
    void* memory = allocator_ ? allocator_->fastMalloc(block) : fast_malloc(block);
    if (!memory) {
        QUOLL_LOGE("[Mat] out of memory: %zu bytes for a blob", block);
        return;
    }
    set_view(dims_, w_, h_, d_, c_, (unsigned char*)memory + kMallocAlign, elemsize_, elempack_,
             allocator_, n_, item_alignment);
    dtype = dtype_, untyped = false;
    refcount = new (memory) int(1);
}

void Mat::create(const Shape& s, int pack, Allocator* a) {
    Shape e = s;
    if (s.dims < 1 || s.dims > 4 || pack < 1 || s.size(0) % pack != 0) {
        QUOLL_LOGE("[Mat] create: %d axes, outermost %d, elempack %d", s.dims,
                   s.dims >= 1 && s.dims <= 4 ? s.size(0) : 0, pack);
        release();
        return;
    }
    e.set_size(0, s.size(0) / pack);
    allocate(e.dims, e.w, e.h, e.d, e.c, e.n, e.dtype, dtype_size(e.dtype) * pack, pack, a, kItems);
}

void Mat::create_like(const Mat& m, Allocator* a) { create_like(m, m.n, a); }

void Mat::create_like(const Mat& m, int n_, Allocator* a) {
    const bool guessed = m.untyped;
    allocate(m.dims, m.w, m.h, m.d, m.c, n_, m.dtype, m.elemsize, m.elempack, a,
             guessed ? kOwnItems : kItems);
    untyped = guessed;
}

void Mat::addref() {
    if (refcount) add_reference(refcount);
}

void Mat::release() {
    drop(*this);
    data = 0, refcount = 0, elemsize = 0, elempack = 0;
    dims = 0, w = 0, h = 0, d = 0, c = 0, cstep = 0, n = 1, nstep = 0;
    dtype = DType::f32, untyped = false;
}

Shape Mat::logical_shape() const {
    Shape s;
    s.dims = dims, s.w = w, s.h = h, s.d = d, s.c = c, s.n = n, s.dtype = dtype;
    if (elempack != 1 && dims >= 1 && dims <= 4) s.set_size(0, s.size(0) * elempack);
    return s;
}

Mat Mat::shape() const {
    Mat m = of_shape(logical_shape());
    m.untyped = untyped;
    return m;
}

Mat Mat::of_shape(const Shape& s) {
    Mat m;
    if (s.dims == 0) return m;
    m.set_view(s.dims, s.w, s.h, s.d, s.c, 0, dtype_size(s.dtype), 1, 0, s.n, kItems);
    m.dtype = s.dtype, m.untyped = false;
    return m;
}

// Copies rows of `count` elements when the channel steps differ.
static void copy_elements(const Mat& src, Mat& dst, size_t count) {
    for (int b = 0; b < src.n; b++) {
        const unsigned char* from = (const unsigned char*)src.data + b * src.nstep * src.elemsize;
        unsigned char* to = (unsigned char*)dst.data + b * dst.nstep * dst.elemsize;
        for (int q = 0; q < src.c; q++)
            memcpy(to + q * dst.cstep * dst.elemsize, from + q * src.cstep * src.elemsize,
                   count * src.elemsize);
    }
}

Mat Mat::clone(Allocator* a) const {
    Mat m;
    if (empty()) return m;
    m.create_like(*this, a);
    if (!m.empty()) copy_elements(*this, m, (size_t)w * h * d);
    return m;
}

void Mat::clone_from(const Mat& mat, Allocator* a) { *this = mat.clone(a); }

// Elements of this Mat in order c, d, h, w, written to (or read from) a Mat of another split.
static void copy_in_order(const Mat& src, Mat& dst) {
    const size_t from_count = (size_t)src.w * src.h * src.d,
                 to_count = (size_t)dst.w * dst.h * dst.d;
    const size_t es = src.elemsize, total = from_count * src.c;
    for (int b = 0; b < src.n; b++) {
        const unsigned char* from = (const unsigned char*)src.data + b * src.nstep * es;
        unsigned char* to = (unsigned char*)dst.data + b * dst.nstep * es;
        for (size_t i = 0; i < total;) {
            const size_t fq = i / from_count, fi = i % from_count, tq = i / to_count,
                         ti = i % to_count;
            const size_t left = from_count - fi < to_count - ti ? from_count - fi : to_count - ti;
            memcpy(to + (tq * dst.cstep + ti) * es, from + (fq * src.cstep + fi) * es, left * es);
            i += left;
        }
    }
}

Mat Mat::reshape_to(int dims_, int w_, int h_, int d_, int c_, Allocator* a) const {
    Mat m;
    if (empty() || w_ <= 0 || h_ <= 0 || d_ <= 0 || c_ <= 0) return m;
    const size_t from_count = (size_t)w * h * d, to_count = (size_t)w_ * h_ * d_;
    if (from_count * c != to_count * c_) return m;
    const size_t to_step = channel_step(dims_, w_, h_, d_, elemsize);
    const bool gapless = cstep == from_count || c == 1;
    const bool same_steps = from_count == to_count && to_step == cstep;
    if (same_steps || (gapless && (to_step == to_count || c_ == 1))) {
        m = *this;
        m.dims = dims_, m.w = w_, m.h = h_, m.d = d_, m.c = c_;
        m.cstep = c_ == 1 ? to_count : to_step;  // the block may end where the last channel ends
        if (m.n == 1) m.nstep = m.cstep * m.c;
        return m;
    }
    m.allocate(dims_, w_, h_, d_, c_, n, dtype, elemsize, elempack, a,
               untyped ? kOwnItems : kItems);
    m.untyped = untyped;
    if (!m.empty()) copy_in_order(*this, m);
    return m;
}

Mat Mat::reshape(int w_, Allocator* a) const { return reshape_to(1, w_, 1, 1, 1, a); }
Mat Mat::reshape(int w_, int h_, Allocator* a) const { return reshape_to(2, w_, h_, 1, 1, a); }
Mat Mat::reshape(int w_, int h_, int c_, Allocator* a) const {
    return reshape_to(3, w_, h_, 1, c_, a);
}
Mat Mat::reshape(int w_, int h_, int d_, int c_, Allocator* a) const {
    return reshape_to(4, w_, h_, d_, c_, a);
}

// A view without reference count, `offset` elements into this one.
Mat Mat::view(int dims_, int w_, int h_, int d_, int c_, size_t offset) const {
    Mat m;
    m.set_view(dims_, w_, h_, d_, c_, (unsigned char*)data + offset * elemsize, elemsize, elempack,
               allocator);
    m.dtype = dtype, m.untyped = untyped;
    return m;
}

Mat Mat::channel(int q) {
    Mat m = view(dims - 1, w, h, d, 1, q * cstep);
    m.dims = dims >= 4 ? 3 : 2;
    if (dims >= 4) m.c = d, m.d = 1, m.cstep = (size_t)w * h, m.nstep = m.cstep * m.c;
    return m;
}
const Mat Mat::channel(int q) const { return const_cast<Mat*>(this)->channel(q); }
Mat Mat::depth(int z) { return view(2, w, h, 1, 1, (size_t)w * h * z); }
const Mat Mat::depth(int z) const { return const_cast<Mat*>(this)->depth(z); }
float* Mat::row(int y) { return row<float>(y); }
const float* Mat::row(int y) const { return row<float>(y); }

Mat Mat::channel_range(int q, int channels) {
    Mat m = view(dims, w, h, d, channels, q * cstep);
    m.cstep = cstep, m.nstep = cstep * channels;
    return m;
}
const Mat Mat::channel_range(int q, int channels) const {
    return const_cast<Mat*>(this)->channel_range(q, channels);
}
Mat Mat::depth_range(int z, int depths) {
    Mat m = view(3, w, h, 1, depths, (size_t)w * h * z);
    m.cstep = (size_t)w * h, m.nstep = m.cstep * depths;
    return m;
}
const Mat Mat::depth_range(int z, int depths) const {
    return const_cast<Mat*>(this)->depth_range(z, depths);
}
Mat Mat::row_range(int y, int rows) { return view(2, w, rows, 1, 1, (size_t)w * y); }
const Mat Mat::row_range(int y, int rows) const {
    return const_cast<Mat*>(this)->row_range(y, rows);
}
Mat Mat::range(int x, int count) { return view(1, count, 1, 1, 1, x); }
const Mat Mat::range(int x, int count) const { return const_cast<Mat*>(this)->range(x, count); }

Mat Mat::batch(int b) {
    Mat m = view(dims, w, h, d, c, b * nstep);
    m.cstep = cstep, m.nstep = cstep * c;
    return m;
}
const Mat Mat::batch(int b) const { return const_cast<Mat*>(this)->batch(b); }

Mat Mat::batch_range(int b, int batches) {
    Mat m = batch(b);
    m.n = batches, m.nstep = nstep;
    return m;
}
const Mat Mat::batch_range(int b, int batches) const {
    return const_cast<Mat*>(this)->batch_range(b, batches);
}

void Mat::substract_mean_normalize(const float* mean_vals, const float* norm_vals) {
    if (dtype != DType::f32 || elempack != 1 || elemsize != sizeof(float)) {
        QUOLL_LOGE(
            "[Mat] substract_mean_normalize: expected f32 with elempack 1, got %s with %d, "
            "elemsize %zu",
            dtype_name(dtype), elempack, elemsize);
        return;
    }
    if (!mean_vals && !norm_vals) return;
    for (int b = 0; b < n; b++) {
        for (int q = 0; q < c; q++) {
            float* ptr = (float*)data + b * nstep + q * cstep;
            const float mean = mean_vals ? mean_vals[q] : 0.f,
                        norm = norm_vals ? norm_vals[q] : 1.f;
            const size_t count = (size_t)w * h * d;
            for (size_t i = 0; i < count; i++) ptr[i] = (ptr[i] - mean) * norm;
        }
    }
}

Mat Mat::from_float16(const unsigned short* data, int size) {
    Mat m(size);
    if (m.empty()) return m;
    float* ptr = m;
    for (int i = 0; i < size; i++) ptr[i] = float16_to_float32(data[i]);
    return m;
}

unsigned short float32_to_float16(float value) { return half_from_float(value); }
float float16_to_float32(unsigned short value) { return float_from_half(value); }
unsigned short float32_to_bfloat16(float value) { return bfloat_from_float(value); }
float bfloat16_to_float32(unsigned short value) { return float_from_bfloat(value); }

unsigned char float16_to_float8(unsigned short value) {
    const int sign = value >> 15 << 7, exponent = (value >> 10 & 31) - 15 + 7;
    if (exponent <= 0) return (unsigned char)sign;
    return (unsigned char)(sign | (exponent < 15 ? exponent << 3 | (value >> 7 & 7) : 0x7f));
}
unsigned short float8_to_float16(unsigned char value) {
    const int sign = value >> 7 << 15, exponent = value >> 3 & 15;
    if (exponent == 0) return (unsigned short)sign;
    return (unsigned short)(sign | (exponent < 15 ? (exponent + 15 - 7) << 10 | (value & 7) << 7
                                                  : 0x7e00));
}
unsigned char float16_to_bfloat8(unsigned short value) { return (unsigned char)(value >> 8); }
unsigned short bfloat8_to_float16(unsigned char value) { return (unsigned short)(value << 8); }

signed char float2int8(float v) { return int8_from_float(v); }

}  // namespace quoll
