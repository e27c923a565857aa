// Return codes of the public functions, and a macro that passes them on.
#ifndef QUOLL_STATUS_H
#define QUOLL_STATUS_H

namespace quoll {

// Zero is success. A message with what, where and what was expected goes to the log.
enum Status {
    kOk = 0,
    kError = -1,          // bad input: a file, a shape, a parameter, a call out of order
    kOutOfMemory = -100,  // an allocation failed (ncnn's code)
};

}  // namespace quoll

#define QUOLL_RETURN_IF_ERROR(expr)                   \
    do {                                              \
        const int quoll_status_ = (expr);             \
        if (quoll_status_ != 0) return quoll_status_; \
    } while (0)

#endif
