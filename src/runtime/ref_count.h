// Reference counts: plain ints, so that programs written for ncnn may read them; several threads
// change them, by these functions alone.
#ifndef QUOLL_RUNTIME_REF_COUNT_H
#define QUOLL_RUNTIME_REF_COUNT_H

#if defined(_MSC_VER)
#include <intrin.h>
#endif

namespace quoll {

#if defined(_MSC_VER)
inline void add_reference(int* count) { _InterlockedExchangeAdd((long volatile*)count, 1); }
// Whether that was the last one.
inline bool drop_reference(int* count) {
    return _InterlockedExchangeAdd((long volatile*)count, -1) == 1;
}
inline int references(const int* count) {
    return _InterlockedOr((long volatile*)const_cast<int*>(count), 0);
}
#else
inline void add_reference(int* count) { __atomic_fetch_add(count, 1, __ATOMIC_RELAXED); }
// Whether that was the last one.
inline bool drop_reference(int* count) {
    return __atomic_fetch_sub(count, 1, __ATOMIC_ACQ_REL) == 1;
}
inline int references(const int* count) { return __atomic_load_n(count, __ATOMIC_SEQ_CST); }
#endif

}  // namespace quoll

#endif
