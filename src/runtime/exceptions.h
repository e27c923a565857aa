// Where exceptions are caught. The library throws none; the containers that it uses do if memory
// runs out, and public functions turn that into an error code.
#ifndef QUOLL_RUNTIME_EXCEPTIONS_H
#define QUOLL_RUNTIME_EXCEPTIONS_H

#include <stdlib.h>

#include <new>
#include <stdexcept>

#include "quoll/log.h"
#include "quoll/status.h"

// try and catch. In a build without exceptions (QUOLL_EXCEPTIONS=OFF) the body just runs, and
// running out of memory ends the program.
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

// Returns what f returns; or `failed`, after a message, if memory runs out in f.
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
