#ifndef NCNN_ALLOCATOR_H
#define NCNN_ALLOCATOR_H

#include <stdlib.h>

#include "platform.h"
#include "quoll/allocator.h"

#define NCNN_MALLOC_ALIGN 64
#define NCNN_MALLOC_OVERREAD 64

// Adds; the value before.
#if defined(_MSC_VER)
inline int NCNN_XADD(int* value, int delta) {
    return (int)_InterlockedExchangeAdd((long volatile*)value, delta);
}
#else
inline int NCNN_XADD(int* value, int delta) {
    return __atomic_fetch_add(value, delta, __ATOMIC_ACQ_REL);
}
#endif

namespace ncnn {

using ::NCNN_XADD;

static_assert(NCNN_MALLOC_ALIGN == (int)quoll::kMallocAlign, "the alignment of fast_malloc");
static_assert(NCNN_MALLOC_OVERREAD == (int)quoll::kMallocOverread, "the slack of fast_malloc");

// n is a power of two.
template <typename T>
inline T* alignPtr(T* ptr, int n = (int)sizeof(T)) {
    return (T*)(((size_t)ptr + n - 1) & ~(size_t)(n - 1));
}
inline size_t alignSize(size_t size, int n) { return quoll::align_size(size, (size_t)n); }
inline void* fastMalloc(size_t size) { return quoll::fast_malloc(size); }
inline void fastFree(void* ptr) { quoll::fast_free(ptr); }

}  // namespace ncnn

#endif
