// Where exceptions end. The library throws none; the containers that it uses do when memory ends,
// and public functions make an error code of that.
#ifndef QUOLL_RUNTIME_EXCEPTIONS_H
#define QUOLL_RUNTIME_EXCEPTIONS_H

#include <new>
#include <stdexcept>

#include "quoll/log.h"
#include "quoll/status.h"

namespace quoll {

// What f returns; `failed`, after a message, when memory ends within.
template <class F, class R>
R catch_no_memory(const char* what, R failed, const F& f) {
    try {
        return f();
    } catch (const std::bad_alloc&) {
        QUOLL_LOGE("[%s] out of memory", what);
    } catch (const std::length_error&) {
        QUOLL_LOGE("[%s] more elements than memory can hold", what);
    }
    return failed;
}
template <class F>
int catch_no_memory(const char* what, const F& f) {
    return catch_no_memory(what, (int)kOutOfMemory, f);
}

}  // namespace quoll

#endif
