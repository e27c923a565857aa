// How the module calls the library: without the GIL, with the library's messages as the text of exceptions.
#ifndef QUOLL_PYTHON_CALLS_H
#define QUOLL_PYTHON_CALLS_H

#include <nanobind/nanobind.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace quoll_python {

namespace nb = nanobind;

// quoll.Error
class Error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// Whether this thread holds the GIL, as far as this module knows: a thread that Python has never seen does not.
bool holds_gil();

class ReleaseGil {
public:
    ReleaseGil();
    ~ReleaseGil();

private:
    nb::gil_scoped_release release_;
};

class AcquireGil {
public:
    AcquireGil();
    ~AcquireGil();

private:
    nb::gil_scoped_acquire acquire_;
    int released_;
};

// While it lives, errors that the library logs on this thread are collected; those of the library's workers too, unless
// several threads are collecting. To be made with the GIL held.
class Call {
public:
    Call();
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

    void add(const char* message) { messages_.emplace_back(message); }
    // Throws Error with the messages, or `what` if there are none, when status is negative. An exception that a Python
    // layer or reader has raised meanwhile is its cause.
    void check(int status, const std::string& what);
    [[noreturn]] void fail(const std::string& what);

private:
    std::vector<std::string> messages_;
    Call* outer_;
};

// Runs f() without the GIL and throws Error if it returns a negative code.
template <class F>
void call(const std::string& what, const F& f) {
    Call messages;
    int status;
    {
        ReleaseGil released;
        status = f();
    }
    messages.check(status, what);
}

// Keeps an exception of Python code that the library called, for the Call of this thread.
void keep_exception(nb::python_error&& error);

void bind_log(nb::module_& m);

}  // namespace quoll_python

#endif
