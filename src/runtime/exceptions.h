// Where exceptions end. The library throws none; the containers that it uses do when memory ends,
// and public functions make an error code of that.
#ifndef QUOLL_RUNTIME_EXCEPTIONS_H
#define QUOLL_RUNTIME_EXCEPTIONS_H

#include <stdlib.h>

#include <new>
#include <stdexcept>

#include "quoll/log.h"
#include "quoll/status.h"

// try and catch; in a build without exceptions (QUOLL_EXCEPTIONS) what is tried is run, and memory
// that ends ends the program.
#if defined(__cpp_exceptions)
#define QUOLL_TRY try
#define QUOLL_CATCH(...) catch (__VA_ARGS__)
#define QUOLL_OUT_OF_MEMORY() throw std::bad_alloc()
#else
#define QUOLL_TRY if (true)
#define QUOLL_CATCH(...) else if (false)
#define QUOLL_OUT_OF_MEMORY() abort()
#endif

namespace quoll {

// What f returns; `failed`, after a message, when memory ends within.
template <class F, class R>
R catch_no_memory(const char* what, R failed, const F& f) {
    QUOLL_TRY { return f(); }
    QUOLL_CATCH(const std::bad_alloc&) { QUOLL_LOGE("[%s] out of memory", what); }
    QUOLL_CATCH(const std::length_error&) {
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
