#include "quoll/vkmat.h"

namespace quoll {

VkAllocator::VkAllocator(const VulkanDevice* device) : vkdev(device) {}
VkAllocator::~VkAllocator() {}
void VkAllocator::clear() {}

namespace {

DType type_of_size(size_t elemsize) {
    return elemsize == 1 ? DType::s8 : elemsize == 2 ? DType::f16 : DType::f32;
}

void set_sizes(VkMat* m, const Shape& s) {
    m->dims = s.dims, m->w = s.w, m->h = s.h, m->d = s.d, m->c = s.c, m->n = s.n;
    m->cstep = (size_t)s.w * s.h * s.d;
    m->dtype = s.dtype, m->elemsize = dtype_size(s.dtype);
}

}  // namespace

VkMat::VkMat()
    : data(0),
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
      dtype(DType::f32) {}
VkMat::VkMat(int w_, size_t e, VkAllocator* a) : VkMat() { create(w_, e, a); }
VkMat::VkMat(int w_, int h_, size_t e, VkAllocator* a) : VkMat() { create(w_, h_, e, a); }
VkMat::VkMat(int w_, int h_, int c_, size_t e, VkAllocator* a) : VkMat() {
    create(w_, h_, c_, e, a);
}
VkMat::VkMat(int w_, int h_, int d_, int c_, size_t e, VkAllocator* a) : VkMat() {
    create(w_, h_, d_, c_, e, a);
}
VkMat::VkMat(const Shape& shape, VkAllocator* a) : VkMat() { create(shape, a); }
VkMat::VkMat(const VkMat& m) : VkMat() { *this = m; }
VkMat::~VkMat() { release(); }

VkMat& VkMat::operator=(const VkMat& m) {
    if (this == &m) return *this;
    if (m.data) m.data->refcount++;
    release();
    set_sizes(this, m.logical_shape());
    data = m.data, allocator = m.allocator;
    return *this;
}

void VkMat::create(int w_, size_t e, VkAllocator* a) { create(Shape(w_, type_of_size(e)), a); }
void VkMat::create(int w_, int h_, size_t e, VkAllocator* a) {
    create(Shape(w_, h_, type_of_size(e)), a);
}
void VkMat::create(int w_, int h_, int c_, size_t e, VkAllocator* a) {
    create(Shape(w_, h_, c_, type_of_size(e)), a);
}
void VkMat::create(int w_, int h_, int d_, int c_, size_t e, VkAllocator* a) {
    create(Shape(w_, h_, d_, c_, type_of_size(e)), a);
}

void VkMat::create(const Shape& shape, VkAllocator* from) {
    if (data && data->refcount == 1 && allocator == from && logical_shape() == shape) return;
    release();
    const bool sizes = shape.w > 0 && shape.h > 0 && shape.d > 0 && shape.c > 0 && shape.n > 0;
    if (!from || shape.dims < 1 || !sizes) return;
    data = from->fastMalloc(shape.total() * dtype_size(shape.dtype));
    if (!data) return;
    data->refcount = 1;
    allocator = from;
    set_sizes(this, shape);
}

void VkMat::create_like(const Mat& m, VkAllocator* a) { create(m.logical_shape(), a); }
void VkMat::create_like(const VkMat& m, VkAllocator* a) { create(m.logical_shape(), a); }

void VkMat::addref() {
    if (data) data->refcount++;
}

void VkMat::release() {
    if (data && --data->refcount == 0) allocator->fastFree(data);
    data = 0, allocator = 0;
    set_sizes(this, Shape());
    elemsize = 0;
}

Shape VkMat::logical_shape() const {
    Shape s;
    s.dims = dims, s.w = w, s.h = h, s.d = d, s.c = c, s.n = n, s.dtype = dtype;
    return s;
}

Mat VkMat::shape() const {
    Mat m;
    m.dims = dims, m.w = w, m.h = h, m.d = d, m.c = c, m.n = n;
    m.dtype = dtype, m.elemsize = elemsize, m.elempack = 1;
    m.cstep = Mat::channel_step(dims, w, h, d, elemsize), m.nstep = m.cstep * c;
    return m;
}

}  // namespace quoll
