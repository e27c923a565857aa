#include "quoll/vkmat.h"

#include "runtime/ref_count.h"

namespace quoll {

VkAllocator::VkAllocator(const VulkanDevice* device)
    : vkdev(device),
      buffer_memory_type_index(0xffffffffu),
      image_memory_type_index(0xffffffffu),
      reserved_type_index(0xffffffffu),
      mappable(false),
      coherent(false) {}
VkAllocator::~VkAllocator() {}
void VkAllocator::clear() {}

namespace {

DType type_of_size(size_t elemsize, int elempack) {
    const size_t scalar = elempack > 0 ? elemsize / (size_t)elempack : 0;
    return scalar == 4 ? DType::f32 : scalar == 2 ? DType::f16 : DType::s8;
}

// Bytes between the begins of two items where the application says the size of an element.
const size_t kOwnItems = 4096;

}  // namespace

VkMat::VkMat()
    : data(0),
      refcount(0),
      elemsize(0),
      elempack(1),
      allocator(0),
      dims(0),
      w(0),
      h(0),
      d(0),
      c(0),
      cstep(0),
      n(1),
      nstep(0),
      offset(0),
      dtype(DType::f32) {}

// The constructors and forms of create() for each number of axes.
#define QUOLL_VKMAT_UNWRAP(...) __VA_ARGS__
#define QUOLL_VKMAT_FORMS(SIZES, ARGS)                                                          \
    VkMat::VkMat(QUOLL_VKMAT_UNWRAP SIZES, size_t e, VkAllocator* a) : VkMat() {                \
        allocate(QUOLL_VKMAT_UNWRAP ARGS, 1, type_of_size(e, 1), e, 1, a);                      \
    }                                                                                           \
    VkMat::VkMat(QUOLL_VKMAT_UNWRAP SIZES, size_t e, int p, VkAllocator* a) : VkMat() {         \
        allocate(QUOLL_VKMAT_UNWRAP ARGS, 1, type_of_size(e, p), e, p, a);                      \
    }                                                                                           \
    VkMat::VkMat(QUOLL_VKMAT_UNWRAP SIZES, size_t e, int p, int n_, VkAllocator* a) : VkMat() { \
        allocate(QUOLL_VKMAT_UNWRAP ARGS, n_, type_of_size(e, p), e, p, a, kOwnItems);          \
    }                                                                                           \
    void VkMat::create(QUOLL_VKMAT_UNWRAP SIZES, size_t e, VkAllocator* a) {                    \
        allocate(QUOLL_VKMAT_UNWRAP ARGS, 1, type_of_size(e, 1), e, 1, a);                      \
    }                                                                                           \
    void VkMat::create(QUOLL_VKMAT_UNWRAP SIZES, size_t e, int p, VkAllocator* a) {             \
        allocate(QUOLL_VKMAT_UNWRAP ARGS, 1, type_of_size(e, p), e, p, a);                      \
    }                                                                                           \
    void VkMat::create(QUOLL_VKMAT_UNWRAP SIZES, size_t e, int p, int n_, VkAllocator* a) {     \
        allocate(QUOLL_VKMAT_UNWRAP ARGS, n_, type_of_size(e, p), e, p, a, kOwnItems);          \
    }                                                                                           \
    VkMat::VkMat(QUOLL_VKMAT_UNWRAP SIZES, VkBufferMemory* m, size_t e, VkAllocator* a)         \
        : VkMat() {                                                                             \
        view(QUOLL_VKMAT_UNWRAP ARGS, 1, e, 1, m, a);                                           \
    }                                                                                           \
    VkMat::VkMat(QUOLL_VKMAT_UNWRAP SIZES, VkBufferMemory* m, size_t e, int p, VkAllocator* a)  \
        : VkMat() {                                                                             \
        view(QUOLL_VKMAT_UNWRAP ARGS, 1, e, p, m, a);                                           \
    }                                                                                           \
    VkMat::VkMat(QUOLL_VKMAT_UNWRAP SIZES, VkBufferMemory* m, size_t e, int p, int n_,          \
                 VkAllocator* a)                                                                \
        : VkMat() {                                                                             \
        view(QUOLL_VKMAT_UNWRAP ARGS, n_, e, p, m, a);                                          \
    }
QUOLL_VKMAT_FORMS((int w_), (1, w_, 1, 1, 1))
QUOLL_VKMAT_FORMS((int w_, int h_), (2, w_, h_, 1, 1))
QUOLL_VKMAT_FORMS((int w_, int h_, int c_), (3, w_, h_, 1, c_))
QUOLL_VKMAT_FORMS((int w_, int h_, int d_, int c_), (4, w_, h_, d_, c_))
#undef QUOLL_VKMAT_FORMS
#undef QUOLL_VKMAT_UNWRAP

VkMat::VkMat(const Shape& shape, VkAllocator* a) : VkMat() { create(shape, a); }
VkMat::VkMat(const VkMat& m) : VkMat() { *this = m; }
VkMat::~VkMat() { release(); }

VkMat& VkMat::operator=(const VkMat& m) {
    if (this == &m) return *this;
    if (m.data) add_reference(&m.data->refcount);
    release();
    data = m.data, refcount = m.refcount, allocator = m.allocator;
    dims = m.dims, w = m.w, h = m.h, d = m.d, c = m.c, n = m.n;
    cstep = m.cstep, nstep = m.nstep, offset = m.offset;
    elemsize = m.elemsize, elempack = m.elempack, dtype = m.dtype;
    return *this;
}

void VkMat::create(const Shape& s, VkAllocator* from) {
    allocate(s.dims, s.w, s.h, s.d, s.c, s.n, s.dtype, dtype_size(s.dtype), 1, from);
}
void VkMat::create_like(const Mat& m, VkAllocator* a) { create_like(m, m.n, a); }
void VkMat::create_like(const VkMat& m, VkAllocator* a) { create_like(m, m.n, a); }
void VkMat::create_like(const Mat& m, int n_, VkAllocator* a) {
    allocate(m.dims, m.w, m.h, m.d, m.c, n_, m.dtype, m.elemsize, m.elempack, a);
}
void VkMat::create_like(const VkMat& m, int n_, VkAllocator* a) {
    allocate(m.dims, m.w, m.h, m.d, m.c, n_, m.dtype, m.elemsize, m.elempack, a);
}

void VkImageMat::create_like(const Mat& m, VkAllocator* a) {
    release();
    if (m.n == 1) VkMat::create_like(m, a);
}
void VkImageMat::create_like(const VkMat& m, VkAllocator* a) {
    release();
    if (m.n == 1) VkMat::create_like(m, a);
}

void VkMat::allocate(int dims_, int w_, int h_, int d_, int c_, int n_, DType dtype_,
                     size_t elemsize_, int elempack_, VkAllocator* from, size_t item_alignment) {
    const size_t step = (size_t)w_ * h_ * d_, item = step * c_ * elemsize_;
    const size_t item_step = n_ > 1 ? align_size(item, item_alignment) : item;
    const bool same = data && dims == dims_ && w == w_ && h == h_ && d == d_ && c == c_ &&
                      n == n_ && dtype == dtype_ && elemsize == elemsize_ &&
                      elempack == elempack_ && nstep * elemsize == item_step / elemsize * elemsize;
    if (same && references(&data->refcount) == 1 && allocator == from && offset == 0) return;
    release();
    const bool sizes = w_ > 0 && h_ > 0 && d_ > 0 && c_ > 0 && n_ > 0;
    if (!from || dims_ < 1 || !sizes || elemsize_ == 0 || elempack_ < 1) return;
    const double wanted = ((double)w_ * h_ * d_ * c_ * (double)elemsize_ + item_alignment) * n_;
    if (wanted > (double)(SIZE_MAX / 8)) return;
    data = from->fastMalloc(item_step * n_);
    if (!data) return;
    data->refcount = 1;
    refcount = &data->refcount;
    allocator = from;
    set_sizes(dims_, w_, h_, d_, c_, n_, dtype_, elemsize_, elempack_, item_step);
}

void VkMat::set_sizes(int dims_, int w_, int h_, int d_, int c_, int n_, DType dtype_,
                      size_t elemsize_, int elempack_, size_t item_step) {
    dims = dims_, w = w_, h = h_, d = d_, c = c_, n = n_;
    cstep = (size_t)w * h * d, nstep = item_step / elemsize_;
    dtype = dtype_, elemsize = elemsize_, elempack = elempack_;
}

void VkMat::view(int dims_, int w_, int h_, int d_, int c_, int n_, size_t elemsize_, int elempack_,
                 VkBufferMemory* block, VkAllocator* from) {
    if (!block || w_ < 1 || h_ < 1 || d_ < 1 || c_ < 1 || n_ < 1 || !elemsize_ || elempack_ < 1)
        return;
    const size_t item = (size_t)w_ * h_ * d_ * c_ * elemsize_;
    data = block, allocator = from;
    if (data->refcount == 0) data->refcount = 1;  // the caller's
    add_reference(&data->refcount);
    set_sizes(dims_, w_, h_, d_, c_, n_, type_of_size(elemsize_, elempack_), elemsize_, elempack_,
              n_ > 1 ? align_size(item, kOwnItems) : item);
}

void VkMat::addref() {
    if (data) add_reference(&data->refcount);
}

void VkMat::release() {
    if (data && drop_reference(&data->refcount)) allocator->fastFree(data);
    data = 0, refcount = 0, allocator = 0;
    dims = w = h = d = c = 0, n = 1;
    cstep = nstep = offset = 0;
    elemsize = 0, elempack = 1, dtype = DType::f32;
}

Shape VkMat::logical_shape() const {
    Shape s;
    s.dims = dims, s.w = w, s.h = h, s.d = d, s.c = c, s.n = n, s.dtype = dtype;
    (dims == 1 ? s.w : dims == 2 ? s.h : s.c) *= elempack;
    return s;
}

Mat VkMat::shape() const {
    Mat m;
    m.dims = dims, m.w = w, m.h = h, m.d = d, m.c = c, m.n = n;
    m.dtype = dtype, m.elemsize = elemsize, m.elempack = elempack;
    m.cstep = Mat::channel_step(dims, w, h, d, elemsize), m.nstep = m.cstep * c;
    return m;
}

#if QUOLL_VULKAN
void Mat::create_like(const VkMat& m, Allocator* a) { create_like(m, m.n, a); }

void Mat::create_like(const VkMat& m, int n_, Allocator* a) { create_like(m.shape(), n_, a); }
#endif

VkMat VkMat::batch_range(int b, int items) const {
    if (b < 0 || items < 1 || b + items > n) return VkMat();
    VkMat part = *this;
    part.n = items, part.refcount = 0;
    part.offset += (size_t)b * nstep * elemsize;
    return part;
}

Mat VkMat::mapped() const {
    if (!mapped_ptr() || n != 1) return Mat();
    Mat m;
    m.data = mapped_ptr();
    m.dims = dims, m.w = w, m.h = h, m.d = d, m.c = c;
    m.dtype = dtype, m.elemsize = elemsize, m.elempack = elempack;
    m.cstep = cstep, m.nstep = nstep;
    return m;
}

}  // namespace quoll
