#include "calls.h"

#include <nanobind/stl/string.h>
#include <stdio.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "quoll/log.h"

namespace quoll_python {

namespace {

thread_local int t_released = 0;
thread_local Call* t_call = nullptr;
thread_local std::unique_ptr<nb::python_error> t_exception;

// Outermost Calls of all threads. Never destroyed: workers may log while the process ends.
struct Calls {
    std::mutex mutex;
    std::vector<Call*> calls;
};
Calls& calls() {
    static Calls* all = new Calls;
    return *all;
}

void take_message(quoll::LogLevel level, const char* message, void*) {
    if (level == quoll::kLogError) {
        if (t_call) return t_call->add(message);
        Calls& all = calls();
        const std::lock_guard<std::mutex> lock(all.mutex);
        if (all.calls.size() == 1) return all.calls[0]->add(message);
    }
    fprintf(stderr, "%s\n", message);
    fflush(stderr);
}

}  // namespace

bool holds_gil() { return t_released == 0 && PyGILState_GetThisThreadState() != nullptr; }

ReleaseGil::ReleaseGil() { t_released++; }
ReleaseGil::~ReleaseGil() { t_released--; }

AcquireGil::AcquireGil() : released_(t_released) { t_released = 0; }
AcquireGil::~AcquireGil() { t_released = released_; }

Call::Call() : outer_(t_call) {
    t_call = this;
    if (outer_) return;
    const std::lock_guard<std::mutex> lock(calls().mutex);
    calls().calls.push_back(this);
}

Call::~Call() {
    t_call = outer_;
    if (outer_) return;
    const std::lock_guard<std::mutex> lock(calls().mutex);
    std::vector<Call*>& all = calls().calls;
    all.erase(std::find(all.begin(), all.end(), this));
}

void Call::check(int status, const std::string& what) {
    if (status >= 0) {
        t_exception.reset();
        // Said while something was tried that then went well.
        for (const std::string& message : messages_) fprintf(stderr, "%s\n", message.c_str());
        messages_.clear();
        return;
    }
    fail(what);
}

void Call::fail(const std::string& what) {
    std::string text;
    for (const std::string& message : messages_) text += (text.empty() ? "" : "\n") + message;
    if (text.empty()) text = what;
    if (const std::unique_ptr<nb::python_error> cause = std::move(t_exception)) {
        const nb::object type = nb::module_::import_("quoll._core").attr("Error");
        const nb::object error = type(text);
        error.attr("__cause__") = cause->value();
        PyErr_SetObject(type.ptr(), error.ptr());
        throw nb::python_error();
    }
    throw Error(text);
}

void keep_exception(nb::python_error&& error) {
    t_exception.reset(new nb::python_error(std::move(error)));
}

void bind_log(nb::module_& m) {
    nb::exception<Error>(m, "Error", PyExc_RuntimeError).doc() =
        "What the library refuses: a bad file, shape, parameter or call. The text names layer, field, expected and got.";
    quoll::set_log_sink(take_message, nullptr);
    m.def(
        "set_log_level",
        [](const std::string& level) {
            for (int i = quoll::kLogDebug; i <= quoll::kLogOff; i++)
                if (level == quoll::log_level_name((quoll::LogLevel)i))
                    return quoll::set_log_level((quoll::LogLevel)i);
            throw nb::value_error("level: expected 'debug', 'info', 'warn', 'error' or 'off'");
        },
        nb::arg("level"),
        "Messages below this level are dropped: 'debug', 'info', 'warn' (at first), 'error' or 'off'. With 'off' exceptions\n"
        "have no reasons to tell.");
    m.def(
        "get_log_level", [] { return std::string(quoll::log_level_name(quoll::get_log_level())); },
        "The level that set_log_level, or the environment's QUOLL_LOG, has set.");
}

}  // namespace quoll_python
