#include "quoll/log.h"

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "runtime/ascii.h"
#include "runtime/log_mute.h"

namespace quoll {
namespace {

constexpr int kLevelUnset = -1;
constexpr size_t kStackMessage = 1024;
constexpr size_t kMaxMessage = 1 << 20;

const char* const kLevelNames[] = {"debug", "info", "warn", "error", "off"};

std::atomic<int> g_level{kLevelUnset};
thread_local bool t_in_sink = false;
thread_local int t_muted = 0;
thread_local int t_keeping = 0;
thread_local char t_last_error[kStackMessage];

struct SinkState {
    std::recursive_mutex mutex;  // recursive: a sink may call set_log_sink
    LogSink sink = nullptr;
    void* user = nullptr;
};

// Never destroyed, so that destructors of static objects may still log.
SinkState& sink_state() {
    alignas(SinkState) static unsigned char storage[sizeof(SinkState)];
    static SinkState* state = new (storage) SinkState;
    return *state;
}

int clamp_level(int level) {
    return level < kLogDebug ? kLogDebug : level > kLogOff ? kLogOff : level;
}

// The level named by QUOLL_LOG; warn when it is absent, empty or not a level.
int level_from_environment(const char** unknown) {
    const char* word = std::getenv("QUOLL_LOG");
    *unknown = nullptr;
    if (!word || !*word) return kLogWarn;
    for (int i = kLogDebug; i <= kLogOff; i++)
        if (equal_ignoring_case(word, kLevelNames[i])) return i;
    *unknown = word;
    return kLogWarn;
}

int current_level() {
    int level = g_level.load(std::memory_order_relaxed);
    if (level != kLevelUnset) return level;
    const char* unknown;
    int initial = level_from_environment(&unknown);
    int expected = kLevelUnset;
    // Loses against a set_log_level in another thread, which then counts.
    if (!g_level.compare_exchange_strong(expected, initial)) return expected;
    if (unknown)
        log_message(kLogWarn, "QUOLL_LOG: expected debug, info, warn, error or off, got '%.64s'",
                    unknown);
    return initial;
}

void write_stderr(const char* message) {
    // One call, so that lines of several processes or threads do not mix.
    std::fprintf(stderr, "%s\n", message);
    std::fflush(stderr);
}

void deliver(LogLevel level, const char* message) {
    if (t_in_sink) {
        write_stderr(message);
        return;
    }
    SinkState& state = sink_state();
    std::lock_guard<std::recursive_mutex> lock(state.mutex);
    if (!state.sink) {
        write_stderr(message);
        return;
    }
    t_in_sink = true;
    state.sink(level, message, state.user);
    t_in_sink = false;
}

}  // namespace

void set_log_level(LogLevel level) { g_level.store(clamp_level(level), std::memory_order_relaxed); }

LogLevel get_log_level() { return LogLevel(current_level()); }

const char* log_level_name(LogLevel level) { return kLevelNames[clamp_level(level)]; }

void set_log_sink(LogSink sink, void* user) {
    SinkState& state = sink_state();
    std::lock_guard<std::recursive_mutex> lock(state.mutex);
    state.sink = sink;
    state.user = sink ? user : nullptr;
}

LogMute::LogMute() { t_muted++; }
LogMute::~LogMute() { t_muted--; }

KeepErrors::KeepErrors() { t_keeping++; }
KeepErrors::~KeepErrors() { t_keeping--; }
char* KeepErrors::last() { return t_last_error; }

static bool is_kept(LogLevel level) { return t_keeping > 0 && level == kLogError; }

bool log_enabled(LogLevel level) {
    return t_muted == 0 && level < kLogOff && (level >= current_level() || is_kept(level));
}

void log_message(LogLevel level, const char* format, ...) {
    const int saved_errno = errno;
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);

    char stack[kStackMessage];
    const int length = std::vsnprintf(stack, sizeof(stack), format, args);
    if (is_kept(level)) std::strcpy(t_last_error, length < 0 ? "" : stack);
    if (is_kept(level) && level < current_level()) {
        // Kept, not said.
    } else if (length < 0) {
        deliver(level, format);  // the C library could not encode it; the format still says where
    } else if (size_t(length) < sizeof(stack)) {
        deliver(level, stack);
    } else {
        const size_t size = size_t(length) < kMaxMessage ? size_t(length) + 1 : kMaxMessage;
        char* heap = static_cast<char*>(std::malloc(size));
        if (heap) std::vsnprintf(heap, size, format, again);
        deliver(level, heap ? heap : stack);  // out of memory: the first kStackMessage - 1 bytes
        std::free(heap);
    }

    va_end(again);
    va_end(args);
    errno = saved_errno;
}

}  // namespace quoll
